package store_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/internal/redistest"
	"github.com/lubdub-io/lubdub/tracker"
	"github.com/lubdub-io/lubdub/tracker/trackertest"
)

func TestCrewOnCluster(t *testing.T) {
	t.Parallel()
	crewLife(t, redistest.StartCluster(t, 3, 0, 2*time.Second).URL())
}

// crewLife drives workers through registration, claims, beats, a death and its recovery, a placement and a drain, on
// whatever the URL stands for, with the shards on all its nodes.
func crewLife(t *testing.T, url string) {
	t.Helper()
	const tasks = 40
	tr := trackertest.Open(t, tracker.Options{RedisURL: url, WorkerInterval: 5 * time.Second, RedisTimeout: 10 * time.Second})
	sweeper := tracker.NewSweeper(tr, tracker.SweeperOptions{})
	register := func(machine string) string {
		n := tracker.NewWorker{Scope: trackertest.Scope, Queue: "crew", Types: []string{"x"}, MachineID: machine, MaxConcurrent: 2 * tasks}
		if err := n.Validate(); err != nil {
			t.Fatal(err)
		}
		r, err := tr.Register(t.Context(), n)
		if err != nil {
			t.Fatal(err)
		}
		return r.WorkerID
	}
	beat := func(id string) {
		if _, err := tr.BeatWorker(t.Context(), trackertest.Scope, id, tracker.WorkerBeat{}); err != nil {
			t.Fatal(err)
		}
	}
	sweep := func() {
		if err := tr.Tick(); err != nil {
			t.Fatal(err)
		}
		if _, err := sweeper.RunOnce(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	worker := func(id string) *tracker.Worker {
		w, err := tr.Worker(t.Context(), trackertest.Scope, id)
		if err != nil {
			t.Fatal(err)
		}
		return w
	}
	create := func(id string, change func(*tracker.NewTask)) *tracker.Created {
		n := tracker.NewTask{Scope: trackertest.Scope, TaskID: id, Queue: "crew", Type: "x"}
		change(&n)
		if err := n.Validate(time.Now()); err != nil {
			t.Fatal(err)
		}
		c, err := tr.Create(t.Context(), n)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	// claim claims all, and beats meanwhile.
	claim := func(id string, attempt int) (got []*tracker.Envelope) {
		for until := time.Now().Add(trackertest.Patience); len(got) < tasks && time.Now().Before(until); beat(id) {
			more, err := tr.Claim(t.Context(), tracker.ClaimRequest{Scope: trackertest.Scope, WorkerID: id, Queue: "crew", Max: 100,
				ClaimID: fmt.Sprintf("c%d-%d", attempt, len(got))})
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, more...)
			sweep()
		}
		for _, e := range got {
			if e.Attempt.Number != attempt {
				t.Fatalf("%s in attempt %d, want %d", e.Task.ID, e.Attempt.Number, attempt)
			}
		}
		if len(got) != tasks {
			t.Fatalf("claimed %d of %d", len(got), tasks)
		}
		return got
	}

	dies, heir := register("m1"), register("m2")
	for i := range tasks {
		create(fmt.Sprintf("crew-%02d", i), func(*tracker.NewTask) {})
	}
	for _, e := range claim(dies, 1)[:tasks/2] {
		if _, err := tr.Start(t.Context(), e.Attempt, tracker.Report{}); err != nil {
			t.Fatal(err)
		}
	}
	if w := worker(dies); w.Held != tasks {
		t.Fatalf("it holds %d of %d", w.Held, tasks)
	}
	for until := time.Now().Add(trackertest.Patience); worker(dies).Status != tracker.Offline || worker(dies).Held > 0; sweep() {
		beat(heir)
		if time.Now().After(until) {
			t.Fatalf("long after its last beat: %+v", worker(dies))
		}
	}
	if w := worker(dies); w.StatusReason != string(tracker.WorkerStale) {
		t.Fatalf("%+v", w)
	}
	for _, e := range claim(heir, 2) {
		if e.Task.Losses != 1 {
			t.Fatalf("%s counts %d losses", e.Task.ID, e.Task.Losses)
		}
		if _, err := tr.Complete(t.Context(), e.Attempt, tracker.Completion{Outcome: tracker.Succeeded}); err != nil {
			t.Fatal(err)
		}
	}
	beat(heir)
	if c := create("placed", func(n *tracker.NewTask) { n.Placement = "leastLoaded" }); c.Task.WorkerID != heir {
		t.Fatalf("placed on %q", c.Task.WorkerID)
	}
	if _, err := tr.DrainWorker(t.Context(), trackertest.Scope, heir, tracker.Drain{}); err != nil {
		t.Fatal(err)
	}
	for until := time.Now().Add(trackertest.Patience); worker(heir).Status != tracker.Offline; sweep() {
		if time.Now().After(until) {
			t.Fatalf("long after its drain: %+v", worker(heir))
		}
	}
	if w := worker(heir); w.Held != 0 || w.Placed != 0 {
		t.Fatalf("%+v", w)
	}
}
