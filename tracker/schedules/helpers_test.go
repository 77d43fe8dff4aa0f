package schedules_test

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/schedules"
	"github.com/lubdub-io/lubdub/tracker/trackertest"
)

// begins is when the clock of these tests starts: half a second after a full minute, on a Thursday.
var begins = time.Date(2026, 1, 15, 10, 0, 0, int(500*time.Millisecond), time.UTC)

// saved creates a schedule that fires at each full minute; change edits it first.
func saved(h *trackertest.Harness, change ...func(*schedules.Spec)) *schedules.Schedule {
	h.Helper()
	d := spec(change...)
	if err := d.Validate(h.Store.Clock.Now()); err != nil {
		h.Fatal(err)
	}
	s, err := h.Schedules.Create(h.Ctx, d)
	if err != nil {
		h.Fatal(err)
	}
	return s
}

func spec(change ...func(*schedules.Spec)) schedules.Spec {
	d := schedules.Spec{
		Scope: trackertest.Scope, ID: "s1", Cron: "0 * * * * *", MaxCatchup: schedules.DefaultMaxCatchup,
		Task: model.NewTask{
			Queue: "q", Type: "x", Payload: []byte(`{"n":1}`), Resources: []byte(`{"cpu":2}`), Labels: map[string]string{"a": "b"},
		},
	}
	for _, f := range change {
		f(&d)
	}
	return d
}

func got(h *trackertest.Harness, id string) *schedules.Schedule {
	h.Helper()
	s, err := h.Schedules.Get(h.Ctx, trackertest.Scope, id)
	if err != nil {
		h.Fatal(err)
	}
	return s
}

// queued lists the existing tasks.
func queued(h *trackertest.Harness) []*model.Task {
	h.Helper()
	var all []*model.Task
	for after := ""; ; {
		page, err := h.Tasks.List(h.Ctx, model.TaskFilter{Scope: trackertest.Scope, PageSize: 100, After: after})
		if err != nil {
			h.Fatal(err)
		}
		all = append(all, page.Tasks...)
		if after = page.Next; after == "" {
			return all
		}
	}
}

// fires lists the outcomes of the last fires, oldest first, each as minute:second, kind and outcome.
func fires(s *schedules.Schedule) string {
	var all []string
	for _, f := range slices.Backward(s.Recent) {
		all = append(all, fmt.Sprintf("%s %s %s", f.At.Format("04:05"), f.Kind, f.Outcome))
	}
	return strings.Join(all, ", ")
}

// want compares the outcomes of the last fires.
func want(h *trackertest.Harness, id, all string) *schedules.Schedule {
	h.Helper()
	s := got(h, id)
	if is := fires(s); is != all {
		h.Fatalf("fires are %q, want %q", is, all)
	}
	return s
}

// ends finishes a task like a worker.
func ends(h *trackertest.Harness, id string) {
	h.Helper()
	if _, err := h.Tasks.Cancel(h.Ctx, trackertest.Scope, id, model.CancelRequest{Reason: "done"}); err != nil {
		h.Fatal(err)
	}
}

// firesInEvents lists the times of fires in the events about a schedule.
func firesInEvents(h *trackertest.Harness, id string) (times []string) {
	h.Helper()
	for _, e := range h.Store.Client.XRange(h.Ctx, fmt.Sprintf("lubdub:{%d}:events", h.Tracker.Store.ShardOf(trackertest.Scope,
		id)), "-", "+").Val() {
		data, _ := e.Values["data"].(string)
		if _, rest, ok := strings.Cut(data, `"fireAt":"`); ok && e.Values["subject"] == id {
			at, _, _ := strings.Cut(rest, `"`)
			times = append(times, at)
		}
	}
	return times
}
