package tracker_test

import (
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/internal/redistest"
	"github.com/lubdub-io/lubdub/internal/testenv"
	"github.com/lubdub-io/lubdub/tracker"
	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/queues"
	"github.com/lubdub-io/lubdub/tracker/trackertest"
	"github.com/lubdub-io/lubdub/tracker/workers"
)

var lostOfEach = flag.Int("lost-replies", 0,
	"of how many calls of each script the reply is lost, one in each run of the story; 0: of one call of every fourth script, "+
		"or of every 16th with the race detector")

// notInTheStory has scripts that the story does not run, and the test that loses their replies or why none does.
var notInTheStory = map[string]string{
	"all_loads":       "it reads for many workers what loads reads for few",
	"forget_timeouts": "what it drops is unused; a drop without a reply is repeated with the next look, and finds nothing",
	"wake_when_free":  "it only requests an earlier notice: a claim that waits at a full worker looks again on its own",
	"worker_probed":   "it needs a worker that answers; without it that one is probed again at the next look",
	"claimed":         "a claim whose request died delays the next one until its time has ended, and time stops here: TestHistories",
	"schema":          "it runs before the story: TestALostAnswerOfAStepIsMadeGood",
	"indexed":         "it runs before the story, and only reads",
	"relist":          "it runs before the story: TestWhatQueuesHaveIsListed",
}

// writtenOnce are events about neither tasks nor queues that no lost reply duplicates.
var writtenOnce = []string{"system.repaired", "system.mass_expiry_held", "system.released", "system.swept", "system.tokens_revoked"}

// Redis runs a script and the reply is lost: the caller retries, and everything ends as if nothing had been lost. One story in which
// every script runs is repeated, with the reply of another call lost each time.
func TestEveryLostReplyIsMadeGood(t *testing.T) {
	every := 4
	if testenv.Race { // four times slower; `make test` has the others
		every = 16
	}
	t.Parallel()
	from := rand.IntN(every)
	t.Logf("scripts %d, %d, %d, …", from, from+every, from+2*every)
	s := redistest.Real(t)
	calls, want := runStory(t, s, "", 0)
	runs := 0
	for i, name := range s.Scripts.Names() {
		if _, left := notInTheStory[name]; left {
			continue
		}
		if calls[name] == 0 {
			t.Errorf("%s does not run in the story: call it there (story*_test.go), or add it to notInTheStory with the reason", name)
		}
		of := min(calls[name], *lostOfEach)
		if *lostOfEach == 0 && i%every == from {
			of = 1
		}
		for n := range of {
			runs++
			_, got := runStory(t, s, name, n)
			for k := range want {
				if got[k] != want[k] {
					t.Errorf("reply %d of %s lost: %s is\n\t%s, want\n\t%s", n, name, k, got[k], want[k])
				}
			}
			for k := range got {
				if _, known := want[k]; !known {
					t.Errorf("reply %d of %s lost: there is %s: %s", n, name, k, got[k])
				}
			}
		}
	}
	t.Logf("%d runs, each with the reply of another call lost; %d scripts", runs, len(s.Scripts.Names())-len(notInTheStory))
}

// runStory runs the story in an empty store while a reply is lost. It returns which scripts ran, how often, and the final state.
func runStory(t *testing.T, s *redistest.Store, lost string, n int) (calls map[string]int, end map[string]string) {
	t.Helper()
	if err := s.Client.FlushDB(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	s.Clock.Set(storyBegins)
	out := &outside{}
	c := &story{Fleet: trackertest.NewFleet(trackertest.NewHarness(t, s, trackertest.Braked, func(o *tracker.Options) {
		o.WebhookPoster = out
		o.WorkerInterval, o.WorkerTimeoutMultiplier = time.Second, 3
		o.TenantTasks, o.TenantBytes, o.TenantWorkers = 1000, 1<<30, 1000
	})), what: fmt.Sprintf("reply %d of %s lost", n, lost), names: map[string]string{}, records: map[string][]string{},
		outside: out}
	count := trackertest.CountScripts(c.Tracker)
	if lost != "" {
		trackertest.FailCalls(c.Tracker, lost, true, func(i int) bool { return i == n })
	}
	c.play()
	end = c.observe()
	calls = maps.Clone(count())
	if err := c.Close(c.Ctx); err != nil {
		t.Fatal(err)
	}
	return calls, end
}

// observe returns the final state of every task, worker, machine, run and queue, and how often each event was written.
func (c *story) observe() map[string]string {
	c.Helper()
	end, events := map[string]string{}, c.EventsBySubject()
	for _, id := range c.tasks {
		var task *model.Task
		c.sure("get "+id, func() (err error) { task, err = c.Tasks.Get(c.Ctx, trackertest.Scope, id); return err })
		var lives []string
		for _, a := range task.History {
			lives = append(lives, fmt.Sprintf("%d %s %s by %s", a.Attempt, a.Outcome, a.Reason, c.name(a.WorkerID)))
		}
		end["task "+id] = fmt.Sprintf("%s %s, attempt %d of %s, %d failures, %d losses, cancel %v, output %s, lives %s",
			task.State, task.Reason, task.Attempt, c.name(task.WorkerID), task.Failures, task.Losses, task.CancelRequested, task.Output,
			strings.Join(lives, "; "))
		end["events of "+id] = fmt.Sprint(events[id])
	}
	for name, id := range c.IDs {
		var w *model.Worker
		c.sure("worker "+name, func() (err error) { w, err = c.Workers.Get(c.Ctx, trackertest.Scope, id); return err })
		end["worker "+name] = fmt.Sprintf("%s %s, holds %d, %d placed, %d stale, completed %d", w.Status, w.StatusReason, w.Held, w.Placed,
			w.StaleCount, w.TotalCompleted)
		events := events[id]
		delete(events, "worker.selected")
		end["events of "+name] = fmt.Sprint(events)
	}
	var machines *workers.MachinePage
	c.sure("machines", func() (err error) {
		machines, err = c.Workers.Machines(c.Ctx, workers.MachineFilter{Scope: trackertest.Scope, PageSize: 100})
		return err
	})
	for _, m := range machines.Machines {
		end["machine "+m.ID] = fmt.Sprint(m.Status)
	}
	var queues []*queues.Queue
	c.sure("queues", func() (err error) { queues, err = c.Queues.List(c.Ctx, trackertest.Scope); return err })
	for _, q := range queues {
		for _, k := range q.Kinds {
			end["queue "+q.Name+" "+k.Type] = fmt.Sprintf("%d wait, %d of them unrunnable", k.Depth, k.Unrunnable)
		}
		end["queue "+q.Name] = fmt.Sprintf("paused %v, workers %v, %d run", q.Paused, q.Workers, q.Running)
	}
	var run *model.Run
	c.sure("run", func() (err error) { run, err = c.Tasks.Run(c.Ctx, trackertest.Scope, "r1"); return err })
	end["run r1"] = fmt.Sprint(run.Counts)
	c.observeSchedules(end, events)
	for what, n := range c.Events("") {
		if strings.HasPrefix(what, "task.") || strings.HasPrefix(what, "queue.") || slices.Contains(writtenOnce, what) {
			end["events "+what] = fmt.Sprint(n)
		}
	}
	c.observeHooks(end)
	c.sure("reconcile", func() error {
		left, err := c.Sweeper.Reconcile(c.Ctx)
		if len(left) > 0 {
			end["to repair"] = fmt.Sprint(left)
		}
		return err
	})
	return end
}

// name returns the name of a worker whose ID differs between runs of the story.
func (c *story) name(id string) string {
	if name, ok := c.names[id]; ok {
		return name
	}
	return id
}

func (c *story) check(what string, err error) {
	c.Helper()
	if err != nil {
		c.Fatalf("%s: %s: %v", c.what, what, err)
	}
}

// sure does something as a good client would: it retries when the store did not confirm it.
func (c *story) sure(what string, do func() error) {
	c.Helper()
	err := do()
	for try := 0; model.CodeOf(err) == model.Unavailable && try < 5; try++ {
		err = do()
	}
	c.check(what, err)
}
