package queues

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/schema"
	"github.com/lubdub-io/lubdub/tracker/store"
	"github.com/lubdub-io/lubdub/tracker/tasks"
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
		return model.Invalidf("types", "is empty, so nothing could be claimed; name types, or leave it out for all that the worker registered")
	}
	for i, y := range r.Types {
		if err := model.CheckID(fmt.Sprintf("types[%d]", i), y); err != nil {
			return err
		}
	}
	return nil
}

// fullRetry is how often a claim of a worker without a free place looks whether there is one, though nobody said so:
// places that other claims of the worker have reserved come free without a word.
const fullRetry = time.Second

// Forbidden is the code of a request that the caller's token does not open.
const Forbidden model.Code = "forbidden"

// Claim hands a worker up to r.Max tasks that it can run, oldest first within each kind of task and fair across
// kinds. It answers as soon as there is one, and with none when r.Wait is over or ctx ends.
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

// claim is one request on its way. It holds reserved places only while it may use them.
type claim struct {
	ClaimRequest
	queues *Service
	server context.Context // ends when nobody is to wait for anything any more
	nudge  chan struct{}   // has something when the worker's status may have changed, a place may be free, or a request with its id is over
	leave  func()          // ends that; nil: it is not nudged
	grant  *grant          // what the worker can run
	places int             // places that are reserved for it now
	used   int             // of these, those that hold tasks, or may
	mark   string          // hash of its id; "": it has none
	owner  string          // names this request among those with that id
	making bool            // no other request with that id may take tasks now
	turn   time.Time       // when that is over
	over   bool            // another request makes the claim
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

// awaitRoom waits until the full worker has a free place, the claim is answered under its id, or the wait is over.
func (c *claim) awaitPlaces(ctx context.Context) error {
	for ctx.Err() == nil {
		c.rest(ctx)
		c.queues.tellWhenFree(ctx, c.WorkerID) // first: what ends from here on says so
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

// refused tells why a claim that has waited for nothing would be refused by now, nil when it would not.
func (c *claim) refused(ctx context.Context) error {
	if c.Wait == 0 || c.server.Err() != nil {
		return nil
	}
	g := &grant{name: model.NewID(""), worker: c.grant.worker}
	if err := c.queues.doReserve(ctx, g, c.queues.reserveCall(g, 0, "", "", false)); model.CodeOf(err) != model.Unavailable {
		return err
	}
	return nil // it waited in vain, which is as true
}

// reserve asks the registry for as many places as the claim wants. `hear`: the worker has just asked for them.
func (c *claim) reserve(ctx context.Context, hear bool) error {
	g, err := c.queues.reserveClaim(ctx, c.Scope, c.WorkerID, c.Max, hear)
	if err != nil {
		return err
	}
	c.grant, c.places = g, g.Max
	if len(g.Types) == 0 { // adopted from a token that was too short for them
		c.giveBack(ctx)
		return &model.Error{Code: workers.WorkerNotFound, Op: "claim", Message: "the store lost what this worker can run; let it finish what it holds, and register again for more"}
	}
	if g.Queue != c.Queue {
		c.giveBack(ctx)
		return &model.Error{Code: Forbidden, Op: "claim", Message: fmt.Sprintf("the worker registered for the queue %s; it claims from that one only", g.Queue)}
	}
	return nil
}

func (c *claim) giveBack(ctx context.Context) {
	if c.places > 0 {
		can, used := c.grant, c.used
		c.queues.store.Tidy(ctx, func(ctx context.Context) { c.queues.settleClaim(ctx, can, used) })
		c.places, c.used = 0, 0
	}
}

func (c *claim) checkTypes() error {
	for _, y := range c.Types {
		if !slices.Contains(c.grant.Types, y) {
			return model.Invalidf("types", "names %s, for which the worker did not register; name some of those, or leave types out", y)
		}
	}
	return nil
}

// await waits in the queue's room for an offer and takes what it can of it. It gives nothing when the wait is over, when
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
	tried = min(len(o.entries), c.places)
	c.used = tried // should it not become known what was taken
	if tasks, err = c.take(ctx, o.entries[:tried]); err != nil {
		return nil, 0, err
	}
	return tasks, tried, err
}

// take dispatches the entries to the claim's worker. Those that another claim was faster with are left out. What it is
// not known of whether it was taken counts as used: what the worker holds will tell when it matters.
func (c *claim) take(ctx context.Context, entries []*schema.ReadyEntry) ([]*model.Envelope, error) {
	byShard := map[int][]*schema.ReadyEntry{}
	for _, e := range entries {
		byShard[e.Shard] = append(byShard[e.Shard], e)
	}
	var calls []*store.Call
	var groups [][]*schema.ReadyEntry
	for shard, group := range byShard {
		for part := range slices.Chunk(group, claimLimit) {
			calls = append(calls, c.takeCall(shard, part))
			groups = append(groups, part)
		}
	}
	c.queues.store.DoAll(ctx, "claim", calls)
	got := map[*schema.ReadyEntry]*model.Envelope{}
	var failed error
	unknown := 0
	for i, call := range calls {
		if call.Err != nil {
			failed = call.Err
			unknown += len(groups[i])
			continue
		}
		if call.Reply.Int(1) == 1 {
			failed = &model.Error{Code: workers.WorkerOffline, Op: "claim", Message: "the worker is OFFLINE and its tasks are being recovered; register again"}
		}
		for j, e := range groups[i] {
			if v := c.read(call.Reply, 2+3*j, e.Ref); v != nil {
				got[e] = c.queues.tasks.Envelope(v.Task, v.Fence, v.Life)
				c.queues.holdings.Remember(c.WorkerID, got[e].Attempt)
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

func (c *claim) takeCall(shard int, entries []*schema.ReadyEntry) *store.Call {
	k := c.queues.store.Keys[shard]
	keys := append(append(make([]string, 0, len(k.Fixed)+2+5*len(entries)), k.Fixed...), k.Pauses, k.Fences)
	args := []any{int64(model.DefaultTokenTTL / time.Second), int64(model.MaxTokenTTL / time.Second), model.Millis(model.DefaultClaimStartTimeout), c.WorkerID, c.mark}
	for _, e := range entries {
		keys = k.OfTask(keys, e.Ref.Scope, e.Ref.ID, e.Ref.Run, e.Ref.TimeoutMs)
		args = append(args, e.Ref.Scope.String(), e.Ref.ID, e.Text, model.NewFence())
	}
	return store.NewCall(shard, c.queues.store.Scripts.Get("claim"), keys, args...)
}

// read makes the view of one task from the three parts of a reply that begin at i; nil: it was not taken.
func (c *claim) read(re store.Reply, i int, r *schema.TaskRef) *tasks.View {
	return tasks.ReadTask(r, store.Reply{re.At(0), re.At(i), re.At(i + 1), re.At(i + 2), "", "", int64(0)})
}

// How sweepers share the work and how much they take at once.
const (
	claimLimit = 25 // the same of claims, which answer with the tasks
)
