package tasks_test

import (
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/internal/redistest"
	"github.com/lubdub-io/lubdub/tracker"
	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/trackertest"
)

func TestIdempotentCreation(t *testing.T) {
	t.Parallel()
	trackertest.Contract(t, func(h *trackertest.Harness) {
		n := model.NewTask{Scope: trackertest.Scope, IdempotencyKey: "k1", IdempotencyHash: "h1"}
		if err := n.Validate(h.Store.Clock.Now()); err != nil {
			h.Fatal(err)
		}
		first, err := h.Tasks.Create(h.Ctx, n)
		if err != nil {
			h.Fatal(err)
		}
		if _, err := h.Beats.Start(h.Ctx, first.Envelope.Attempt, model.Report{}); err != nil {
			h.Fatal(err)
		}
		h.Advance(time.Second)
		again, err := h.Tasks.Create(h.Ctx, n)
		if err != nil || again.Task.ID != first.Task.ID || *again.Envelope.Attempt != *first.Envelope.Attempt ||
			again.Task.State != model.Dispatched {
			h.Fatalf("%+v\n%+v %v", again.Envelope, first.Envelope, err)
		}
		n.IdempotencyHash = "h2"
		_, err = h.Tasks.Create(h.Ctx, n)
		h.WantCode(err, model.IdempotencyMismatch)
		page, err := h.Tasks.List(h.Ctx, model.TaskFilter{Scope: trackertest.Scope})
		if err != nil || page.Total != 1 {
			h.Fatalf("%+v %v", page, err)
		}
	})
}

// A creation with a key is one call, also when it is repeated; one whose key was reserved under another ID and that was then cut off is
// completed under that ID.
func TestACreationWithAKeyIsOneCall(t *testing.T) {
	t.Parallel()
	trackertest.Contract(t, func(h *trackertest.Harness) {
		calls := trackertest.CountScripts(h.Tracker)
		n := model.NewTask{Scope: trackertest.Scope, IdempotencyKey: "k1", IdempotencyHash: "h1", Queue: "q"}
		if err := n.Validate(h.Store.Clock.Now()); err != nil {
			h.Fatal(err)
		}
		var first *model.Created
		for range 2 {
			c, err := h.Tasks.Create(h.Ctx, n)
			if err != nil {
				h.Fatal(err)
			}
			if first == nil {
				first = c
			}
			if c.Task.ID != first.Task.ID || c.Task.RunID != first.Task.RunID || !c.Task.CreatedAt.Equal(first.Task.CreatedAt) {
				h.Fatalf("%+v, and then %+v", first.Task, c.Task)
			}
		}
		if n := calls(); n["create"] == 0 || n["idempotency_key"] != 0 {
			h.Errorf("two creations made the calls %v", n)
		}
		key := trackertest.IdempotencyKey(h.Tracker, trackertest.Scope, "k2")
		if err := h.Store.Client.HSet(h.Ctx, key, "h", "h1", "id", "t2", "f", "abcd").Err(); err != nil {
			h.Fatal(err)
		}
		n.IdempotencyKey = "k2"
		for range 2 {
			if c, err := h.Tasks.Create(h.Ctx, n); err != nil || c.Task.ID != "t2" {
				h.Fatalf("%+v %v, want t2", c, err)
			}
		}
		if page, err := h.Tasks.List(h.Ctx, model.TaskFilter{Scope: trackertest.Scope}); err != nil || page.Total != 2 {
			h.Fatalf("%+v %v, want two tasks", page, err)
		}
		if h.Store.Client.HGet(h.Ctx, key, "c").Val() == "" {
			h.Error("the key was not marked")
		}
	})
}

func TestAdoption(t *testing.T) {
	t.Parallel()
	trackertest.Contract(t, func(h *trackertest.Harness) {
		a := h.Running(func(n *model.NewTask) { n.TaskID, n.RunID = "t1", "r1" })
		for i, callback := range []func() error{
			func() error { return h.MustBeat(a, "").Err },
			func() error { _, err := h.Beats.Start(h.Ctx, a, model.Report{}); return err },
			func() error {
				_, err := h.Beats.Complete(h.Ctx, a, model.Completion{Outcome: model.Succeeded})
				return err
			},
		} {
			if err := h.Store.Client.FlushDB(h.Ctx).Err(); err != nil { // the store is restarted empty
				h.Fatal(err)
			}
			h.Store.Clock.Advance(0)
			h.MustTick()
			if err := callback(); err != nil {
				h.Fatalf("callback %d: %v", i, err)
			}
			task := h.MustGet("t1")
			if task.Attempt != 1 || task.RunID != "r1" || task.State != model.Running && i < 2 {
				h.Fatalf("callback %d: %+v", i, task)
			}
		}
		h.WantState("t1", model.Succeeded, "")
		// A record older than the token: the store lost attempt 2.
		b := h.Running(func(n *model.NewTask) { n.TaskID = "t2" })
		lost := *b
		lost.Number, lost.Fence = 2, "wxyz"
		if err := h.MustBeat(h.Beats.Attempt(lost), "").Err; err != nil {
			h.Fatal(err)
		}
		h.WantCode(h.MustBeat(b, "").Err, model.AttemptMismatch)
		if task := h.MustGet("t2"); task.Attempt != 2 || task.State != model.Running || len(task.History) != 1 {
			h.Fatalf("%+v", task)
		}
	})
}

// However tasks are spread over shards, every task is listed once, ordered by ID, and the last page is marked as such.
func TestPagesOfAnySpread(t *testing.T) {
	t.Parallel()
	for _, shards := range []int{1, 3, 16} {
		t.Run(fmt.Sprint(shards), func(t *testing.T) {
			t.Parallel()
			trackertest.Contract(t, func(h *trackertest.Harness) {
				const n = 40
				var want []string
				for i := range n {
					id := fmt.Sprintf("t%02d", i)
					h.Running(func(n *model.NewTask) { n.TaskID, n.RunID = id, "r1" })
					want = append(want, id)
				}
				for size := range n + 1 {
					for _, run := range []string{"", "r1"} {
						var got []string
						f := model.TaskFilter{Scope: trackertest.Scope, RunID: run, PageSize: size + 1}
						for pages := 1; ; pages++ {
							page, err := h.Tasks.List(h.Ctx, f)
							if err != nil {
								h.Fatal(err)
							}
							if page.Total != n {
								h.Fatalf("%d in all", page.Total)
							}
							for _, task := range page.Tasks {
								got = append(got, task.ID)
							}
							if f.After = page.Next; f.After == "" {
								if pages != (n+size)/(size+1) {
									h.Fatalf("%d pages of %d", pages, size+1)
								}
								break
							}
						}
						if !slices.Equal(got, want) {
							h.Fatalf("pages of %d: %v", size+1, got)
						}
					}
				}
			}, func(o *tracker.Options) { o.Shards = shards })
		})
	}
}

func TestARunOfAnySizeIsCancelledWhole(t *testing.T) {
	t.Parallel()
	trackertest.Contract(t, func(h *trackertest.Harness) {
		for range 501 {
			h.MustCreate(func(n *model.NewTask) { n.RunID = "r1" })
		}
		run, err := h.Tasks.CancelRun(h.Ctx, trackertest.Scope, "r1", model.CancelRequest{})
		if err != nil || run.Counts[model.Cancelled] != 501 {
			h.Fatalf("%+v, %v", run, err)
		}
	}, func(o *tracker.Options) { o.Shards = 1 })
}

// Pages stay correct while tasks are created, end and change state between them: a task that exists all the time is listed once.
func TestPages(t *testing.T) {
	t.Parallel()
	trackertest.Contract(t, func(h *trackertest.Harness) {
		attempts := map[string]*model.Attempt{}
		for i := range 30 {
			id := fmt.Sprintf("t%02d", i)
			attempts[id] = h.Running(func(n *model.NewTask) { n.TaskID, n.RunID, n.Type = id, "r1", []string{"a", "b"}[i%2] })
		}
		for _, f := range []model.TaskFilter{{}, {RunID: "r1"}, {Type: "a"}} {
			f.Scope, f.PageSize = trackertest.Scope, 7
			seen := map[string]int{}
			for pages := 0; ; pages++ {
				page, err := h.Tasks.List(h.Ctx, f)
				if err != nil {
					h.Fatal(err)
				}
				for _, task := range page.Tasks {
					seen[task.ID]++
				}
				if (page.Total == -1) != (f.Type != "") {
					h.Fatalf("total %d", page.Total)
				}
				if page.Next == "" {
					break
				}
				f.After = page.Next
				for _, i := range []int{pages, 29 - pages} { // after and before the cursor, from RUNNING to SUCCEEDED
					_, _ = h.Beats.Complete(h.Ctx, attempts[fmt.Sprintf("t%02d", i)], model.Completion{Outcome: model.Succeeded})
				}
			}
			want := 30
			if f.Type != "" {
				want = 15
			}
			for id, n := range seen {
				if n != 1 {
					h.Errorf("%+v: %s seen %d times", f, id, n)
				}
			}
			if len(seen) != want {
				h.Errorf("%+v: %d tasks seen, want %d", f, len(seen), want)
			}
		}
		run, err := h.Tasks.CancelRun(h.Ctx, trackertest.Scope, "r1", model.CancelRequest{Reason: "stop"})
		if err != nil || run.Total != 30 || run.Counts[model.Running]+run.Counts[model.Succeeded] != 30 {
			h.Fatalf("%+v %v", run, err)
		}
		own, err := h.Tasks.Run(h.Ctx, trackertest.Scope, h.MustCreate().Task.RunID)
		if err != nil || own.Total != 1 || own.Counts[model.Dispatched] != 1 {
			h.Fatalf("its own run: %+v %v", own, err)
		}
		_, err = h.Tasks.Run(h.Ctx, trackertest.Scope, "run_nosuch")
		h.WantCode(err, model.RunNotFound)
	})
}

// Of two creations of one ID in a batch the first wins, whatever runs concurrently.
func TestBatchKeepsItsOrder(t *testing.T) {
	t.Parallel()
	trackertest.Contract(t, func(h *trackertest.Harness) {
		for round := range 20 {
			var tasks []model.NewTask
			for i := range 40 {
				n := model.NewTask{Scope: trackertest.Scope, TaskID: fmt.Sprintf("t%d-%d", round, i/2), Key: fmt.Sprint(i % 2)}
				if err := n.Validate(h.Store.Clock.Now()); err != nil {
					h.Fatal(err)
				}
				tasks = append(tasks, n)
			}
			for i, r := range h.Tasks.CreateBatch(h.Ctx, tasks) {
				if want := map[int]model.Code{0: "", 1: model.Exists}[i%2]; model.CodeOf(r.Err) != want {
					h.Fatalf("round %d, creation %d: %v", round, i, r.Err)
				}
			}
		}
	})
}

// A repeat gets the first result as long as the key is kept, even after the deadline has passed. A key that is not known, or whose
// task was never created, is refused as without a key, and is free for a corrected body.
func TestIdempotentCreationAfterItsDeadline(t *testing.T) {
	t.Parallel()
	trackertest.Contract(t, func(h *trackertest.Harness) {
		late := func(key string, change ...func(*model.NewTask)) model.NewTask {
			n := model.NewTask{Scope: trackertest.Scope, IdempotencyKey: key, IdempotencyHash: "h1",
				Deadline: h.Store.Clock.Now().Add(time.Minute)}
			for _, f := range change {
				f(&n)
			}
			return n
		}
		validate := func(n *model.NewTask) {
			h.Helper()
			if err := n.Validate(h.Store.Clock.Now()); err != nil {
				h.Fatal(err)
			}
		}
		marked, unmarked, lost := late("k1"), late("k2"), late("k3")
		queued := late("k4", func(n *model.NewTask) { n.Queue = "q" })
		first := map[string]string{}
		for _, n := range []*model.NewTask{&marked, &unmarked, &lost, &queued} {
			validate(n)
			c, err := h.Tasks.Create(h.Ctx, *n)
			if err != nil {
				h.Fatal(err)
			}
			first[n.IdempotencyKey] = c.Task.ID
		}
		for _, n := range []model.NewTask{unmarked, lost} { // the process died before the key was marked
			if err := h.Store.Client.HDel(h.Ctx, trackertest.IdempotencyKey(h.Tracker, trackertest.Scope, n.IdempotencyKey), "c",
				"w").Err(); err != nil {
				h.Fatal(err)
			}
		}
		// … and before it was created
		if err := h.Store.Client.Del(h.Ctx, trackertest.TaskRecord(h.Tracker, trackertest.Scope, first["k3"])).Err(); err != nil {
			h.Fatal(err)
		}
		h.Advance(2 * time.Minute)
		h.MustSweep()
		unknown := late("k5", func(n *model.NewTask) { n.Deadline = h.Store.Clock.Now().Add(-time.Second) })
		batch := []model.NewTask{marked, unmarked, lost, queued, unknown}
		for i := range batch {
			validate(&batch[i])
		}
		for range 2 {
			for i, r := range h.Tasks.CreateBatch(h.Ctx, batch) {
				key := batch[i].IdempotencyKey
				if key == "k3" || key == "k5" {
					h.WantCode(r.Err, model.Invalid)
					continue
				}
				if r.Err != nil || r.Created.Task.ID != first[key] {
					h.Fatalf("%s: %+v %v, want %s", key, r.Created, r.Err, first[key])
				}
			}
		}
		h.WantState(first["k2"], model.Failed, model.DeadlineExceeded)
		better := late("k5")
		better.IdempotencyHash = "h2"
		validate(&better)
		if _, err := h.Tasks.Create(h.Ctx, better); err != nil {
			h.Fatal(err)
		}
		marked.IdempotencyHash = "h2"
		validate(&marked)
		_, err := h.Tasks.Create(h.Ctx, marked)
		h.WantCode(err, model.IdempotencyMismatch)
		marked.IdempotencyKey = ""
		if err := marked.Validate(h.Store.Clock.Now()); model.CodeOf(err) != model.Invalid {
			h.Errorf("without a key: %v", err)
		}
	})
}

// A filtered list examines its tasks by the hundred, no matter how small its pages are.
func TestAFilteredListOfSmallPages(t *testing.T) {
	t.Parallel()
	h := trackertest.NewHarness(t, redistest.Real(t))
	var batch []model.NewTask
	for i := range 300 {
		n := model.NewTask{Scope: trackertest.Scope, TaskID: fmt.Sprintf("t%03d", i), Queue: "q", Type: "x"}
		if i >= 298 {
			n.Type = "rare"
		}
		if err := n.Validate(h.Store.Clock.Now()); err != nil {
			h.Fatal(err)
		}
		batch = append(batch, n)
	}
	h.Tasks.CreateBatch(h.Ctx, batch)
	var rounds atomic.Int64
	trackertest.After(h.Tracker, "list", func() { rounds.Add(1) })
	f := model.TaskFilter{Scope: trackertest.Scope, Type: "rare", PageSize: 1}
	for _, want := range []string{"t298", "t299"} {
		rounds.Store(0)
		page, err := h.Tasks.List(h.Ctx, f)
		if err != nil || len(page.Tasks) != 1 || page.Tasks[0].ID != want {
			h.Fatalf("%+v %v, want %s", page, err, want)
		}
		if n := rounds.Load(); n > 5 {
			h.Errorf("%d rounds for %s", n, want)
		}
		f.After = page.Next
	}
	if f.After != "" {
		h.Errorf("after the last one comes %q", f.After)
	}
}

// A worker that ends between its selection and the creation leaves no task waiting for it.
func TestPlacementOnAWorkerThatHasJustEnded(t *testing.T) {
	t.Parallel()
	trackertest.Contract(t, func(h *trackertest.Harness) {
		ended := h.MustRegister().WorkerID
		if _, err := h.Workers.Retire(h.Ctx, trackertest.Scope, ended, model.WorkerForced, ""); err != nil {
			h.Fatal(err)
		}
		h.Tasks.CreatePlacedOn(h.Ctx, trackertest.Scope, "t1", ended)
		id := h.MustRegister().WorkerID
		h.MustSweep()
		if task := h.WantState("t1", model.Queued, ""); task.WorkerID != id {
			h.Fatalf("waits for %q, want %q", task.WorkerID, id)
		}
	})
}
