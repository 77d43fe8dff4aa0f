package queues

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/schema"
	"github.com/lubdub-io/lubdub/tracker/store"
	"github.com/lubdub-io/lubdub/tracker/workers"
)

// Bounds of a claim.
const (
	MaxClaim     = 100 // tasks that one claim gets at most
	MaxClaimWait = time.Minute
)

// ClaimRequest asks for tasks of a queue on behalf of a registered worker.
type ClaimRequest struct {
	Scope    model.Scope
	WorkerID string
	Queue    string
	Types    []string      // a subset of those that the worker registered; nil: all of them, and tasks without a type
	Max      int           // at least 1; a claim gets at most MaxClaim
	Wait     time.Duration // how long to wait for the first task; 0: not at all
	ClaimID  string        // empty: none; a repeat with the same ID gets the same tasks, without those that are done
	Start    bool          // the worker starts the tasks at once: they are RUNNING when it gets them
}

// Validate checks what can be checked without the store.
func (r *ClaimRequest) Validate() error {
	if err := model.CheckID("queue", r.Queue); err != nil {
		return err
	}
	if r.ClaimID != "" {
		if err := model.CheckID("claimId", r.ClaimID); err != nil {
			return err
		}
	}
	switch {
	case r.Max < 1:
		return model.Invalidf("max", "is %d; use 1 or more (a claim gets %d at most)", r.Max, MaxClaim)
	case r.Wait < 0 || r.Wait > MaxClaimWait:
		return model.Invalidf("waitMs", "is %d; use 0 to %d", model.Millis(r.Wait), model.Millis(MaxClaimWait))
	case r.Types != nil && len(r.Types) == 0:
		return model.Invalidf("types",
			"is empty, so nothing could be claimed; name types, or omit it for all that the worker registered")
	}
	for i, y := range r.Types {
		if err := model.CheckID(fmt.Sprintf("types[%d]", i), y); err != nil {
			return err
		}
	}
	return nil
}

// fullRetry is how often the claim of a full worker checks for a free place without a notification: when other claims of the
// worker release places, no notification is sent.
const fullRetry = time.Second

// Forbidden is the code of a request that the caller's token does not allow.
const Forbidden model.Code = "forbidden"

// Claim hands a worker up to r.Max tasks that it can run, oldest first within each type and fair across types. It returns as soon
// as there is one task, and with none when r.Wait is over or ctx ends; after that it takes nothing.
func (s *Service) Claim(ctx context.Context, r ClaimRequest) ([]*model.Envelope, error) {
	if err := r.Validate(); err != nil {
		return nil, err
	}
	r.Max = min(r.Max, MaxClaim)
	ctx = s.store.Within(ctx, r.Wait)
	c := &claim{ClaimRequest: r, queues: s, server: ctx}
	ctx, cancel := context.WithTimeout(ctx, r.Wait)
	defer cancel()
	tasks, err := c.run(ctx)
	s.metrics.done(len(tasks), err)
	return tasks, err
}

// claim is one request in progress, owned by its goroutine. It keeps reserved places only while it may use them.
type claim struct {
	ClaimRequest
	queues *Service
	server context.Context // ends when the server stops and no claim may wait any longer
	nudge  chan struct{}   // receives when the worker's status, its places or a request with this claim ID may have changed
	leave  func()          // stops the nudges; nil: the claim is not nudged

	reservation *reservation
	can         *ability
	waiting     *waitingClaim // in the waitlist of its queue; nil: it is not there
	places      int           // reserved for it now
	used        int           // of these, those that hold tasks or may do so

	mark   string    // hash of its claim ID; "": it has none
	owner  string    // identifies this request among those with the same claim ID
	making bool      // no other request with this claim ID may take tasks now
	turn   time.Time // until when
	over   bool      // another request makes the claim
}

func (c *claim) run(ctx context.Context) ([]*model.Envelope, error) {
	defer func() {
		if c.leave != nil {
			c.leave()
		}
	}()
	counted := c.begin()
	defer c.leaveWaitlist()
	if answered, tasks, err := c.identify(ctx, counted); answered || err != nil {
		return tasks, err
	}
	defer c.rest(ctx)
	if c.Wait > 0 {
		c.listen()
	}
	if err := c.reserve(ctx, counted, true); err != nil {
		return nil, err
	}
	defer c.releasePlaces(ctx)
	if c.waiting != nil && (c.places < c.waiting.places || !c.can.equals(c.waiting.can)) {
		c.leaveWaitlist() // where it waits for too much, or for tasks that it cannot run
	}
	if err := c.checkTypes(c.can.types); err != nil {
		return nil, err
	}
	for {
		if c.places == 0 {
			c.leaveWaitlist()
			if err := c.awaitPlaces(ctx); err != nil {
				return c.inVain(ctx, err)
			}
		}
		if c.places == 0 {
			return c.inVain(ctx, c.refused(ctx))
		}
		tasks, err := c.await(ctx)
		switch {
		case err != nil:
			return c.inVain(ctx, err)
		case c.over:
			return c.follow(ctx)
		case len(tasks) > 0:
			return c.answered(ctx, tasks)
		case ctx.Err() != nil:
			return c.inVain(ctx, c.refused(ctx))
		}
	}
}

// begin lets the claim of a worker that has claimed here before wait for an offer while its places are being reserved, and returns a
// count for the reservation: a worker that claims all its free places mostly needs one. For another worker it returns nil.
func (c *claim) begin() *count {
	last, known := c.queues.last.Get(schema.TaskName(c.Scope, c.WorkerID))
	if !known {
		return nil
	}
	if c.can = abilityIn(&last); last.Queue == c.Queue && c.checkTypes(last.Types) == nil {
		c.joinWaitlist(c.Max)
	}
	return c.queues.newCount(c.Scope, c.WorkerID, last.Ended)
}

// joinWaitlist lets the claim wait for an offer of up to this many tasks.
func (c *claim) joinWaitlist(places int) {
	c.waiting = c.queues.waitlists.of(c.queues, c.Scope, c.Queue).join(c, places)
}

func (c *claim) leaveWaitlist() {
	if c.waiting != nil {
		c.waiting.list.leave(c.waiting)
		c.waiting = nil
	}
}

// awaitPlaces waits until the full worker has a free place or the cordoned one is uncordoned, until another request with the claim
// ID has its tasks, or until the wait is over.
func (c *claim) awaitPlaces(ctx context.Context) error {
	for ctx.Err() == nil {
		c.rest(ctx)
		if !c.reservation.Cordoned {
			c.queues.notifyWhenFree(ctx, c.WorkerID) // first, so that attempts that end from here on are announced
		}
		if err := c.reserve(ctx, nil, false); err != nil || c.places > 0 {
			return err
		}
		timer := time.NewTimer(store.Jittered(c.queues.fullRetry))
		select {
		case <-ctx.Done():
		case <-c.nudge:
			if c.overtaken(ctx) {
				timer.Stop()
				return nil
			}
		case <-timer.C:
		}
		timer.Stop()
	}
	return nil
}

// refused returns the error that a claim which waited in vain would get now, nil if it would not be refused.
func (c *claim) refused(ctx context.Context) error {
	if c.Wait == 0 || c.server.Err() != nil {
		return nil
	}
	probe := &reservation{Reservation: workers.Reservation{Worker: c.reservation.Worker, Name: model.NewID("")}}
	if err := c.queues.extend(ctx, probe, workers.ReserveArgs{Life: reservationLife}); model.CodeOf(err) != model.Unavailable {
		return err
	}
	return nil // it waited in vain, which is true as well
}

// reserve reserves as many places as the claim wants. `counted` and `heartbeat`: see Service.reserve.
func (c *claim) reserve(ctx context.Context, counted *count, heartbeat bool) error {
	r, err := c.queues.reserve(ctx, &c.ClaimRequest, counted, heartbeat)
	if err != nil {
		return err
	}
	c.reservation, c.places = r, r.Places
	c.can = abilityIn(&r.Reserved)
	if len(r.Types) == 0 { // adopted from a token that was too short to include them
		c.releasePlaces(ctx)
		return &model.Error{Code: workers.WorkerNotFound, Op: "claim", Message: "the store lost what this worker can run; " +
			"let it finish what it holds, and register again for more"}
	}
	if r.Queue != c.Queue {
		c.releasePlaces(ctx)
		return &model.Error{Code: Forbidden, Op: "claim",
			Message: fmt.Sprintf("the worker registered for the queue %s; it claims from that one only", r.Queue)}
	}
	return nil
}

func (c *claim) releasePlaces(ctx context.Context) {
	if c.places > 0 {
		r, used := c.reservation, c.used
		c.queues.store.Tidy(ctx, func(ctx context.Context) { c.queues.settle(ctx, r, used) })
		c.places, c.used = 0, 0
	}
}

func (c *claim) checkTypes(registered []string) error {
	for _, y := range c.Types {
		if !slices.Contains(registered, y) {
			return model.Invalidf("types", "names %s, for which the worker did not register; name some of those, or leave types out", y)
		}
	}
	return nil
}

// await waits in the queue's waitlist for an offer and takes what it can of it. It returns nothing when the wait is over, when
// another request makes the claim, and when the worker has no free place any more.
func (c *claim) await(ctx context.Context) ([]*model.Envelope, error) {
	if c.waiting == nil {
		c.joinWaitlist(c.places)
	}
	defer c.leaveWaitlist()
	w := c.waiting
	deadline := time.NewTimer(time.Until(store.Until(ctx)))
	defer deadline.Stop()
	var over <-chan struct{} // set after the first look: even a claim that does not wait gets one
	nudged := false
	for {
		if c.server.Err() != nil {
			return nil, nil
		}
		if nudged && c.places == 0 { // it first tries to take what it is offered
			if err := c.refused(ctx); err != nil {
				return nil, err
			}
			nudged = false
		}
		select {
		case <-over:
			return nil, nil
		case <-c.queues.store.Broken():
			return nil, store.AsUnavailable("claim", c.queues.store.Bug())
		case <-deadline.C: // the queue could not be read in time
			return nil, store.AsUnavailable("claim", c.queues.store.TooLateError())
		case <-c.nudge:
			if c.overtaken(ctx) {
				return nil, nil
			}
			nudged = true
		case o := <-w.offers:
			if o.err != nil {
				return nil, o.err
			}
			if len(o.entries) == 0 { // nothing now: others may use the places while this claim waits
				over = ctx.Done()
				c.releasePlaces(ctx)
				c.rest(ctx)
				continue
			}
			tasks, tried, err := c.accept(ctx, o)
			w.list.resolve(o, tried)
			if err != nil || len(tasks) > 0 || c.places == 0 || c.over {
				return tasks, err
			}
		}
	}
}

// accept takes what it can of an offer, in one round trip per shard.
func (c *claim) accept(ctx context.Context, o *offer) (tasks []*model.Envelope, tried int, err error) {
	if c.places == 0 {
		if err := c.reserve(ctx, nil, false); err != nil || c.places == 0 {
			return nil, 0, err
		}
	}
	if mine, err := c.resume(ctx); err != nil || !mine {
		c.over = err == nil
		return nil, 0, err
	}
	if c.server.Err() != nil { // the worker may not have them any more
		return nil, 0, nil
	}
	tried = min(len(o.entries), c.places)
	c.used = tried // in case the result of the calls stays unknown
	if tasks, err = c.take(ctx, o.entries[:tried]); err != nil {
		return nil, 0, err
	}
	return tasks, tried, err
}

// take dispatches the entries to the claim's worker and leaves out those that another claim took first. An entry with an unknown
// result counts as used; what the worker really holds is counted when that matters.
func (c *claim) take(ctx context.Context, entries []*schema.ReadyEntry) ([]*model.Envelope, error) {
	groups := byShard(entries, claimedAtOnce)
	calls := store.CallEach(groups, func(group []*schema.ReadyEntry) *store.Call {
		return c.queues.claimCall(c.WorkerID, c.mark, c.Start, group)
	})
	c.queues.store.DoAll(model.WithActor(ctx, c.WorkerID), "claim", calls)
	got := map[*schema.ReadyEntry]*model.Envelope{}
	var failed error
	unknown := 0
	for i, call := range calls {
		if call.Err != nil {
			failed = call.Err
			unknown += len(groups[i])
			continue
		}
		reply := readClaim(call.Reply, groups[i])
		if reply.fenced {
			failed = &model.Error{Code: workers.WorkerOffline, Op: "claim",
				Message: "the worker is OFFLINE and its tasks are being recovered; register again"}
		}
		for j, v := range reply.tasks {
			if v != nil {
				e := c.queues.tasks.Envelope(v.Task, v.Fence, v.Life)
				e.ReadyAt = schema.ParseMillis(groups[i][j].Since)
				got[groups[i][j]] = e
				c.queues.holdings.Remember(c.WorkerID, e.Attempt)
			}
		}
	}
	var tasks []*model.Envelope
	for _, e := range entries { // in the order of the offer
		if got[e] != nil {
			tasks = append(tasks, got[e])
		}
	}
	c.used = len(tasks) + unknown
	if len(tasks) > 0 {
		return tasks, nil // what failed still waits, or its start timeout expires
	}
	return nil, failed
}
