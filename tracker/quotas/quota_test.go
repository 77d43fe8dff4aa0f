package quotas_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/internal/testenv"
	"github.com/lubdub-io/lubdub/tracker"
	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/trackertest"
	"github.com/lubdub-io/lubdub/tracker/workers"
)

func tryCreate(h *trackertest.Harness, change ...func(*model.NewTask)) error {
	h.Helper()
	n := model.NewTask{Scope: trackertest.Scope, Queue: "q"}
	for _, f := range change {
		f(&n)
	}
	if err := n.Validate(h.Store.Clock.Now()); err != nil {
		h.Fatal(err)
	}
	_, err := h.Tasks.Create(h.Ctx, n)
	return err
}

// wantTooMany fails the test unless the error is that of a quota, with its setting in the message.
func wantTooMany(h *trackertest.Harness, err error, setting string) {
	h.Helper()
	var e *model.Error
	if !errors.As(err, &e) || e.Code != model.Overloaded || !e.TooMany || e.RetryAfter == 0 || !strings.Contains(e.Message, setting) {
		h.Fatalf("want a refusal by %s, got %v", setting, err)
	}
}

// admittedAgain waits until a count has found free space.
func admittedAgain(h *trackertest.Harness, try func() error) {
	h.Helper()
	trackertest.Until(h, func() bool {
		err := try()
		if err != nil && model.CodeOf(err) != model.Overloaded {
			h.Fatalf("there is room: %v", err)
		}
		return err == nil
	})
}

// A tenant may have a number of live tasks over all its workspaces and shards, and not one more; another tenant is not affected. Finished
// tasks free space.
func TestATenantHasSoManyLiveTasks(t *testing.T) {
	t.Parallel()
	const most = 20
	trackertest.Contract(t, func(h *trackertest.Harness) {
		for i := range most {
			if err := tryCreate(h, func(n *model.NewTask) {
				n.TaskID, n.Scope.Workspace = fmt.Sprintf("t%d", i), fmt.Sprintf("ws%d", i%3)
			}); err != nil {
				h.Fatalf("task %d: %v", i, err)
			}
		}
		wantTooMany(h, tryCreate(h), "tenant-live-tasks")
		wantTooMany(h, tryCreate(h, func(n *model.NewTask) { n.IdempotencyKey, n.IdempotencyHash = "new", "x" }), "tenant-live-tasks")
		if keys, err := h.Store.Client.Keys(h.Ctx, "*idem:*").Result(); err != nil || len(keys) > 0 {
			h.Fatalf("a creation that was refused has left %v, %v", keys, err)
		}
		if err := tryCreate(h, func(n *model.NewTask) { n.Scope.Tenant = "acme2" }); err != nil {
			h.Fatalf("another tenant: %v", err)
		}
		first := model.Scope{Tenant: trackertest.Scope.Tenant, Workspace: "ws0"}
		if _, err := h.Tasks.Cancel(h.Ctx, first, "t0", model.CancelRequest{}); err != nil {
			h.Fatal(err)
		}
		admittedAgain(h, func() error { return tryCreate(h) })
		wantTooMany(h, tryCreate(h), "tenant-live-tasks")
	}, func(o *tracker.Options) { o.TenantTasks = most })
}

// A repeated creation that was admitted gets its first answer, and of a batch the tasks that fit are created.
func TestAQuotaLeavesRepeatsAlone(t *testing.T) {
	t.Parallel()
	trackertest.Contract(t, func(h *trackertest.Harness) {
		keyed := func(key string) model.NewTask {
			n := model.NewTask{Scope: trackertest.Scope, Queue: "q", IdempotencyKey: key, IdempotencyHash: "body"}
			if err := n.Validate(h.Store.Clock.Now()); err != nil {
				h.Fatal(err)
			}
			return n
		}
		batch := []model.NewTask{keyed("a"), keyed("b"), keyed("c"), keyed("d"), keyed("e")}
		first := h.Tasks.CreateBatch(h.Ctx, batch)
		again := h.Tasks.CreateBatch(h.Ctx, batch)
		for i := range batch {
			if i >= 3 {
				wantTooMany(h, first[i].Err, "tenant-live-tasks")
				wantTooMany(h, again[i].Err, "tenant-live-tasks")
				continue
			}
			if first[i].Err != nil || again[i].Err != nil || first[i].Created.Task.ID != again[i].Created.Task.ID {
				h.Fatalf("item %d: %v, again %v", i, first[i].Err, again[i].Err)
			}
		}
	}, func(o *tracker.Options) { o.TenantTasks = 3 })
}

// Each replica counts what all have created. Together they exceed the limit at most by what the others admit between two counts: here,
// all at once, as many each.
func TestAQuotaHoldsAcrossReplicas(t *testing.T) {
	t.Parallel()
	const most = 30
	trackertest.Contract(t, func(h *trackertest.Harness) {
		limited := func(o *tracker.Options) { o.TenantTasks = most }
		replicas := []*trackertest.Harness{h.Replica(limited), h.Replica(limited), h.Replica(limited)}
		total := 0
		for refused := 0; refused < len(replicas); {
			if refused = 0; total > len(replicas)*most {
				break
			}
			for _, r := range replicas {
				if err := tryCreate(r); err == nil {
					total++
				} else {
					wantTooMany(r, err, "tenant-live-tasks")
					refused++
				}
			}
		}
		if total < most || total > len(replicas)*most {
			h.Fatalf("%d replicas have admitted %d tasks of %d", len(replicas), total, most)
		}
		wantTooMany(h, tryCreate(h.Replica(limited)), "tenant-live-tasks")
	})
}

// A tenant's tasks may take a number of bytes, counted from the stored data to within a tenth; deleted tasks free space.
func TestATenantStoresSoManyBytes(t *testing.T) {
	t.Parallel()
	const each, most = 100_000, 1_500_000
	large := func(n *model.NewTask) { n.Payload = []byte(`"` + strings.Repeat("x", each-2) + `"`) }
	limited := func(o *tracker.Options) { o.TenantBytes = most }
	trackertest.Contract(t, func(h *trackertest.Harness) {
		made := 0
		for ; made < 10; made++ {
			if err := tryCreate(h, large, func(n *model.NewTask) { n.TaskID = fmt.Sprintf("t%d", made) }); err != nil {
				h.Fatalf("task %d: %v", made, err)
			}
		}
		other := h.Replica(limited)
		for ; made < 20; made++ {
			if err := tryCreate(other, large, func(n *model.NewTask) { n.TaskID = fmt.Sprintf("t%d", made) }); err != nil {
				wantTooMany(other, err, "tenant-stored-bytes")
				break
			}
		}
		if made < 13 || made > 16 {
			h.Fatalf("%d tasks of %d bytes were admitted, the limit is %d", made, each, most)
		}
		if err := tryCreate(other, large, func(n *model.NewTask) { n.Scope.Tenant = "acme2" }); err != nil {
			h.Fatalf("another tenant: %v", err)
		}
		for i := range made {
			if _, err := h.Tasks.Cancel(h.Ctx, trackertest.Scope, fmt.Sprintf("t%d", i), model.CancelRequest{}); err != nil {
				h.Fatal(err)
			}
		}
		wantTooMany(h, tryCreate(h.Replica(limited), large, large), "tenant-stored-bytes")
		h.Advance(time.Second)
		h.Store.Clock.Advance(model.DefaultFinishedRetention)
		h.MustTick()
		h.MustSweep()
		admittedAgain(h, func() error { return tryCreate(other, large) })
	}, limited)
}

// A tenant may have a number of workers that are not OFFLINE. A worker that supersedes another one, and one that registers again with its
// key, are admitted.
func TestATenantHasSoManyWorkers(t *testing.T) {
	t.Parallel()
	const most = 3
	trackertest.Contract(t, func(h *trackertest.Harness) {
		register := func(i int, change ...func(*model.NewWorker)) (*workers.Registered, error) {
			n := trackertest.NewWorker(append([]func(*model.NewWorker){func(n *model.NewWorker) {
				n.Hostname, n.PID, n.MachineID, n.IdempotencyKey, n.IdempotencyHash = "host", 100+i, "", fmt.Sprintf("key-%d", i), "body"
			}}, change...)...)
			if err := n.Validate(); err != nil {
				h.Fatal(err)
			}
			return h.Workers.Register(h.Ctx, n)
		}
		var first *workers.Registered
		for i := range most {
			r, err := register(i)
			if err != nil {
				h.Fatal(err)
			}
			if i == 0 {
				first = r
			}
		}
		_, err := register(most)
		wantTooMany(h, err, "tenant-workers")
		if again, err := register(0); err != nil || again.WorkerID != first.WorkerID {
			h.Fatalf("a repeat: %+v, %v", again, err)
		}
		if r, err := register(0, func(n *model.NewWorker) { n.IdempotencyKey = "restarted" }); err != nil || r.Superseded != first.WorkerID {
			h.Fatalf("one that takes another's place: %+v, %v", r, err)
		}
		if _, err := register(9, func(n *model.NewWorker) { n.Scope.Tenant = "acme2" }); err != nil {
			h.Fatalf("another tenant: %v", err)
		}
		one, err := register(1)
		if err != nil {
			h.Fatal(err)
		}
		if _, err := h.Workers.Retire(h.Ctx, trackertest.Scope, one.WorkerID, model.WorkerDeregistered, ""); err != nil {
			h.Fatal(err)
		}
		admittedAgain(h, func() error { _, err := register(most); return err })
	}, func(o *tracker.Options) { o.TenantWorkers = most })
}

// Counting a tenant's usage is fast, however many workspaces it has and whatever the size of its tasks.
func TestScriptsAboutWhatATenantHasAreShort(t *testing.T) {
	testenv.OnlyAll(t)
	testenv.MeasuresScripts(t)
	t.Parallel()
	h := trackertest.Timed(t, func(o *tracker.Options) { o.TenantTasks, o.TenantBytes, o.TenantWorkers = 1_000_000, 1<<50, 1_000_000 })
	h.FillQueue(20_000, func(i int, n *model.NewTask) { n.Scope.Workspace = fmt.Sprintf("ws-%d", i) })
	size := 1000.0
	h.FillQueue(60, func(_ int, n *model.NewTask) {
		if size *= 1.19; size < model.MaxPayloadBytes {
			n.Payload = []byte(`"` + strings.Repeat("x", int(size)) + `"`)
		}
	})
	h.Short("count", func() {
		counted, err := h.Quotas.CountTasks(h.Ctx, trackertest.Scope.Tenant)
		if err != nil || counted[0] != 20_060 || counted[1] < 20_060*1024 {
			t.Fatalf("%v, %v", counted, err)
		}
	})
}
