package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/lubdub-io/lubdub/tracker/lane"
	"github.com/lubdub-io/lubdub/tracker/model"
)

// runner runs calls on the nodes that have their shards, through lanes or directly.
type runner struct {
	servers    *servers
	keyspace   *Keyspace
	topology   *topology
	deadlines  deadlines
	breakdown  *breakdown
	durability *durability
	metrics    *metrics
	maxPending int // limit of calls that wait in each lane of a node
}

// openLanes opens the lanes of a new node.
func (s *runner) openLanes(n *Node) {
	open := func(flushes, perRoundTrip int, g guarantee) *lane.Lane[*Call] {
		return lane.New(s.maxPending, 1, flushes, func(c []*Call) { s.flushCalls(n, c, perRoundTrip, g) })
	}
	n.vital = open(1, perRoundTrip, nil)
	n.calls = open(2, perRoundTrip, nil)
	n.bulk = lane.NewTurns(s.maxPending, bulkPerRoundTrip, bulkRests, func(c []*Call) bool { return s.flushBulk(n, c) })
	n.durable = open(2, perRoundTrip, s.durability.guarantee)
}

// Do runs one call through its node's lane, and returns its reply or error.
func (s *runner) Do(ctx context.Context, op string, c *Call) (Reply, error) {
	s.DoAll(ctx, op, []*Call{c})
	return c.Reply, c.Err
}

// DoAll runs calls through the lanes of their nodes, and waits until each has a reply or an error. The errors are tracker errors. Calls
// for one shard run in their order.
func (s *runner) DoAll(ctx context.Context, op string, calls []*Call) {
	s.doAllIn(ctx, op, calls, func(n *Node, group []*Call) (int, lane.Refusal) { return n.calls.PutAll(group) })
}

// DoBulk is DoAll for lists and other answers that take many calls. Its lane leaves most of the time of Redis to all others, and
// tenants (ForTenant) have turns in it.
func (s *runner) DoBulk(ctx context.Context, op string, calls []*Call) {
	tenant := TenantOf(ctx)
	s.doAllIn(ctx, op, calls, func(n *Node, group []*Call) (int, lane.Refusal) { return n.bulk.PutAll(tenant, group) })
}

type tenantKey struct{}

// ForTenant returns a context for the calls of one tenant's request. Without it calls are Lubdub's own.
func ForTenant(ctx context.Context, tenant string) context.Context {
	return context.WithValue(ctx, tenantKey{}, tenant)
}

// TenantOf returns the tenant that ForTenant has set; empty: none.
func TenantOf(ctx context.Context) string {
	tenant, _ := ctx.Value(tenantKey{}).(string)
	return tenant
}

// DoVital is Do for a call that no burst of other operations may delay.
func (s *runner) DoVital(ctx context.Context, op string, c *Call) (Reply, error) {
	s.doAllIn(ctx, op, []*Call{c}, func(n *Node, group []*Call) (int, lane.Refusal) { return n.vital.PutAll(group) })
	return c.Reply, c.Err
}

// DoDurably is DoAll for transitions that must be as safe as the deployment promises; ADR 9 lists them. A call that is not confirmed gets
// an error. These calls have their own lane, so that a slow replica delays nothing else.
func (s *runner) DoDurably(ctx context.Context, op string, calls ...*Call) {
	s.doAllIn(ctx, op, calls, func(n *Node, group []*Call) (int, lane.Refusal) {
		if s.durability.guarantee == nil {
			return n.calls.PutAll(group)
		}
		return n.durable.PutAll(group)
	})
}

// Post puts a call into the lane of its node. No caller waits for it or sees its result.
func (s *runner) Post(c *Call) {
	sign(context.Background(), []*Call{c})
	c.waiter, c.Until = lane.NewOwnWaiter(), s.deadlines.Deadline(context.Background())
	c.waiter.Expect(1) // the call's only signal
	_ = s.topology.Node(c.Shard).calls.Put(c)
}

func (s *runner) doAllIn(ctx context.Context, op string, calls []*Call, put func(*Node, []*Call) (int, lane.Refusal)) {
	if len(calls) == 0 {
		return
	}
	sign(ctx, calls)
	w := lane.NewWaiter(len(calls))
	latest := s.deadlines.Deadline(ctx)
	for _, c := range calls {
		c.Until = latest
	}
	for left := calls; len(left) > 0; {
		var again []*Call
		for n, group := range s.groupCalls(left, w) {
			fit, r := put(n, group)
			if r == lane.Closed && s.topology.Node(group[0].Shard) != n {
				again = append(again, group...) // its shards have just moved to another node
				continue
			}
			for _, c := range group[fit:] {
				c.Err = s.Refusal(r, "operations", s.maxPending)
				w.Done()
			}
		}
		left = again
	}
	w.Wait()
	settle(ctx, op, calls)
}

// settle converts errors to tracker errors. A refused call was not begun; the error may state that about the whole request only if
// nothing before it can have changed anything.
func settle(ctx context.Context, op string, calls []*Call) {
	note := changed(ctx)
	before := note != nil && note.Load()
	for _, c := range calls {
		c.Err = AsUnavailable(op, c.Err)
		var e *model.Error
		unseen := errors.As(c.Err, &e) && (e.Code == model.Overloaded || errors.As(c.Err, new(errSilent)))
		switch {
		case unseen && before:
			c.Err = unconfirmed(op)
		case !unseen && note != nil && c.Script.Events: // scripts that change what clients see write events
			note.Store(true)
		}
	}
}

func (s *runner) groupCalls(calls []*Call, w *lane.Waiter) map[*Node][]*Call {
	groups := make(map[*Node][]*Call, 1)
	for _, c := range calls {
		c.waiter = w
		n := s.topology.Node(c.Shard)
		groups[n] = append(groups[n], c)
	}
	return groups
}

// The number of calls in a round trip limits how long it blocks Redis, and delays the beats, which run in between.
const (
	perRoundTrip     = 32
	bulkPerRoundTrip = 4
)

// bulkRests leave five sixths of Redis's time to the other lanes while these use it. A round trip of bulk calls takes it about a
// millisecond. Where many requests wait for bulk calls they are not delayed further, since they would be refused as too late.
var bulkRests = lane.Rests{Times: 5, Longest: 10 * time.Millisecond, UntilWaiting: 64}

// flushBulk flushes bulk calls, and reports whether no other round trip to the node began meanwhile.
func (s *runner) flushBulk(n *Node, calls []*Call) (alone bool) {
	before := n.trips.Load()
	s.flushCalls(n, calls, bulkPerRoundTrip, nil)
	return n.trips.Load() <= before+1
}

// flushCalls flushes the calls of one of a node's lanes.
func (s *runner) flushCalls(n *Node, calls []*Call, perRoundTrip int, g guarantee) {
	var trip []*Call // calls without a result so far
	defer func() {
		if p := recover(); p != nil {
			s.breakdown.BreakDown("a lane of calls", p)
			for _, c := range slices.Concat(trip, calls) {
				c.Err = s.breakdown.Bug()
				c.waiter.Done()
			}
		}
	}()
	buffer := make([]*Call, 0, perRoundTrip)
	for len(calls) > 0 {
		latest := time.Now().Add(s.deadlines.LeastTrip(g))
		for trip = buffer; len(calls) > 0 && len(trip) < perRoundTrip; {
			c := calls[0]
			if calls = calls[1:]; c.Until.Before(latest) {
				c.Err = s.deadlines.TooLateError()
				c.waiter.Done()
			} else {
				trip = append(trip, c)
			}
		}
		if len(trip) == 0 {
			return
		}
		s.execWith(context.Background(), n, trip, g)
		for len(trip) > 0 {
			c := trip[0]
			trip = trip[1:]
			c.waiter.Done()
		}
	}
}

// Refusal returns the error for calls that a lane refused; `what` names the calls, of which `limit` may wait.
func (s *runner) Refusal(r lane.Refusal, what string, limit int) *model.Error {
	if r == lane.Closed {
		return &model.Error{Code: model.Unavailable, Message: "this replica is shutting down; send the request again", RetryAfter: time.Second}
	}
	return &model.Error{
		Code: model.Overloaded, RetryAfter: time.Second,
		Message: fmt.Sprintf("%d %s already wait for Redis on this replica, which is its limit; "+
			"wait as Retry-After says, then retry, or add replicas", limit, what),
	}
}

// AsUnavailable returns err as a tracker error. An error that is none becomes UNAVAILABLE; nil stays nil.
func AsUnavailable(op string, err error) error {
	if err == nil {
		return nil
	}
	if e, ok := errors.AsType[*model.Error](err); ok {
		if e.Op == "" {
			e.Op = op
		}
		return e
	}
	return &model.Error{
		Code: model.Unavailable, Op: op, RetryAfter: time.Second, Cause: err,
		Message: "Redis did not confirm the request; it may or may not have been applied. It is safe to retry",
	}
}
