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
	Types    []string      // of those that the worker registered; nil: all of them, and tasks without a type
	Max      int           // 1 or more; MaxClaim is what it gets at most
	Wait     time.Duration // how long to wait for the first task; 0: not at all
	ClaimID  string        // empty: none; the same one again gets the same tasks, those that are done left out
}

// Validate checks what can be judged without the store.
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
			"is empty, so nothing could be claimed; name types, or leave it out for all that the worker registered")
	}
	for i, y := range r.Types {
		if err := model.CheckID(fmt.Sprintf("types[%d]", i), y); err != nil {
			return err
		}
	}
	return nil
}

// fullRetry is how often a claim of a worker without a free place checks for one although nobody said so: places that other
// claims of the worker have reserved come free without a word.
const fullRetry = time.Second

// Forbidden is the code of a request that the caller's token does not open.
const Forbidden model.Code = "forbidden"

// Claim hands a worker up to r.Max tasks that it can run, oldest first within each kind of task and fair across
// kinds. It answers as soon as there is one, and with none when r.Wait is over or ctx ends: from then on it takes nothing.
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

// claim is one request on its way, owned by the goroutine that makes it. It keeps reserved places only while it may use them.
type claim struct {
	ClaimRequest
	queues *Service
	server context.Context // ends when nobody is to wait for anything any more
	nudge  chan struct{}   // has something when the worker's status, its places or a request with its id may have changed
	leave  func()          // ends that; nil: it is not nudged

	reservation *reservation
	can         *ability
	places      int // that are reserved for it now
	used        int // of these, those that hold tasks, or may

	mark   string    // hash of its id; "": it has none
	owner  string    // names this request among those with that id
	making bool      // no other request with that id may take tasks now
	turn   time.Time // when that is over
	over   bool      // another request makes the claim
}

func (c *claim) run(ctx context.Context) ([]*model.Envelope, error) {
	defer func() {
		if c.leave != nil {
			c.leave()
		}
	}()
	if answered, tasks, err := c.identify(ctx); answered || err != nil {
		return tasks, err
	}
	defer c.rest(ctx)
	if c.Wait > 0 {
		c.listen()
	}
	if err := c.reserve(ctx, true); err != nil {
		return nil, err
	}
	defer c.giveBack(ctx)
	if err := c.checkTypes(); err != nil {
		return nil, err
	}
	for {
		if c.places == 0 {
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

// awaitPlaces waits until the full worker has a free place or the cordoned one is uncordoned, the claim is answered under its id,
// or the wait is over.
func (c *claim) awaitPlaces(ctx context.Context) error {
	for ctx.Err() == nil {
		c.rest(ctx)
		if !c.reservation.Cordoned {
			c.queues.tellWhenFree(ctx, c.WorkerID) // first: what ends from here on says so
		}
		if err := c.reserve(ctx, false); err != nil || c.places > 0 {
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

// refused returns why a claim that has waited for nothing would be refused by now, nil when it would not.
func (c *claim) refused(ctx context.Context) error {
	if c.Wait == 0 || c.server.Err() != nil {
		return nil
	}
	asked := &reservation{Reservation: workers.Reservation{Worker: c.reservation.Worker, Name: model.NewID("")}}
	if err := c.queues.extend(ctx, asked, workers.ReserveArgs{Life: reservationLife}); model.CodeOf(err) != model.Unavailable {
		return err
	}
	return nil // it waited in vain, which is as true
}

// reserve asks the registry for as many places as the claim wants. `heard`: the worker has just asked for them.
func (c *claim) reserve(ctx context.Context, heard bool) error {
	r, err := c.queues.reserve(ctx, c.Scope, c.WorkerID, c.Max, heard)
	if err != nil {
		return err
	}
	c.reservation, c.places = r, r.Places
	c.can = &ability{types: r.Types, runtimes: r.Runtimes, labels: r.Labels}
	if len(r.Types) == 0 { // adopted from a token that was too short for them
		c.giveBack(ctx)
		return &model.Error{Code: workers.WorkerNotFound, Op: "claim", Message: "the store lost what this worker can run; " +
			"let it finish what it holds, and register again for more"}
	}
	if r.Queue != c.Queue {
		c.giveBack(ctx)
		return &model.Error{Code: Forbidden, Op: "claim",
			Message: fmt.Sprintf("the worker registered for the queue %s; it claims from that one only", r.Queue)}
	}
	return nil
}

func (c *claim) giveBack(ctx context.Context) {
	if c.places > 0 {
		r, used := c.reservation, c.used
		c.queues.store.Tidy(ctx, func(ctx context.Context) { c.queues.settle(ctx, r, used) })
		c.places, c.used = 0, 0
	}
}

func (c *claim) checkTypes() error {
	for _, y := range c.Types {
		if !slices.Contains(c.can.types, y) {
			return model.Invalidf("types", "names %s, for which the worker did not register; name some of those, or leave types out", y)
		}
	}
	return nil
}

// await waits in the queue's waitlist for an offer and takes what it can of it. It returns nothing when the wait is over, when
// another request makes the claim, and when the worker has no free place any more.
func (c *claim) await(ctx context.Context) ([]*model.Envelope, error) {
	list := c.queues.waitlists.of(c.queues, c.Scope, c.Queue)
	w := list.join(c)
	defer list.leave(w)
	late := time.NewTimer(time.Until(store.Until(ctx)))
	defer late.Stop()
	var over <-chan struct{} // even a claim that does not wait has the queue looked through once
	nudged := false
	for {
		if c.server.Err() != nil {
			return nil, nil
		}
		if nudged && c.places == 0 { // what it may take it tries to take first
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
		case <-late.C: // the queue could not be looked through in time
			return nil, store.AsUnavailable("claim", c.queues.store.Late())
		case <-c.nudge:
			if c.overtaken(ctx) {
				return nil, nil
			}
			nudged = true
		case o := <-w.offers:
			if o.err != nil {
				return nil, o.err
			}
			if len(o.entries) == 0 { // nothing now: others may have the places while this one waits
				over = ctx.Done()
				c.giveBack(ctx)
				c.rest(ctx)
				continue
			}
			tasks, tried, err := c.accept(ctx, o)
			list.resolve(o, tried)
			if err != nil || len(tasks) > 0 || c.places == 0 || c.over {
				return tasks, err
			}
		}
	}
}

// accept takes what it can of an offer, in one round trip for each shard.
func (c *claim) accept(ctx context.Context, o *offer) (tasks []*model.Envelope, tried int, err error) {
	if c.places == 0 {
		if err := c.reserve(ctx, false); err != nil || c.places == 0 {
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
	c.used = tried // should it not become known what was taken
	if tasks, err = c.take(ctx, o.entries[:tried]); err != nil {
		return nil, 0, err
	}
	return tasks, tried, err
}

// take dispatches the entries to the claim's worker. Those that another claim was faster with are left out. If it is not known
// whether one was taken, it counts as used: what the worker holds will tell when it matters.
func (c *claim) take(ctx context.Context, entries []*schema.ReadyEntry) ([]*model.Envelope, error) {
	groups := byShard(entries, claimedAtOnce)
	calls := store.CallEach(groups, func(group []*schema.ReadyEntry) *store.Call { return c.queues.claimCall(c.WorkerID, c.mark, group) })
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
		return tasks, nil // what failed is found by the start timeout, or still waits
	}
	return nil, failed
}
