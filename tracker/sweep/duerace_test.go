package sweep_test

import (
	"cmp"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/internal/redistest"
	"github.com/lubdub-io/lubdub/internal/testenv"
	"github.com/lubdub-io/lubdub/tracker"
	"github.com/lubdub-io/lubdub/tracker/beats"
	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/queues"
	"github.com/lubdub-io/lubdub/tracker/sweep"
	"github.com/lubdub-io/lubdub/tracker/trackertest"
)

// dueTasks is how many tasks are due at once; `make test-history` has 50,000.
var dueTasks = flag.Int("due", 0, "tasks that TestSweepersAgainstCompleters has due at once on a real Redis")

const dueSweepers = 8

// Eight sweepers and eight completers race over tasks that are all due, in each of the ways in which a task can come due. Every
// attempt ends exactly once, by the call that got the confirmation, and the event streams contain exactly the transitions of the
// tasks.
func TestSweepersAgainstCompleters(t *testing.T) {
	t.Parallel()
	due := cmp.Or(*dueTasks, testenv.Of(t, 500, 2000))
	redistest.Each(t, func(t *testing.T, s *redistest.Store) {
		n := due
		if s.Kind == "miniredis" {
			n = min(n, 400) // it is slow, and Redis runs one script at a time there too
		}
		r := newDueRace(t, s, n)
		r.run()
		r.check()
	})
}

// dueRace is one race. A task's place in the slices is its number.
type dueRace struct {
	*trackertest.Harness
	attempts  []*model.Attempt
	completed []model.Completed // zero: refused
	swept     sweep.SweepResult
}

// dueWay returns how task i comes due, by its number modulo ten.
func dueWay(i int) model.Reason {
	switch i % 10 {
	case 0:
		return model.StartTimeout
	case 1:
		return model.RunTimeout
	case 2:
		return model.DeadlineExceeded
	}
	return model.HeartbeatTimeout
}

func dueQueued(i int) bool { return i%5 == 4 } // only silent ones

func dueID(i int) string { return fmt.Sprintf("t%06d", i) }

func newDueRace(t *testing.T, s *redistest.Store, n int) *dueRace {
	t.Helper()
	// A shard keeps its newest 10,000 events or so: with 64 shards none of them is trimmed.
	h := &trackertest.Harness{TB: t, Store: s, Ctx: context.Background()}
	h.Tracker = trackertest.Open(t, tracker.Options{RedisURL: s.URL, Scripts: s.Scripts, RedisTimeout: 2 * time.Minute, Shards: 64})
	h.MustTick()
	r := &dueRace{Harness: h, attempts: make([]*model.Attempt, n), completed: make([]model.Completed, n)}
	now := s.Clock.Now()
	const perBatch = 500
	for first := 0; first < n; first += perBatch {
		var batch []model.NewTask
		for i := first; i < min(n, first+perBatch); i++ {
			batch = append(batch, dueTask(t, i, now))
		}
		for k, c := range r.Tasks.CreateBatch(r.Ctx, batch) {
			if c.Err != nil {
				t.Fatal(c.Err)
			}
			if c.Created.Envelope != nil {
				r.attempts[first+k] = c.Created.Envelope.Attempt
			}
		}
	}
	r.claimQueued(n)
	var batch []*beats.Beat
	for i, a := range r.attempts {
		if dueWay(i) != model.StartTimeout {
			batch = append(batch, &beats.Beat{Attempt: a})
		}
	}
	for some := range slices.Chunk(batch, perBatch) {
		r.Beats.BeatMany(some)
		for _, b := range some {
			if b.Err != nil {
				t.Fatal(b.Err)
			}
		}
	}
	h.Advance(2250 * time.Millisecond)
	return r
}

func dueTask(t *testing.T, i int, now time.Time) model.NewTask {
	t.Helper()
	n := model.NewTask{Scope: trackertest.Scope, TaskID: dueID(i), RunID: "r1", HeartbeatInterval: 500 * time.Millisecond,
		HeartbeatTimeout: time.Minute}
	switch dueWay(i) {
	case model.StartTimeout:
		n.StartTimeout = 2 * time.Second
	case model.RunTimeout:
		n.RunTimeout = 2 * time.Second
	case model.DeadlineExceeded:
		n.Deadline = now.Add(2 * time.Second)
	default:
		n.HeartbeatTimeout = 2 * time.Second
	}
	if dueQueued(i) {
		n.Queue, n.Type = "q", "x"
	}
	if err := n.Validate(now); err != nil {
		t.Fatal(err)
	}
	return n
}

// claimQueued has one worker claim all waiting tasks.
func (r *dueRace) claimQueued(n int) {
	w := model.NewWorker{Scope: trackertest.Scope, Queue: "q", Types: []string{"x"}, MaxConcurrent: n}
	if err := w.Validate(); err != nil {
		r.Fatal(err)
	}
	worker, err := r.Workers.Register(r.Ctx, w)
	if err != nil {
		r.Fatal(err)
	}
	for left := n / 5; left > 0; {
		got, err := r.Queues.Claim(r.Ctx, queues.ClaimRequest{Scope: trackertest.Scope, WorkerID: worker.WorkerID, Queue: "q",
			Max: min(left, 100)})
		if err != nil || len(got) == 0 {
			r.Fatalf("%d are left to claim: %v", left, err)
		}
		left -= len(got)
		for _, e := range got {
			var i int
			if _, err := fmt.Sscanf(e.Task.ID, "t%06d", &i); err != nil {
				r.Fatal(err)
			}
			r.attempts[i] = e.Attempt
		}
	}
}

func dueCompletion(i int) model.Completion {
	if i%2 == 0 {
		return model.Completion{Outcome: model.Succeeded}
	}
	return model.Completion{Outcome: model.Failed, Retryable: true, Error: json.RawMessage(`{"category":"USER_CODE"}`)}
}

func (r *dueRace) run() {
	order := rand.Perm(len(r.attempts))[:3*len(r.attempts)/5] // no completer takes the others
	var next atomic.Int64
	var mu sync.Mutex
	var racing sync.WaitGroup
	for range dueSweepers {
		sweeper := sweep.NewSweeper(r.Tracker.Sweeper, sweep.SweeperOptions{})
		racing.Go(func() {
			result, err := sweeper.RunOnce(r.Ctx)
			if err != nil {
				r.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			r.swept.Zombies += result.Zombies
			r.swept.TimedOut += result.TimedOut
			r.swept.Requeued += result.Requeued
		})
	}
	for range dueSweepers { // more of them would finish before the sweepers find anything
		racing.Go(func() {
			for {
				k := int(next.Add(1)) - 1
				if k >= len(order) {
					return
				}
				i := order[k]
				done, err := r.Beats.Complete(r.Ctx, r.attempts[i], dueCompletion(i))
				if err == nil {
					r.completed[i] = done
				} else if model.CodeOf(err) != model.AlreadyTerminal {
					r.Errorf("%s: %v", dueID(i), err)
				}
			}
		})
	}
	racing.Wait()
}

// check compares the responses, the events and the records.
func (r *dueRace) check() {
	ends, won := r.ends(), 0
	var zombies, timedOut, requeued int
	failures := 0
	wrong := func(format string, args ...any) {
		if failures++; failures <= 20 {
			r.Errorf(format, args...)
		}
	}
	states := map[model.State]int{}
	for i, task := range r.tasks() {
		want := []string{}
		state := model.Failed
		if done := r.completed[i]; done.Outcome != "" {
			won++
			switch {
			case done.WillRetry:
				want, state = append(want, "task.retrying WORKER_REPORTED"), model.Queued
			case done.Outcome == model.Failed:
				want = append(want, "task.failed WORKER_REPORTED")
			default:
				want, state = append(want, "task.succeeded "), model.Succeeded
			}
		} else {
			reason := dueWay(i)
			if reason == model.HeartbeatTimeout {
				zombies++
				want = append(want, "task.zombie HEARTBEAT_TIMEOUT")
			} else {
				timedOut++
			}
			if dueQueued(i) {
				requeued++
				want, state = append(want, "task.retrying "+string(reason)), model.Queued
			} else {
				want = append(want, "task.failed "+string(reason))
			}
		}
		states[state]++
		if got := ends[task.ID]; fmt.Sprint(got) != fmt.Sprint(want) {
			wrong("%s: completed %+v, its events are %q, want %q", task.ID, r.completed[i], got, want)
		}
		if task.State != state || len(task.History) != 1 {
			wrong("%s is %s with %d ends in its history, want %s with 1", task.ID, task.State, len(task.History), state)
		}
	}
	if r.swept.Zombies != zombies || r.swept.TimedOut != timedOut || r.swept.Requeued != requeued {
		wrong("the sweepers count %d zombies, %d timed out, %d requeued; there are %d, %d, %d", r.swept.Zombies, r.swept.TimedOut,
			r.swept.Requeued, zombies, timedOut, requeued)
	}
	run, err := r.Tasks.Run(r.Ctx, trackertest.Scope, "r1")
	if err != nil {
		r.Fatal(err)
	}
	for _, s := range model.States {
		if run.Counts[s] != states[s] {
			wrong("the run counts %d %s; there are %d", run.Counts[s], s, states[s])
		}
	}
	r.Logf("%d due tasks, %d sweepers: %d completions won, %d verdicts; %d wrong", len(r.attempts), dueSweepers, won, zombies+timedOut,
		failures)
}

func (r *dueRace) tasks() []*model.Task {
	tasks := make([]*model.Task, len(r.attempts))
	var next atomic.Int64
	var reading sync.WaitGroup
	for range 64 {
		reading.Go(func() {
			for i := int(next.Add(1)) - 1; i < len(tasks); i = int(next.Add(1)) - 1 {
				task, err := r.Tasks.Get(r.Ctx, trackertest.Scope, dueID(i))
				if err != nil {
					r.Error(err)
					task = &model.Task{ID: dueID(i)}
				}
				tasks[i] = task
			}
		})
	}
	reading.Wait()
	return tasks
}

// ends reads from the streams how each attempt ended and checks that each began once.
func (r *dueRace) ends() map[string][]string {
	ends, begun := map[string][]string{}, map[string]int{}
	for _, e := range trackertest.StoredEvents(r.TB, r.Store.Client, r.Tracker.Store.Shards()) {
		switch e.Type {
		case "task.created", "task.dispatched":
			begun[e.Type]++
		case "task.zombie", "task.failed", "task.retrying", "task.succeeded", "task.cancelled":
			ends[e.Subject] = append(ends[e.Subject], e.Type+" "+string(e.Data.Reason))
		}
	}
	for _, kind := range []string{"task.created", "task.dispatched"} {
		if begun[kind] != len(r.attempts) {
			r.Errorf("%d events %s for %d tasks", begun[kind], kind, len(r.attempts))
		}
	}
	return ends
}
