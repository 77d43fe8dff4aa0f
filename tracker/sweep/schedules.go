package sweep

import (
	"context"
	"sync"
	"time"

	"github.com/lubdub-io/lubdub/tracker/schedules"
)

// DefaultFiresPerTick is how many fires of schedules a sweeper deals with a second where nothing else is said.
const DefaultFiresPerTick = 1000

// scheduleSweep fires schedules, in rounds of its own: no verdict waits for it. It knows no hurry: schedules that come back
// together after an outage are worked off so many fires a second, and creations give way to beats in any case.
type scheduleSweep struct {
	service *Service
	id      sweeperID
	perTick int

	mu   sync.Mutex // the rounds of all nodes share the second
	tick time.Time  // when it began
	left int        // fires that it still allows
}

func newScheduleSweep(s *Service, id sweeperID, perTick int) *scheduleSweep {
	return &scheduleSweep{service: s, id: id, perTick: perTick}
}

// sweep looks once at what is due on a node.
func (v *scheduleSweep) sweep(ctx context.Context, r *round) error {
	looked, err := v.look(ctx, r, v.allow)
	r.next, r.more = looked.Next, looked.More
	if wait := v.wait(time.Now()); r.more && wait > 0 {
		r.next, r.more = wait, false
	}
	return err
}

func (v *scheduleSweep) look(ctx context.Context, r *round, allow func(fires int) int) (schedules.Looked, error) {
	return v.service.schedules.FireDue(ctx, schedules.Look{
		Node: r.node, Shards: r.shards, Allow: allow,
		Grace: func(shard int, live []string) time.Duration { return r.grace(v.id, shard, live) },
	})
}

// allow returns how many of some fires may be dealt with now, and counts them.
func (v *scheduleSweep) allow(fires int) int {
	v.mu.Lock()
	defer v.mu.Unlock()
	if now := time.Now(); now.Sub(v.tick) >= time.Second {
		v.tick, v.left = now, v.perTick
	}
	fires = min(fires, v.left)
	v.left -= fires
	return fires
}

// wait returns how long no more fires may be dealt with.
func (v *scheduleSweep) wait(now time.Time) time.Duration {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.left > 0 {
		return 0
	}
	return v.tick.Add(time.Second).Sub(now)
}

// once deals with all that is due on a node, but no more than one second allows, whatever other sweepers do.
func (v *scheduleSweep) once(ctx context.Context, r *round) error {
	left := v.perTick
	allow := func(fires int) int {
		fires = min(fires, left)
		left -= fires
		return fires
	}
	for left > 0 && ctx.Err() == nil && !v.service.store.IsLate(ctx, nil) {
		looked, err := v.look(ctx, r, allow)
		if err != nil || !looked.More {
			return err
		}
	}
	return nil
}
