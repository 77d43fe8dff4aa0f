package tracker_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/internal/redistest"
	"github.com/lubdub-io/lubdub/tracker"
)

// shardTime reads the time of the shard in which a task lives.
func (h *harness) shardTime(id string) int64 {
	h.Helper()
	clock := fmt.Sprintf("lubdub:{%d}:clock", h.ShardOf(scope, id))
	r, err := h.store.Client.Eval(h.ctx, h.store.Scripts.Get("find").Source, []string{clock, "none"}, "L", 0, 0, 0).Slice()
	if err != nil {
		h.Fatal(err)
	}
	return r[1].(int64)
}

// keep moves the clock on while the replica keeps shard time, and calls between once in each slot.
func (h *harness) keep(d time.Duration, between func()) {
	h.Helper()
	for ; d > 0; d -= 100 * time.Millisecond {
		between()
		h.HoldTime()
		h.store.Clock.Advance(100 * time.Millisecond)
		h.tick()
	}
}

// Redis may refuse large batches and take empty beats, as it does near its memory limit. Time stands for the shards of the
// refused beats, so nobody dies of it, and goes on when they land again.
func TestTimeStandsWhileRedisRefusesBeats(t *testing.T) {
	t.Parallel()
	contract(t, func(h *harness) {
		a := h.running(func(n *tracker.NewTask) { n.TaskID = "t1" })
		beats := fmt.Sprintf("lubdub:{%d}:beats:2000", h.ShardOf(scope, "t1"))
		if err := h.store.Client.Rename(h.ctx, beats, beats+"-away").Err(); err != nil {
			h.Fatal(err)
		}
		h.store.Client.Set(h.ctx, beats, "no set", 0) // whatever the cause: a beat is answered with an error
		start := h.shardTime("t1")
		h.keep(5*time.Second, func() { h.wantCode(h.beat(a, "").Err, tracker.Unavailable) })
		if moved := h.shardTime("t1") - start; moved != 0 {
			h.Errorf("time went on by %d ms", moved)
		}
		h.store.Client.Rename(h.ctx, beats+"-away", beats)
		h.sweep()
		h.wantState("t1", tracker.Running, "")
		h.keep(3200*time.Millisecond, func() {})
		h.sweep()
		task := h.wantState("t1", tracker.Failed, tracker.HeartbeatTimeout) // it never beat again: found in the slot after Retry-After and its timeout
		e := task.History[0].Evidence
		if e.Silent != 2100*time.Millisecond || e.OutageCredit != 6100*time.Millisecond {
			h.Errorf("evidence: %+v", e)
		}
		if got := h.events("")["system.outage_credited"]; got != h.Shards() {
			h.Errorf("%d outages were told in %d shards", got, h.Shards())
		}
	})
}

// A store that lost the entry about the time that is being held back still takes beats.
func TestTimeGoesOnWithoutItsEntry(t *testing.T) {
	t.Parallel()
	contract(t, func(h *harness) {
		a := h.running(func(n *tracker.NewTask) { n.TaskID = "t1" })
		beats := fmt.Sprintf("lubdub:{%d}:beats:2000", h.ShardOf(scope, "t1"))
		h.store.Client.Rename(h.ctx, beats, beats+"-away")
		h.store.Client.Set(h.ctx, beats, "no set", 0)
		h.keep(time.Second, func() { h.wantCode(h.beat(a, "").Err, tracker.Unavailable) })
		h.store.Client.Rename(h.ctx, beats+"-away", beats)
		h.store.Client.Del(h.ctx, fmt.Sprintf("lubdub:{%d}:outages", h.ShardOf(scope, "t1")))
		h.store.Clock.Advance(100 * time.Millisecond)
		if b := h.beat(a, ""); b.Err != nil {
			h.Fatal(b.Err)
		}
		h.advance(time.Second)
	})
}

// When Redis refuses everything nothing needs to be held, and nothing is when it is over: the dead are found at once.
func TestTimeIsNotHeldByAnOutage(t *testing.T) {
	t.Parallel()
	contract(t, func(h *harness) {
		a := h.running(func(n *tracker.NewTask) { n.TaskID = "t1" })
		h.keep(time.Second, func() {})
		start := h.shardTime("t1")
		clock := fmt.Sprintf("lubdub:{%d}:clock", h.ShardOf(scope, "t1"))
		h.store.Client.Rename(h.ctx, clock, clock+"-away")
		h.store.Client.Set(h.ctx, clock, "no hash", 0)
		for range 20 {
			h.wantCode(h.beat(a, "").Err, tracker.Unavailable)
			h.HoldTime()
			h.store.Clock.Advance(100 * time.Millisecond)
		}
		h.wantCode(h.beat(a, "").Err, tracker.Unavailable)
		h.store.Client.Rename(h.ctx, clock+"-away", clock)
		h.keep(time.Second, func() {})
		if moved := h.shardTime("t1") - start; moved != 1150 {
			h.Errorf("time went on by %d ms: want 250 for the outage and 900 since", moved)
		}
	})
}

// A full front end cannot hear everyone. Time runs at half speed for as long.
func TestTimeRunsAtHalfSpeedWhileBeatsAreShed(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, s *redistest.Store) {
		h := newHarness(t, s, func(o *tracker.Options) { o.MaxPendingBeats = 2 })
		a := h.running(func(n *tracker.NewTask) { n.TaskID = "t1" })
		start := h.shardTime("t1")
		h.keep(4*time.Second, func() {
			beats := []*tracker.Beat{{Attempt: a}, {Attempt: a}, {Attempt: a}}
			h.Beats(beats)
			h.wantCode(beats[2].Err, tracker.Overloaded)
		})
		if moved := h.shardTime("t1") - start; moved != 2000 {
			h.Errorf("time went on by %d ms in 4 s", moved)
		}
		h.keep(time.Second, func() {})
		if moved := h.shardTime("t1") - start; moved != 2950 {
			h.Errorf("time went on by %d ms in 5 s", moved)
		}
	})
}
