package beats_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/internal/redistest"
	"github.com/lubdub-io/lubdub/tracker"
	"github.com/lubdub-io/lubdub/tracker/beats"
	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/trackertest"
)

// shardTime returns the time of a task's shard.
func shardTime(h *trackertest.Harness, id string) int64 {
	h.Helper()
	clock := fmt.Sprintf("lubdub:{%d}:clock", h.Tracker.Store.ShardOf(trackertest.Scope, id))
	r, err := h.Store.Eval(h.Ctx, "find", []string{clock, "none"}, "L", 0, 0, 0).Slice()
	if err != nil {
		h.Fatal(err)
	}
	return r[1].(int64)
}

// keep advances the clock while the replica keeps shard time, and calls `between` once in each slot.
func keep(h *trackertest.Harness, d time.Duration, between func()) {
	h.Helper()
	for ; d > 0; d -= 100 * time.Millisecond {
		between()
		h.Beats.HoldTime()
		h.Store.Clock.Advance(100 * time.Millisecond)
		h.MustTick()
	}
}

// Redis may reject large batches and accept empty beats, as it does near its memory limit. Time is paused for the shards of the rejected
// beats, so that no attempt expires because of them, and resumes when beats are stored again.
func TestTimeIsPausedWhileRedisRejectsBeats(t *testing.T) {
	t.Parallel()
	trackertest.Contract(t, func(h *trackertest.Harness) {
		a := h.Running(func(n *model.NewTask) { n.TaskID = "t1" })
		beats := fmt.Sprintf("lubdub:{%d}:beats:2000", h.Tracker.Store.ShardOf(trackertest.Scope, "t1"))
		if err := h.Store.Client.Rename(h.Ctx, beats, beats+"-away").Err(); err != nil {
			h.Fatal(err)
		}
		h.Store.Client.Set(h.Ctx, beats, "no set", 0) // any error will do: beats fail
		start := shardTime(h, "t1")
		keep(h, 5*time.Second, func() { h.WantCode(h.MustBeat(a, "").Err, model.Unavailable) })
		if moved := shardTime(h, "t1") - start; moved != 0 {
			h.Errorf("time advanced by %d ms", moved)
		}
		h.Store.Client.Rename(h.Ctx, beats+"-away", beats)
		h.MustSweep()
		h.WantState("t1", model.Running, "")
		keep(h, 3200*time.Millisecond, func() {})
		h.MustSweep()
		// it never beat again: found in the slot after Retry-After and its timeout
		task := h.WantState("t1", model.Failed, model.HeartbeatTimeout)
		e := task.History[0].Evidence
		if e.Silent != 2100*time.Millisecond || e.OutageCredit != 6100*time.Millisecond {
			h.Errorf("evidence: %+v", e)
		}
		if got := h.Events("")["system.outage_credited"]; got != h.Tracker.Store.Shards() {
			h.Errorf("%d outages were reported in %d shards", got, h.Tracker.Store.Shards())
		}
	})
}

// A store that lost the entry for a pause in progress still accepts beats.
func TestTimeContinuesWithoutItsEntry(t *testing.T) {
	t.Parallel()
	trackertest.Contract(t, func(h *trackertest.Harness) {
		a := h.Running(func(n *model.NewTask) { n.TaskID = "t1" })
		beats := fmt.Sprintf("lubdub:{%d}:beats:2000", h.Tracker.Store.ShardOf(trackertest.Scope, "t1"))
		h.Store.Client.Rename(h.Ctx, beats, beats+"-away")
		h.Store.Client.Set(h.Ctx, beats, "no set", 0)
		keep(h, time.Second, func() { h.WantCode(h.MustBeat(a, "").Err, model.Unavailable) })
		h.Store.Client.Rename(h.Ctx, beats+"-away", beats)
		h.Store.Client.Del(h.Ctx, fmt.Sprintf("lubdub:{%d}:outages", h.Tracker.Store.ShardOf(trackertest.Scope, "t1")))
		h.Store.Clock.Advance(100 * time.Millisecond)
		if b := h.MustBeat(a, ""); b.Err != nil {
			h.Fatal(b.Err)
		}
		h.Advance(time.Second)
	})
}

// When Redis rejects everything, time is not held back, and not afterwards either: the dead are found at once.
func TestTimeIsNotHeldByAnOutage(t *testing.T) {
	t.Parallel()
	trackertest.Contract(t, func(h *trackertest.Harness) {
		a := h.Running(func(n *model.NewTask) { n.TaskID = "t1" })
		keep(h, time.Second, func() {})
		start := shardTime(h, "t1")
		clock := fmt.Sprintf("lubdub:{%d}:clock", h.Tracker.Store.ShardOf(trackertest.Scope, "t1"))
		h.Store.Client.Rename(h.Ctx, clock, clock+"-away")
		h.Store.Client.Set(h.Ctx, clock, "no hash", 0)
		for range 20 {
			h.WantCode(h.MustBeat(a, "").Err, model.Unavailable)
			h.Beats.HoldTime()
			h.Store.Clock.Advance(100 * time.Millisecond)
		}
		h.WantCode(h.MustBeat(a, "").Err, model.Unavailable)
		h.Store.Client.Rename(h.Ctx, clock+"-away", clock)
		keep(h, time.Second, func() {})
		if moved := shardTime(h, "t1") - start; moved != 1150 {
			h.Errorf("time advanced by %d ms: want 250 for the outage and 900 since", moved)
		}
	})
}

// A full front end cannot accept all beats. Time runs at half speed meanwhile.
func TestTimeRunsAtHalfSpeedWhileBeatsAreShed(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, s *redistest.Store) {
		h := trackertest.NewHarness(t, s, func(o *tracker.Options) { o.MaxPendingBeats = 2 })
		a := h.Running(func(n *model.NewTask) { n.TaskID = "t1" })
		start := shardTime(h, "t1")
		keep(h, 4*time.Second, func() {
			beats := []*beats.Beat{{Attempt: a}, {Attempt: a}, {Attempt: a}}
			h.Beats.BeatMany(beats)
			h.WantCode(beats[2].Err, model.Overloaded)
		})
		if moved := shardTime(h, "t1") - start; moved != 2000 {
			h.Errorf("time advanced by %d ms in 4 s", moved)
		}
		keep(h, time.Second, func() {})
		if moved := shardTime(h, "t1") - start; moved != 2950 {
			h.Errorf("time advanced by %d ms in 5 s", moved)
		}
	})
}
