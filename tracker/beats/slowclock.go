package beats

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/store"
)

// Shard time advances only while beats can be stored. A store that does not respond stops it automatically: nothing reaches the clock. But
// some beats may be refused while others are stored: by Redis, which near its memory limit accepts a small batch and rejects a large one,
// or by a front end whose lanes are full. Then the replica slows the shard's clock down.
const (
	shedSlow     = 2 * slot             // at half speed for a full lane; renewed in each slot while it is full
	refusedStill = time.Second + 2*slot // paused for a refusal: until refused clients have waited for Retry-After
	quietSlots   = 4                    // slots without a stored write: from then on nothing can be stored
)

// slotResults is the results of the beats, empty ones included, that a replica has sent to a shard since the last slot.
type slotResults struct {
	stored  atomic.Bool
	refused atomic.Bool // Redis rejected some
	shed    atomic.Bool // a full lane refused some
	adrift  atomic.Bool // some failed because the shard is moving to another node
}

// RecordResult records the result of beats of attempts or workers, but not of empty ones, and how many of them arrived at this replica
// together.
func (s *Service) RecordResult(shard, beats int, err error) {
	k := s.keeper
	k.cutOff.arrived.Add(int64(beats))
	if err == nil {
		return
	}
	f := &k.shards[shard].results
	if model.CodeOf(err) == model.Overloaded {
		f.shed.Store(true)
		k.cutOff.troubled()
		return
	}
	k.cutOff.unconfirmed(shard)
	switch {
	case store.IsRedirect(err):
		f.adrift.Store(true)
	case !store.IsNetwork(err): // an error reply, not silence
		f.refused.Store(true)
	}
}

// slowDown slows down the time of a node's shards while beats are refused there, and of a single shard while it moves to another node:
// its clock and its beats may then be on different nodes, so that time would run without beats. When Redis refuses everything there is
// nothing to slow down: only when writes were stored shortly before may some succeed and others not. It bypasses the lanes, which may be
// full, and does not wait.
func (s *Service) slowDown() {
	for n, shards := range s.store.ByNode() {
		node := s.keeper.of(n)
		if node.slowing.Load() {
			continue // the next slot sees what has happened since
		}
		stored, refused, shed := false, false, false
		var adrift []int
		for _, shard := range shards {
			f := &s.keeper.shards[shard].results
			stored = f.stored.Swap(false) || stored
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
		if stored {
			node.quiet = 0
		}
		var calls []*store.Call
		for _, shard := range shards {
			pause := still
			if slices.Contains(adrift, shard) {
				pause = refusedStill
			}
			if pause+half > 0 {
				calls = append(calls, s.slowclockCall(shard, pause, half))
			}
		}
		if len(calls) > 0 {
			node.slowing.Store(true)
			s.store.Go("slowing shard time down", func() {
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
