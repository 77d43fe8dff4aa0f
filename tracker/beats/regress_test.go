package beats_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/internal/redistest"
	"github.com/lubdub-io/lubdub/tracker/beats"
	"github.com/lubdub-io/lubdub/tracker/holdings"
	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/queues"
	"github.com/lubdub-io/lubdub/tracker/trackertest"
)

// An old snapshot is restored under load. Workers keep beating with their own tokens for what they claimed, sometimes for the first time;
// the store does not know these attempts. A replica that served the claim, or has opened the attempt before, adopts it; a replica that
// does not know it either reaches no verdict.
func TestClaimedWorkOutlivesAnOldSnapshot(t *testing.T) {
	t.Parallel()
	s, server := redistest.Own(t)
	served, other := trackertest.NewHarness(t, s), trackertest.NewHarness(t, s)
	r := served.MustRegister(func(n *model.NewWorker) { n.MaxConcurrent = 100 })
	queue := func(n int, name string) {
		for i := range n {
			served.MustCreate(func(n *model.NewTask) {
				n.TaskID, n.Queue, n.Type, n.HeartbeatTimeout = fmt.Sprintf("%s-%d", name, i), "default", "send_email", 0
			})
		}
	}
	claim := func(n int) (names []holdings.OwnedAttempt) {
		got, err := served.Queues.Claim(served.Ctx, queues.ClaimRequest{Scope: trackertest.Scope, WorkerID: r.WorkerID, Queue: "default", Max: n})
		if err != nil || len(got) != n {
			t.Fatalf("%d were claimed: %v", len(got), err)
		}
		for _, e := range got {
			names = append(names, holdings.OwnedAttempt{TaskID: e.Task.ID, Number: e.Task.Attempt})
		}
		return names
	}
	open := func(h *trackertest.Harness, names []holdings.OwnedAttempt) []*model.Attempt {
		t.Helper()
		attempts, err := h.Holdings.Owned(h.Ctx, trackertest.Scope, r.WorkerID, names)
		if err != nil {
			t.Fatal(err)
		}
		return attempts
	}
	queue(20, "queued") // before the snapshot, and claimed after it
	served.Advance(time.Second)
	other.MustTick()
	if err := s.Client.Save(served.Ctx).Err(); err != nil {
		t.Fatal(err)
	}
	queue(20, "created")
	names := claim(40)
	opened := names[:10]
	open(other, opened)
	for range 30 {
		served.Advance(time.Second)
		served.MustBeatWorker(r.WorkerID)
	}
	other.MustTick()

	unknown := []holdings.OwnedAttempt{{TaskID: "never-was", Number: 1}}
	if a := open(other, unknown); a[0] != nil {
		t.Errorf("an attempt that never was: %+v", a[0])
	}
	server.Kill()
	if err := server.Restart(); err != nil {
		t.Fatal(err)
	}
	s.Clock.Advance(100 * time.Millisecond) // the snapshot has it too
	trackertest.Until(t, func() bool { return served.Beats.Tick() == nil && other.Beats.Tick() == nil })

	in, doubted := map[string]int{}, 0
	for i, a := range open(other, append(unknown, names...)) {
		switch {
		case a == nil:
			t.Fatalf("%d: an attempt that the store may have lost is refused", i)
		case a == beats.AttemptInDoubt:
			doubted++
		default:
			in[a.TaskID]++
		}
	}
	if doubted != 31 || len(in) != 10 {
		t.Errorf("the other replica doubts %d and knows %d", doubted, len(in))
	}
	var under sync.WaitGroup
	for i, a := range open(served, names) {
		if a == nil || a == beats.AttemptInDoubt {
			t.Fatalf("%s: the replica that served the claim knows nothing of it", names[i])
		}
		under.Go(func() {
			if b := served.MustBeat(a, ""); b.Err != nil {
				t.Errorf("%s: %v", a.TaskID, b.Err)
			}
		})
	}
	under.Wait()
	for i, a := range open(other, names) { // once adopted, every replica knows them
		if a == nil || a == beats.AttemptInDoubt {
			t.Fatalf("%s is not known after its adoption", names[i])
		}
		if _, err := other.Beats.Complete(other.Ctx, a, model.Completion{Outcome: model.Succeeded}); err != nil {
			t.Errorf("%s: %v", a.TaskID, err)
		}
	}
	if adopted := served.Events("")["system.adopted"]; adopted != 40 {
		t.Errorf("%d were adopted", adopted)
	}
}

// Whether a shard's clock went back or is missing, writes are lost, and unknown attempts are in doubt for two minutes.
func TestALostStoreLeavesAttemptsInDoubtForAWhile(t *testing.T) {
	t.Parallel()
	trackertest.Contract(t, func(h *trackertest.Harness) {
		behindBalancers(h) // on the test's clock
		names := []holdings.OwnedAttempt{{TaskID: "t1", Number: 1}}
		doubts := func(when string, want bool) {
			h.Helper()
			a, err := h.Holdings.Owned(h.Ctx, trackertest.Scope, "wkr_1", names)
			if err != nil || (a[0] == beats.AttemptInDoubt) != want {
				h.Errorf("%s: %+v %v", when, a, err)
			}
		}
		h.Advance(time.Second)
		doubts("at the start", false)
		h.Store.Clock.Advance(-20 * time.Millisecond)
		h.MustTick()
		doubts("after a small step of the wall clock", false)
		h.Empty()
		doubts("after the store came back empty", true)
		h.Advance(119 * time.Second)
		doubts("later", true)
		h.Advance(2 * time.Second)
		doubts("two minutes later", false)
		clock := fmt.Sprintf("lubdub:{%d}:clock", h.Tracker.Store.ShardOf(trackertest.Scope, "t1"))
		h.Store.Client.HIncrBy(h.Ctx, clock, "L", -1000)
		h.MustTick()
		doubts("after its clock fell", true)
	})
}
