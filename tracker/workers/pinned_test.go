package workers_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/trackertest"
)

// A task for a worker that does not exist would wait forever: it is refused and changes nothing. A repeat whose first request
// found the worker gets its result even if the worker is gone.
func TestATaskForAWorkerThatIsNotThereIsRefused(t *testing.T) {
	t.Parallel()
	trackertest.Contract(t, func(h *trackertest.Harness) {
		there := h.MustRegister().WorkerID
		for name, id := range map[string]string{"no id of a worker": "w9", "never registered": "wkr_01HGW5N7XHJM4GX29KZRXQP6N9000",
			"a shard that is not": "wkr_01HGW5N7XHJM4GX29KZRXQP6N9FFF"} {
			before := h.Store.Dump(t)
			r := h.Tasks.CreateBatch(h.Ctx, []model.NewTask{pinnedTask(h, "gone", id, ""), pinnedTask(h, "keyed", id, "k1")})
			for _, one := range r {
				var field *model.FieldError
				if h.WantCode(one.Err, model.Invalid); !errors.As(one.Err, &field) || field.Field != "workerId" {
					h.Fatalf("%s: %v", name, one.Err)
				}
			}
			if after := h.Store.Dump(t); fmt.Sprint(after) != fmt.Sprint(before) {
				h.Errorf("%s: what was refused changed the store", name)
			}
		}
		elsewhere := pinnedTask(h, "elsewhere", there, "")
		elsewhere.Scope.Workspace = "dev"
		mixed := h.Tasks.CreateBatch(h.Ctx, []model.NewTask{pinnedTask(h, "good", there, "k2"), pinnedTask(h, "bad", "w9", ""), elsewhere,
			pinnedTask(h, "also", there, "")})
		for i, ok := range []bool{true, false, false, true} {
			if (mixed[i].Err == nil) != ok {
				h.Fatalf("task %d of the batch: %v", i, mixed[i].Err)
			}
		}

		if _, err := h.Workers.Retire(h.Ctx, trackertest.Scope, there, model.WorkerDeregistered, ""); err != nil {
			h.Fatal(err)
		}
		h.Store.Client.Del(h.Ctx, trackertest.WorkerKey(there, "worker:acme/prod/"+there))
		again, err := h.Tasks.Create(h.Ctx, pinnedTask(h, "good", there, "k2"))
		if err != nil || again.Task.WorkerID != there {
			h.Fatalf("the repeat got %+v, %v", again, err)
		}
		_, err = h.Tasks.Create(h.Ctx, pinnedTask(h, "new", there, "k3"))
		h.WantCode(err, model.Invalid)
	})
}

func pinnedTask(h *trackertest.Harness, id, worker, key string) model.NewTask {
	h.Helper()
	n := model.NewTask{Scope: trackertest.Scope, TaskID: id, Queue: "default", Type: "send_email", WorkerID: worker, IdempotencyKey: key,
		IdempotencyHash: id}
	if err := n.Validate(h.Store.Clock.Now()); err != nil {
		h.Fatal(err)
	}
	return n
}
