package holdings_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/internal/testenv"
	"github.com/lubdub-io/lubdub/tracker/holdings"
	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/queues"
	"github.com/lubdub-io/lubdub/tracker/trackertest"
	"github.com/lubdub-io/lubdub/tracker/workers"
)

// strangers names attempts that never existed.
func strangers(n int) []holdings.OwnedAttempt {
	list := make([]holdings.OwnedAttempt, n)
	for i := range list {
		list[i] = holdings.OwnedAttempt{TaskID: fmt.Sprintf("task-%d", i), Number: 1}
	}
	return list
}

// A worker may list as many attempts as it may hold, and some that have ended without its knowledge. A longer list is refused, and
// changes nothing.
func TestAnInventoryIsBoundedByWhatItsWorkerMayHold(t *testing.T) {
	t.Parallel()
	trackertest.Contract(t, func(h *trackertest.Harness) {
		id := h.MustRegister(func(n *model.NewWorker) { n.MaxConcurrent = 10 }).WorkerID
		h.Advance(time.Second)
		h.MustBeatWorker(id, trackertest.Listing(strangers(1010)...))
		before := h.MustWorker(id)
		h.Advance(time.Second)
		var b workers.WorkerBeat
		trackertest.Listing(strangers(1011)...)(&b)
		_, err := h.Workers.Beat(h.Ctx, trackertest.Scope, id, b)
		var f *model.FieldError
		if h.WantCode(err, model.Invalid); !errors.As(err, &f) || f.Field != "tasks" {
			h.Fatalf("a list that is too long: %v", err)
		}
		if after := h.MustWorker(id); !after.LastHeartbeatAt.Equal(before.LastHeartbeatAt) {
			h.Fatalf("a refused beat was applied: %v, before %v", after.LastHeartbeatAt, before.LastHeartbeatAt)
		}
	})
}

// The time for many notices is proportional to their number: it would be minutes if each were compared with all others.
func TestManyNoticesTakeLittleTime(t *testing.T) {
	const n = 200_000
	done := make(chan int)
	go func() { done <- holdings.AddLost(strangers(n), strangers(n)) }()
	ctx, cancel := context.WithTimeout(context.Background(), trackertest.Patience)
	defer cancel()
	select {
	case lost := <-done:
		if lost != n {
			t.Fatalf("%d notices, want %d", lost, n)
		}
	case <-ctx.Done():
		t.Fatal("notices of 200,000 attempts take minutes")
	}
}

// Scripts for the largest inventory, and for everything that it misses, are short.
func TestScriptsAboutTheLargestInventoryAreShort(t *testing.T) {
	testenv.OnlyAll(t)
	testenv.MeasuresScripts(t)
	t.Parallel()
	h := trackertest.Timed(t)
	r := h.MustRegister(func(n *model.NewWorker) { n.MaxConcurrent = model.MaxMaxConcurrent })
	const held = 3000
	for i := range held {
		h.MustCreate(func(n *model.NewTask) {
			n.Queue, n.Type, n.HeartbeatTimeout, n.HeartbeatInterval = "default", "send_email", 0, 0
			n.TaskID = fmt.Sprintf("%0120d", i)
		})
	}
	var mine []holdings.OwnedAttempt
	for len(mine) < held {
		tasks, err := h.Queues.Claim(h.Ctx, queues.ClaimRequest{Scope: trackertest.Scope, WorkerID: r.WorkerID, Queue: "default", Max: 100})
		if err != nil || len(tasks) == 0 {
			t.Fatalf("after %d: %v", len(mine), err)
		}
		for _, e := range tasks {
			mine = append(mine, trackertest.NameOf(e.Attempt))
		}
	}
	h.Short("everything listed, and strangers", func() {
		h.MustBeatWorker(r.WorkerID,
			trackertest.Listing(append(strangers(10000), mine...)...))
	})
	h.Short("everything missed", func() {
		h.MustBeatWorker(r.WorkerID, trackertest.Listing())
		h.MustBeatWorker(r.WorkerID, trackertest.Listing(mine...))
	})
	h.MustBeatWorker(r.WorkerID, trackertest.Listing())
	h.Short("everything lost", func() { h.MustBeatWorker(r.WorkerID, trackertest.Listing()) })
}

// When more is missing than one inventory can miss, the second beat finds the same entries as the first.
func TestInventoryThatMissesVeryMany(t *testing.T) {
	t.Parallel()
	trackertest.Claims(t, func(c *trackertest.Fleet) {
		const n = holdings.MaxMissed + 200
		c.Hire("w1", func(n *model.NewWorker) { n.MaxConcurrent = 10000 })
		var batch []model.NewTask
		for i := range n {
			task := model.NewTask{Scope: trackertest.Scope, TaskID: fmt.Sprintf("t%04d", i), Queue: "q", Type: "x"}
			if err := task.Validate(c.Store.Clock.Now()); err != nil {
				c.Fatal(err)
			}
			batch = append(batch, task)
		}
		for part := range slices.Chunk(batch, 500) {
			c.Tasks.CreateBatch(c.Ctx, part)
		}
		for held := 0; held < n; {
			held += len(c.MustClaim("w1", queues.MaxClaim))
		}
		for i, want := range []int{0, holdings.MaxMissed, 0, n - holdings.MaxMissed} {
			if response := c.MustBeatWorker(c.IDs["w1"], trackertest.Listing()); len(response.Lost) != want {
				c.Fatalf("beat %d: %d lost, want %d", i, len(response.Lost), want)
			}
		}
	})
}
