package workers_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/lubdub-io/lubdub/internal/testenv"
	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/trackertest"
	"github.com/lubdub-io/lubdub/tracker/workers"
)

// A registration is stored in a few KiB whatever its content, and its refusal names the field that is too large.
func TestWorkerRecordIsBounded(t *testing.T) {
	long := func(c string, n int) (list []string) {
		for i := range n {
			list = append(list, strings.Repeat(c, 100)+string(rune('a'+i%26))+string(rune('a'+i/26)))
		}
		return list
	}
	for field, change := range map[string]func(*model.NewWorker){
		"types":    func(n *model.NewWorker) { n.Types = long("t", 100) },
		"runtimes": func(n *model.NewWorker) { n.Runtimes = long("r", 100) },
		"labels": func(n *model.NewWorker) {
			n.Labels = map[string]string{}
			for _, key := range long("l", 60) {
				n.Labels[key] = strings.Repeat("v", 200)
			}
		},
	} {
		n := trackertest.NewWorker(change)
		err := n.Validate()
		var f *model.FieldError
		if model.CodeOf(err) != model.Invalid || !errors.As(err, &f) || f.Field != field {
			t.Errorf("too large %s: %v", field, err)
		}
	}
	n := trackertest.NewWorker(func(n *model.NewWorker) { n.Types = long("t", 70) })
	if err := n.Validate(); err != nil {
		t.Errorf("a registration of 7 KiB is refused: %v", err)
	}
}

// No matter how large and how many its workers are, a tenant's requests about them occupy Redis only briefly.
func TestScriptsAboutTheLargestWorkersAreShort(t *testing.T) {
	testenv.MeasuresScripts(t)
	t.Parallel()
	h := trackertest.Timed(t)
	n := largestWorker(t)
	const count = 1000
	for i := range count {
		w := n
		if w.MachineID = "host-1"; i%2 == 0 {
			w.MachineID = ""
		}
		if err := w.Validate(); err != nil {
			t.Fatal(err)
		}
		if _, err := h.Workers.Register(h.Ctx, w); err != nil {
			t.Fatal(err)
		}
	}
	no := false
	h.Short("select", func() {
		found, err := choose(h.Harness, model.Selector{Queue: "default", Type: "a", Labels: map[string]string{}})
		if err != nil || found.Considered != count {
			t.Fatalf("select: %+v, %v", found, err)
		}
	})
	h.Short("placement", func() {
		h.MustCreate(func(n *model.NewTask) { n.Queue, n.Type, n.Placement = "default", "a", "leastLoaded" })
	})
	h.Short("list", func() {
		page, err := h.Workers.List(h.Ctx, workers.WorkerFilter{Scope: trackertest.Scope, Queue: "default", Type: "a", PageSize: 100})
		if err != nil || page.Total != count || len(page.Workers) != 100 || len(page.Workers[0].Types) != len(n.Types) {
			t.Fatalf("list: %v", err)
		}
	})
	for _, labels := range []int{1, 4, len(n.Labels)} {
		some := maps.Collect(func(yield func(string, string) bool) {
			for i, key := range slices.Sorted(maps.Keys(n.Labels)) {
				if i >= labels || !yield(key, n.Labels[key]) {
					return
				}
			}
		})
		h.Short(fmt.Sprint("list by labels: ", labels), func() {
			page, err := h.Workers.List(h.Ctx, workers.WorkerFilter{Scope: trackertest.Scope, Type: "a", Labels: some, PageSize: 100})
			if err != nil || page.Total != count {
				t.Fatalf("list: %v", err)
			}
		})
	}
	many := map[string]string{}
	for i := range model.MaxLabels {
		many[fmt.Sprint("k", i)] = "v"
	}
	h.Short("list by labels that none has", func() {
		page, err := h.Workers.List(h.Ctx, workers.WorkerFilter{Scope: trackertest.Scope, Type: "a", Labels: many, PageSize: 100})
		if err != nil || page.Total != 0 {
			t.Fatalf("list: %+v, %v", page, err)
		}
	})
	h.Short("list of the unschedulable", func() {
		page, err := h.Workers.List(h.Ctx, workers.WorkerFilter{Scope: trackertest.Scope, Schedulable: &no, PageSize: 100})
		if err != nil || page.Total != 0 {
			t.Fatalf("list: %+v, %v", page, err)
		}
	})
	h.Short("machines", func() {
		page, err := h.Workers.Machines(h.Ctx, workers.MachineFilter{Scope: trackertest.Scope, PageSize: 100})
		if err != nil || page.Total != 1+count/2 {
			t.Fatalf("machines: %+v, %v", page, err)
		}
	})
	h.Short("machine", func() {
		if m := h.MustMachine("host-1"); m.Workers[model.Online] != count/2 || m.LastHeartbeatAt.IsZero() {
			t.Fatalf("machine: %+v", m)
		}
	})
	h.Short("queues", func() {
		if _, err := h.Queues.List(h.Ctx, trackertest.Scope); err != nil {
			t.Fatal(err)
		}
	})
	h.Short("drain", func() {
		drained, err := h.Workers.DrainMany(h.Ctx, workers.WorkerFilter{Scope: trackertest.Scope, Queue: "default"}, workers.Drain{}, true)
		if err != nil || drained.Matched != count {
			t.Fatalf("drain: %+v, %v", drained, err)
		}
	})
}

// largestWorker returns the largest valid registration.
func largestWorker(t *testing.T) model.NewWorker {
	t.Helper()
	with := func(types, labels int) model.NewWorker {
		return trackertest.NewWorker(func(n *model.NewWorker) {
			n.Types, n.Labels = []string{"a"}, map[string]string{}
			for i := range types {
				n.Types = append(n.Types, fmt.Sprintf("%0128d", i))
			}
			for i := range labels {
				n.Labels[fmt.Sprintf("%0128d", i)] = fmt.Sprintf("%0256d", i)
			}
		})
	}
	types, labels := 0, 0
	for fits := true; fits && labels < model.MaxLabels/8; {
		n := with(0, labels+1)
		if fits = n.Validate() == nil; fits {
			labels++
		}
	}
	for fits := true; fits && types < model.MaxTypes-1; {
		n := with(types+1, labels)
		if fits = n.Validate() == nil; fits {
			types++
		}
	}
	return with(types, labels)
}
