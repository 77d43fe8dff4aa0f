package store_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/internal/redistest"
	"github.com/lubdub-io/lubdub/tracker"
	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/queues"
	"github.com/lubdub-io/lubdub/tracker/sweep"
	"github.com/lubdub-io/lubdub/tracker/trackertest"
	"github.com/lubdub-io/lubdub/tracker/workers"
)

func TestWorkersOnCluster(t *testing.T) {
	t.Parallel()
	workerLifecycle(t, redistest.StartCluster(t, 3, 0, 2*time.Second).URL())
}

// workerLifecycle drives workers through registration, claims, beats, a death and its recovery, a placement and a drain, on the store at
// the URL, with shards on all its nodes.
func workerLifecycle(t *testing.T, url string) {
	t.Helper()
	const tasks = 40
	tr := trackertest.Open(t, tracker.Options{RedisURL: url, WorkerInterval: 5 * time.Second, RedisTimeout: 10 * time.Second})
	sweeper := sweep.NewSweeper(tr.Sweeper, sweep.SweeperOptions{})
	register := func(machine string) string {
		n := model.NewWorker{Scope: trackertest.Scope, Queue: "crew", Types: []string{"x"}, MachineID: machine, MaxConcurrent: 2 * tasks}
		if err := n.Validate(); err != nil {
			t.Fatal(err)
		}
		r, err := tr.Workers.Register(t.Context(), n)
		if err != nil {
			t.Fatal(err)
		}
		return r.WorkerID
	}
	beat := func(id string) {
		if _, err := tr.Workers.Beat(t.Context(), trackertest.Scope, id, workers.WorkerBeat{}); err != nil {
			t.Fatal(err)
		}
	}
	sweep := func() {
		if err := tr.Beats.Tick(); err != nil {
			t.Fatal(err)
		}
		if _, err := sweeper.RunOnce(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	worker := func(id string) *model.Worker {
		w, err := tr.Workers.Get(t.Context(), trackertest.Scope, id)
		if err != nil {
			t.Fatal(err)
		}
		return w
	}
	create := func(id string, change func(*model.NewTask)) *model.Created {
		n := model.NewTask{Scope: trackertest.Scope, TaskID: id, Queue: "crew", Type: "x"}
		change(&n)
		if err := n.Validate(time.Now()); err != nil {
			t.Fatal(err)
		}
		c, err := tr.Tasks.Create(t.Context(), n)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	// claim claims all tasks, and beats meanwhile.
	claim := func(id string, attempt int) (got []*model.Envelope) {
		for until := time.Now().Add(trackertest.Patience); len(got) < tasks && time.Now().Before(until); beat(id) {
			more, err := tr.Queues.Claim(t.Context(), queues.ClaimRequest{Scope: trackertest.Scope, WorkerID: id, Queue: "crew", Max: 100,
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
		create(fmt.Sprintf("crew-%02d", i), func(*model.NewTask) {})
	}
	for _, e := range claim(dies, 1)[:tasks/2] {
		if _, err := tr.Beats.Start(t.Context(), e.Attempt, model.Report{}); err != nil {
			t.Fatal(err)
		}
	}
	if w := worker(dies); w.Held != tasks {
		t.Fatalf("it holds %d of %d", w.Held, tasks)
	}
	for until := time.Now().Add(trackertest.Patience); worker(dies).Status != model.Offline || worker(dies).Held > 0; sweep() {
		beat(heir)
		if time.Now().After(until) {
			t.Fatalf("long after its last beat: %+v", worker(dies))
		}
	}
	if w := worker(dies); w.StatusReason != string(model.WorkerStale) {
		t.Fatalf("%+v", w)
	}
	for _, e := range claim(heir, 2) {
		if e.Task.Losses != 1 {
			t.Fatalf("%s counts %d losses", e.Task.ID, e.Task.Losses)
		}
		if _, err := tr.Beats.Complete(t.Context(), e.Attempt, model.Completion{Outcome: model.Succeeded}); err != nil {
			t.Fatal(err)
		}
	}
	beat(heir)
	if c := create("placed", func(n *model.NewTask) { n.Placement = "leastLoaded" }); c.Task.WorkerID != heir {
		t.Fatalf("placed on %q", c.Task.WorkerID)
	}
	if _, err := tr.Workers.Drain(t.Context(), trackertest.Scope, heir, workers.Drain{}); err != nil {
		t.Fatal(err)
	}
	for until := time.Now().Add(trackertest.Patience); worker(heir).Status != model.Offline; sweep() {
		if time.Now().After(until) {
			t.Fatalf("long after its drain: %+v", worker(heir))
		}
	}
	if w := worker(heir); w.Held != 0 || w.Placed != 0 {
		t.Fatalf("%+v", w)
	}
}
