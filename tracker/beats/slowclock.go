package beats

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/store"
)

// Shard time runs only while beats can land. A store that does not answer stops it by itself: nothing reaches the clock. But a
// beat may also be refused while others land: by Redis, which near its memory limit takes a small batch and not a large one, or
// by a front end whose lanes are full. Then the replica slows the shard's clock down.
const (
	shedSlow     = 2 * slot             // at half speed for a full lane; renewed in each slot for as long as it is full
	refusedStill = time.Second + 2*slot // still for a refusal: until those who were refused have waited as Retry-After says
	quietSlots   = 4                    // without a write that landed: nothing does
)

// fate is what became of the beats, empty ones included, that a replica has sent to a shard since the last slot.
type fate struct {
	landed  atomic.Bool
	refused atomic.Bool // some, by Redis
	shed    atomic.Bool // some, since a lane was full
	adrift  atomic.Bool // some, since the shard is on its way to another node
}

// Heard records the fate of beats of attempts or workers, not empty ones, and how many of them came to this replica
// together.
func (s *Service) Heard(shard, beats int, err error) {
	k := s.keeper
	k.cutOff.arrived.Add(int64(beats))
	if err == nil {
		return
	}
	f := &k.shards[shard].fate
	if model.CodeOf(err) == model.Overloaded {
		f.shed.Store(true)
		k.cutOff.troubled()
		return
	}
	k.cutOff.unconfirmed(shard)
	switch {
	case store.IsRedirect(err):
		f.adrift.Store(true)
	case !store.IsNetwork(err): // an answer, not silence
		f.refused.Store(true)
	}
}

// slowDown slows down the time of a node's shards while beats are refused there, and that of a single shard while it is on
// its way to another node: its clock and its beats may be on different ones then, so that it would run without them. When
// Redis refuses everything there is nothing to slow down: only when writes landed shortly before may some land and others
// not. It goes past the lanes, which may be full, and waits for nobody.
func (s *Service) slowDown() {
	for n, shards := range s.store.ByNode() {
		node := s.keeper.of(n)
		if node.slowing.Load() {
			continue // what has happened since is seen in the next slot
		}
		landed, refused, shed := false, false, false
		var adrift []int
		for _, shard := range shards {
			f := &s.keeper.shards[shard].fate
			landed = f.landed.Swap(false) || landed
			refused = f.refused.Swap(false) || refused
			shed = f.shed.Swap(false) || shed
			if f.adrift.Swap(false) {
				adrift = append(adrift, shard)
			}
		}
		var still, half time.Duration
		if refused && node.quiet < quietSlots {
			still = refusedStill
		}
		if shed {
			half = shedSlow
		}
		node.quiet++
		if landed {
			node.quiet = 0
		}
		var calls []*store.Call
		for _, shard := range shards {
			stands := still
			if slices.Contains(adrift, shard) {
				stands = refusedStill
			}
			if stands+half > 0 {
				calls = append(calls, s.slowclockCall(shard, stands, half))
			}
		}
		if len(calls) > 0 {
			node.slowing.Store(true)
			s.store.Beside("slowing shard time down", func() {
				defer node.slowing.Store(false)
				s.slow(n, calls)
			})
		}
	}
}

func (s *Service) slow(n *store.Node, calls []*store.Call) {
	s.store.Exec(context.Background(), n, calls)
	for _, c := range calls {
		if c.Err == nil {
			s.metrics.holds.Inc()
		}
	}
}
