package tracker_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/tracker"
)

// strangers names attempts that nobody has heard of.
func strangers(n int) []tracker.OwnedAttempt {
	list := make([]tracker.OwnedAttempt, n)
	for i := range list {
		list[i] = tracker.OwnedAttempt{TaskID: fmt.Sprintf("task-%d", i), Number: 1}
	}
	return list
}

// A worker lists what it may hold, and some that have ended without its knowing. A longer list is refused, and changes
// nothing.
func TestAnInventoryIsBoundedByWhatItsWorkerMayHold(t *testing.T) {
	t.Parallel()
	contract(t, func(h *harness) {
		id := h.register(func(n *tracker.NewWorker) { n.MaxConcurrent = 10 }).WorkerID
		h.advance(time.Second)
		h.beatWorker(id, listing(strangers(1010)...))
		before := h.worker(id)
		h.advance(time.Second)
		var b tracker.WorkerBeat
		listing(strangers(1011)...)(&b)
		_, err := h.BeatWorker(h.ctx, scope, id, b)
		var f *tracker.FieldError
		if h.wantCode(err, tracker.Invalid); !errors.As(err, &f) || f.Field != "tasks" {
			h.Fatalf("a list that is too long: %v", err)
		}
		if after := h.worker(id); !after.LastHeartbeatAt.Equal(before.LastHeartbeatAt) {
			h.Fatalf("a beat that was refused has been heard: %v, before %v", after.LastHeartbeatAt, before.LastHeartbeatAt)
		}
	})
}

// What a worker must be told takes time in proportion to it: minutes if each were held against all others.
func TestTellingMuchTakesLittleTime(t *testing.T) {
	const n = 200_000
	done := make(chan int)
	go func() { done <- tracker.TellLost(strangers(n), strangers(n)) }()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	select {
	case told := <-done:
		if told != n {
			t.Fatalf("told of %d, want %d", told, n)
		}
	case <-ctx.Done():
		t.Fatal("telling of 200,000 attempts takes longer than 20 s")
	}
}

// Scripts about the largest inventory, and about all that it misses, are short.
func TestScriptsAboutTheLargestInventoryAreShort(t *testing.T) {
	t.Parallel()
	h := timed(t)
	r := h.register(func(n *tracker.NewWorker) { n.MaxConcurrent = tracker.MaxMaxConcurrent })
	const held = 3000
	for i := range held {
		h.create(func(n *tracker.NewTask) {
			n.Queue, n.Type, n.HeartbeatTimeout, n.HeartbeatInterval = "default", "send_email", 0, 0
			n.TaskID = fmt.Sprintf("%0120d", i)
		})
	}
	var mine []tracker.OwnedAttempt
	for len(mine) < held {
		tasks, err := h.Claim(h.ctx, tracker.ClaimRequest{Scope: scope, WorkerID: r.WorkerID, Queue: "default", Max: 100})
		if err != nil || len(tasks) == 0 {
			t.Fatalf("after %d: %v", len(mine), err)
		}
		for _, e := range tasks {
			mine = append(mine, nameOf(e.Attempt))
		}
	}
	h.short("everything listed, and strangers", func() { h.beatWorker(r.WorkerID, listing(append(strangers(10000), mine...)...)) })
	h.short("everything missed", func() {
		h.beatWorker(r.WorkerID, listing())
		h.beatWorker(r.WorkerID, listing(mine...))
	})
	h.beatWorker(r.WorkerID, listing())
	h.short("everything lost", func() { h.beatWorker(r.WorkerID, listing()) })
}
