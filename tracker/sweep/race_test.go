package sweep_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/internal/redistest"
	"github.com/lubdub-io/lubdub/tracker/beats"
	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/sweep"
	"github.com/lubdub-io/lubdub/tracker/trackertest"
)

// A heartbeat that arrives between find and take wins.
func TestBeatBetweenFindAndTake(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, s *redistest.Store) {
		tr := trackertest.OpenOn(t, s)
		alive, dead := startOne(t, tr, s, "alive"), startOne(t, tr, s, "dead")
		advance(t, tr, s, 2500*time.Millisecond)
		sw := sweep.NewSweeper(tr.Sweeper, sweep.SweeperOptions{})
		found, take, err := sw.FindSilent(0, "2000")
		if err != nil || found != 2 {
			t.Fatal(found, err)
		}
		b := &beats.Beat{Attempt: alive}
		if tr.Beats.Beat(b); b.Err != nil {
			t.Fatal(b.Err)
		}
		for i, want := range []int{1, 0} { // the second sweeper finds nothing left in the same list
			r, err := take()
			if err != nil || r.Zombies != want {
				t.Fatalf("take %d: %+v %v", i, r, err)
			}
		}
		if task, err := tr.Tasks.Get(t.Context(), alive.Scope, "alive"); err != nil || task.State != model.Running {
			t.Fatalf("the live one: %+v %v", task, err)
		}
		if task, err := tr.Tasks.Get(t.Context(), dead.Scope, "dead"); err != nil || task.State != model.Failed {
			t.Fatalf("the dead one: %+v %v", task, err)
		}
	})
}

// Completers, heartbeats and several sweepers race over the same due attempts: each ends exactly once, with exactly one event.
func TestOneTransitionWins(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, s *redistest.Store) {
		tr := trackertest.OpenOn(t, s)
		const tasks = 60
		attempts := make([]*model.Attempt, tasks)
		for i := range attempts {
			attempts[i] = startOne(t, tr, s, fmt.Sprint("t", i))
		}
		advance(t, tr, s, 2250*time.Millisecond)
		var wg sync.WaitGroup
		completed := make([]bool, tasks)
		for range 4 {
			sw := sweep.NewSweeper(tr.Sweeper, sweep.SweeperOptions{})
			wg.Go(func() {
				for range 3 {
					if _, err := sw.RunOnce(context.Background()); err != nil {
						t.Error(err)
					}
				}
			})
		}
		for i, a := range attempts {
			wg.Go(func() {
				_, err := tr.Beats.Complete(context.Background(), a, model.Completion{Outcome: model.Succeeded})
				completed[i] = err == nil
				if err != nil && model.CodeOf(err) != model.AlreadyTerminal {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		ended := map[string]int{}
		events, err := s.Client.XRange(t.Context(), "lubdub:{0}:events", "-", "+").Result()
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range events {
			switch e.Values["type"] {
			case "task.succeeded", "task.failed":
				ended[e.Values["subject"].(string)+" "+e.Values["type"].(string)]++
			}
		}
		if len(ended) != tasks {
			t.Errorf("%d kinds of ends for %d tasks: %v", len(ended), tasks, ended)
		}
		for i, a := range attempts {
			want := map[bool]string{true: " task.succeeded", false: " task.failed"}[completed[i]]
			if ended[a.TaskID+want] != 1 {
				t.Errorf("%s: completed %v, ends %v", a.TaskID, completed[i], ended)
			}
		}
	})
}
