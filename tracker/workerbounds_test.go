package tracker_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/lubdub-io/lubdub/tracker"
)

// A registration is kept in a few KiB whatever it says, and its refusal names what is too large.
func TestWorkerRecordIsBounded(t *testing.T) {
	long := func(c string, n int) (list []string) {
		for i := range n {
			list = append(list, strings.Repeat(c, 100)+string(rune('a'+i%26))+string(rune('a'+i/26)))
		}
		return list
	}
	for field, change := range map[string]func(*tracker.NewWorker){
		"types":    func(n *tracker.NewWorker) { n.Types = long("t", 100) },
		"runtimes": func(n *tracker.NewWorker) { n.Runtimes = long("r", 100) },
		"labels": func(n *tracker.NewWorker) {
			n.Labels = map[string]string{}
			for _, key := range long("l", 60) {
				n.Labels[key] = strings.Repeat("v", 200)
			}
		},
	} {
		n := newWorker(change)
		err := n.Validate()
		var f *tracker.FieldError
		if tracker.CodeOf(err) != tracker.Invalid || !errors.As(err, &f) || f.Field != field {
			t.Errorf("too large %s: %v", field, err)
		}
	}
	n := newWorker(func(n *tracker.NewWorker) { n.Types = long("t", 70) })
	if err := n.Validate(); err != nil {
		t.Errorf("a registration of 7 KiB is refused: %v", err)
	}
}

// However much its workers said, and however many they are, what a tenant asks about them holds up Redis for moments only.
func TestScriptsAboutTheLargestWorkersAreShort(t *testing.T) {
	t.Parallel()
	h := timed(t)
	n := largestWorker(t)
	const crew = 1000
	for i := range crew {
		w := n
		if w.MachineID = "host-1"; i%2 == 0 {
			w.MachineID = ""
		}
		if err := w.Validate(); err != nil {
			t.Fatal(err)
		}
		if _, err := h.Register(h.ctx, w); err != nil {
			t.Fatal(err)
		}
	}
	no := false
	h.short("select", func() {
		found, err := h.choose(tracker.Selector{Queue: "default", Type: "a", Labels: map[string]string{}})
		if err != nil || found.Considered != crew {
			t.Fatalf("select: %+v, %v", found, err)
		}
	})
	h.short("placement", func() {
		h.create(func(n *tracker.NewTask) { n.Queue, n.Type, n.Placement = "default", "a", "leastLoaded" })
	})
	h.short("list", func() {
		page, err := h.Workers(h.ctx, tracker.WorkerFilter{Scope: scope, Queue: "default", Type: "a", PageSize: 100})
		if err != nil || page.Total != crew || len(page.Workers) != 100 || len(page.Workers[0].Types) != len(n.Types) {
			t.Fatalf("list: %v", err)
		}
	})
	h.short("list of the unschedulable", func() {
		page, err := h.Workers(h.ctx, tracker.WorkerFilter{Scope: scope, Schedulable: &no, PageSize: 100})
		if err != nil || page.Total != 0 {
			t.Fatalf("list: %+v, %v", page, err)
		}
	})
	h.short("machines", func() {
		page, err := h.Machines(h.ctx, tracker.MachineFilter{Scope: scope, PageSize: 100})
		if err != nil || page.Total != 1+crew/2 {
			t.Fatalf("machines: %+v, %v", page, err)
		}
	})
	h.short("machine", func() {
		if m := h.machine("host-1"); m.Workers[tracker.Online] != crew/2 || m.LastHeartbeatAt.IsZero() {
			t.Fatalf("machine: %+v", m)
		}
	})
	h.short("queues", func() {
		if _, err := h.Queues(h.ctx, scope); err != nil {
			t.Fatal(err)
		}
	})
	h.short("drain", func() {
		drained, err := h.DrainWorkers(h.ctx, tracker.WorkerFilter{Scope: scope, Queue: "default"}, tracker.Drain{}, true)
		if err != nil || drained.Matched != crew {
			t.Fatalf("drain: %+v, %v", drained, err)
		}
	})
}
