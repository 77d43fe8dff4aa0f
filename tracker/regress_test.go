package tracker_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/internal/redistest"
	"github.com/lubdub-io/lubdub/tracker"
)

// A snapshot of a while ago comes back under load. Workers go on to beat for what they claimed with their own tokens, some of
// it for the first time; the store knows nothing of it. A replica that served the claim, or has opened the attempt before,
// adopts it; one that knows as little as the store does passes no verdict.
func TestClaimedWorkOutlivesAnOldSnapshot(t *testing.T) {
	t.Parallel()
	s, server := redistest.Own(t)
	served, other := newHarness(t, s), newHarness(t, s)
	r := served.register(func(n *tracker.NewWorker) { n.MaxConcurrent = 100 })
	queue := func(n int, name string) {
		for i := range n {
			served.create(func(n *tracker.NewTask) {
				n.TaskID, n.Queue, n.Type, n.HeartbeatTimeout = fmt.Sprintf("%s-%d", name, i), "default", "send_email", 0
			})
		}
	}
	claim := func(n int) (names []tracker.OwnedAttempt) {
		got, err := served.Claim(served.ctx, tracker.ClaimRequest{Scope: scope, WorkerID: r.WorkerID, Queue: "default", Max: n})
		if err != nil || len(got) != n {
			t.Fatalf("%d were claimed: %v", len(got), err)
		}
		for _, e := range got {
			names = append(names, tracker.OwnedAttempt{TaskID: e.Task.ID, Number: e.Task.Attempt})
		}
		return names
	}
	open := func(h *harness, names []tracker.OwnedAttempt) []*tracker.Attempt {
		t.Helper()
		attempts, err := h.Owned(h.ctx, scope, r.WorkerID, names)
		if err != nil {
			t.Fatal(err)
		}
		return attempts
	}
	queue(20, "queued") // before the snapshot, and claimed after it
	served.advance(time.Second)
	other.tick()
	if err := s.Client.Save(served.ctx).Err(); err != nil {
		t.Fatal(err)
	}
	queue(20, "created")
	names := claim(40)
	opened := names[:10]
	open(other, opened)
	for range 30 {
		served.advance(time.Second)
		served.beatWorker(r.WorkerID)
	}
	other.tick()

	unknown := []tracker.OwnedAttempt{{TaskID: "never-was", Number: 1}}
	if a := open(other, unknown); a[0] != nil {
		t.Errorf("an attempt that never was: %+v", a[0])
	}
	server.Kill()
	if err := server.Restart(); err != nil {
		t.Fatal(err)
	}
	s.Clock.Advance(100 * time.Millisecond) // it is in the snapshot, too
	until(t, func() bool { return served.Tick() == nil && other.Tick() == nil })

	in, doubted := map[string]int{}, 0
	for i, a := range open(other, append(unknown, names...)) {
		switch {
		case a == nil:
			t.Fatalf("%d: an attempt that the store may have lost is refused", i)
		case a == tracker.AttemptInDoubt:
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
		if a == nil || a == tracker.AttemptInDoubt {
			t.Fatalf("%s: the replica that served the claim knows nothing of it", names[i])
		}
		under.Go(func() {
			if b := served.beat(a, ""); b.Err != nil {
				t.Errorf("%s: %v", a.TaskID, b.Err)
			}
		})
	}
	under.Wait()
	for i, a := range open(other, names) { // adopted, they are known to all
		if a == nil || a == tracker.AttemptInDoubt {
			t.Fatalf("%s is not known after its adoption", names[i])
		}
		if _, err := other.Complete(other.ctx, a, tracker.Completion{Outcome: tracker.Succeeded}); err != nil {
			t.Errorf("%s: %v", a.TaskID, err)
		}
	}
	if told := served.events("")["system.adopted"]; told != 40 {
		t.Errorf("%d were adopted", told)
	}
}

// until waits for what does not depend on the test's clock.
func until(t testing.TB, good func() bool) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !good(); <-time.After(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("it never came to be")
		}
	}
}

// Whether a shard's clock fell or is not there at all, writes are lost, and what is unknown is in doubt for two minutes.
func TestALostStoreLeavesAttemptsInDoubtForAWhile(t *testing.T) {
	t.Parallel()
	contract(t, func(h *harness) {
		h.behindBalancers() // on the test's clock
		names := []tracker.OwnedAttempt{{TaskID: "t1", Number: 1}}
		doubts := func(when string, want bool) {
			h.Helper()
			a, err := h.Owned(h.ctx, scope, "wkr_1", names)
			if err != nil || (a[0] == tracker.AttemptInDoubt) != want {
				h.Errorf("%s: %+v %v", when, a, err)
			}
		}
		h.advance(time.Second)
		doubts("at the start", false)
		h.store.Clock.Advance(-20 * time.Millisecond)
		h.tick()
		doubts("after a small step of the wall clock", false)
		h.empty()
		doubts("after the store came back empty", true)
		h.advance(119 * time.Second)
		doubts("later", true)
		h.advance(2 * time.Second)
		doubts("two minutes later", false)
		clock := fmt.Sprintf("lubdub:{%d}:clock", h.ShardOf(scope, "t1"))
		h.store.Client.HIncrBy(h.ctx, clock, "L", -1000)
		h.tick()
		doubts("after its clock fell", true)
	})
}
