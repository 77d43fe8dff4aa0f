package sweep

import (
	"context"
	"maps"
	"sync"
	"time"

	"github.com/lubdub-io/lubdub/tracker/schedules"
	"github.com/lubdub-io/lubdub/tracker/store"
)

// firesPerSecond is how many fires of schedules a sweeper handles per second.
const firesPerSecond = 1000

// scheduleSweep fires schedules in its own rounds, so that no verdict waits for it. After an outage, overdue schedules are handled
// at a limited rate, and task creations give way to heartbeats in any case.
type scheduleSweep struct {
	service *Service
	id      sweeperID
	budget  *fireBudget // shared by the rounds of all nodes

	mu    sync.Mutex
	turns map[*store.Node]*schedules.Turns
}

func newScheduleSweep(s *Service, id sweeperID, perTick int) *scheduleSweep {
	return &scheduleSweep{service: s, id: id, budget: newFireBudget(perTick), turns: map[*store.Node]*schedules.Turns{}}
}

// turnsOf returns the turns of a node and drops those of nodes that are gone.
func (v *scheduleSweep) turnsOf(n *store.Node) *schedules.Turns {
	v.mu.Lock()
	defer v.mu.Unlock()
	t := v.turns[n]
	if t == nil {
		maps.DeleteFunc(v.turns, func(n *store.Node, _ *schedules.Turns) bool { return n.Retired() })
		t = &schedules.Turns{}
		v.turns[n] = t
	}
	return t
}

// sweep handles what is due on a node, once.
func (v *scheduleSweep) sweep(ctx context.Context, r *round) error {
	result, err := v.fireDue(ctx, r, func(fires int) int { return v.budget.take(time.Now(), fires) })
	r.next, r.more = result.Next, result.More
	if wait := v.budget.wait(time.Now()); r.more && wait > 0 {
		r.next, r.more = wait, false
	}
	return err
}

func (v *scheduleSweep) fireDue(ctx context.Context, r *round, allow func(fires int) int) (schedules.RoundResult, error) {
	return v.service.schedules.FireDue(ctx, schedules.Round{
		Node: r.node, Shards: r.shards, Turns: v.turnsOf(r.node), Allow: allow,
		Grace: func(shard int, live []string) time.Duration { return r.grace(v.id, shard, live) },
	})
}

// once handles everything that is due on a node up to the limit of one second, whatever other sweepers do.
func (v *scheduleSweep) once(ctx context.Context, r *round) error {
	v.turnsOf(r.node).Relist()
	left := v.budget.perSecond
	allow := func(fires int) int {
		fires = min(fires, left)
		left -= fires
		return fires
	}
	for left > 0 && ctx.Err() == nil && !v.service.store.IsLate(ctx, nil) {
		result, err := v.fireDue(ctx, r, allow)
		if err != nil || !result.More {
			return err
		}
	}
	return nil
}

// fireBudget limits the fires that a sweeper handles per second. They may be used at once and are refilled gradually, so that a
// tenant whose fires come due right after others used up the budget waits at most budgetPause.
type fireBudget struct {
	perSecond int

	mu   sync.Mutex
	left float64 // at the time `at`
	at   time.Time
}

// budgetPause is how long a sweeper with an empty budget pauses.
const budgetPause = 100 * time.Millisecond

func newFireBudget(perSecond int) *fireBudget {
	return &fireBudget{perSecond: perSecond, left: float64(perSecond)}
}

// take returns how many of the fires may be handled now, and subtracts them.
func (b *fireBudget) take(now time.Time, fires int) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.refill(now)
	fires = min(fires, int(b.left))
	b.left -= float64(fires)
	return fires
}

// wait returns how long until more fires may be handled.
func (b *fireBudget) wait(now time.Time) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.refill(now); b.left >= 1 {
		return 0
	}
	return max(budgetPause, time.Second/time.Duration(b.perSecond))
}

func (b *fireBudget) refill(now time.Time) {
	if !b.at.IsZero() {
		b.left = min(b.left+now.Sub(b.at).Seconds()*float64(b.perSecond), float64(b.perSecond))
	}
	b.at = now
}
