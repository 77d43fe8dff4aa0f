package tracker_test

import (
	"context"
	"fmt"
	"time"

	"github.com/lubdub-io/lubdub/tracker/beats"
	"github.com/lubdub-io/lubdub/tracker/events"
	"github.com/lubdub-io/lubdub/tracker/holdings"
	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/queues"
	"github.com/lubdub-io/lubdub/tracker/revocations"
	"github.com/lubdub-io/lubdub/tracker/stats"
	"github.com/lubdub-io/lubdub/tracker/tasks"
	"github.com/lubdub-io/lubdub/tracker/trackertest"
	"github.com/lubdub-io/lubdub/tracker/workers"
)

var storyBegins = time.Date(2026, 1, 15, 10, 0, 0, 0, time.UTC)

// story is a fleet whose steps use every script, with clients that retry when the store did not confirm.
type story struct {
	*trackertest.Fleet
	what  string // the script whose reply is lost
	tasks []string
	names map[string]string // of workers by their IDs

	records map[string][]string // contents of workers' tokens
	alive   []string            // workers that beat
	outside *outside            // target of webhooks
}

func (c *story) play() {
	c.hired("w1", "q", func(n *model.NewWorker) { n.IdempotencyKey, n.IdempotencyHash = "k-w1", "h" })
	c.hired("w2", "q")
	c.hired("p1", "pq")
	c.alive = []string{"w1", "w2", "p1"}
	c.callbacks()
	c.verdicts()
	c.queues()
	c.word()
	c.inventory()
	c.placements()
	c.deaths()
	c.brake()
	c.repairs()
	c.holds()
	c.schedules()
	c.readers()
	c.revokes()
	c.webhooks()
	c.goOn(2 * time.Second)
	c.sweeps()
}

// hired registers a worker; a repeated registration without a key supersedes the first one.
func (c *story) hired(name, queue string, change ...func(*model.NewWorker)) {
	c.Helper()
	c.sure("register "+name, func() error {
		n := trackertest.NewWorker(func(n *model.NewWorker) {
			n.Queue, n.Types, n.MachineID, n.Hostname, n.PID, n.MaxConcurrent = queue, []string{"x"}, "host-"+name, "host-"+name, 1, 20
			for _, f := range change {
				f(n)
			}
		})
		if err := n.Validate(); err != nil {
			return err
		}
		r, err := c.Workers.Register(c.Ctx, n)
		if err == nil {
			c.IDs[name] = r.WorkerID
			c.names[r.WorkerID], c.records[name] = name, r.Record
		}
		return err
	})
}

// made creates a task with an idempotency key.
func (c *story) made(id string, change ...func(*model.NewTask)) *model.Attempt {
	c.Helper()
	n := model.NewTask{Scope: trackertest.Scope, TaskID: id, HeartbeatInterval: time.Second, HeartbeatTimeout: 2 * time.Second,
		IdempotencyKey: "k-" + id, IdempotencyHash: "h"}
	for _, f := range change {
		f(&n)
	}
	c.check("validate", n.Validate(c.Store.Clock.Now()))
	var a *model.Attempt
	c.sure("create "+id, func() error {
		made, err := c.Tasks.Create(c.Ctx, n)
		if err == nil && made.Envelope != nil {
			a = made.Envelope.Attempt
		}
		return err
	})
	c.tasks = append(c.tasks, id)
	return a
}

// queued creates a queued task that its worker's beats keep alive.
func (c *story) queued(id, queue string, change ...func(*model.NewTask)) {
	c.Helper()
	c.made(id, append([]func(*model.NewTask){func(n *model.NewTask) { n.Queue, n.Type, n.HeartbeatTimeout = queue, "x", 0 }},
		change...)...)
}

func (c *story) started(a *model.Attempt) *model.Attempt {
	c.Helper()
	c.sure("start "+a.TaskID, func() error { _, err := c.Beats.Start(c.Ctx, a, model.Report{}); return err })
	return a
}

// runs creates a pushed task and starts it.
func (c *story) runs(id string, change ...func(*model.NewTask)) *model.Attempt {
	c.Helper()
	return c.started(c.made(id, change...))
}

func (c *story) ended(a *model.Attempt, outcome model.State, retryable bool) {
	c.Helper()
	done := model.Completion{Outcome: outcome, Retryable: retryable, Output: []byte(`{"n":1}`)}
	if outcome != model.Succeeded {
		done.Output = nil
	}
	if outcome == model.Failed {
		done.Error = []byte(`{"message":"no"}`)
	}
	c.sure("complete "+a.TaskID, func() error { _, err := c.Beats.Complete(c.Ctx, a, done); return err })
}

func (c *story) beats(a *model.Attempt) *beats.Beat {
	c.Helper()
	var b *beats.Beat
	c.sure("beat of "+a.TaskID, func() error { b = c.MustBeat(a, "\t\t50\t\"half\""); return b.Err })
	return b
}

// claimed claims with its own claim ID and starts the tasks that it got.
func (c *story) claimed(worker, id string, max int) (got []*model.Attempt) {
	c.Helper()
	var tasks []*model.Envelope
	c.sure("claim of "+worker, func() (err error) {
		tasks, err = c.Queues.Claim(c.Ctx, queues.ClaimRequest{Scope: trackertest.Scope, WorkerID: c.IDs[worker], Queue: "q",
			Max: max, ClaimID: id})
		return err
	})
	for _, e := range tasks {
		got = append(got, c.started(e.Attempt))
	}
	return got
}

func (c *story) sendBeat(worker string, b workers.WorkerBeat) {
	c.Helper()
	c.sure("beat of "+worker, func() error {
		result, err := c.Workers.Beat(c.Ctx, trackertest.Scope, c.IDs[worker], b)
		if err == nil {
			c.Holdings.Notified(result)
		}
		return err
	})
}

// goOn lets time pass while the live workers beat.
func (c *story) goOn(d time.Duration) {
	c.Helper()
	for ; d > 0; d -= 250 * time.Millisecond {
		c.Store.Clock.Advance(min(d, 250*time.Millisecond))
		c.sure("tick", c.Beats.Tick)
		if d%time.Second == 0 {
			for _, name := range c.alive {
				c.sendBeat(name, workers.WorkerBeat{})
			}
		}
	}
}

// sweeps runs a sweeper that continues after an error, until it has nothing left to do.
func (c *story) sweeps() {
	c.Helper()
	for range 3 {
		c.sure("sweep", func() error { _, err := c.Sweeper.RunOnce(c.Ctx); return err })
	}
}

func inRun(n *model.NewTask) { n.RunID = "r1" }

// callbacks runs a task's own life, and cancels a running and a waiting task.
func (c *story) callbacks() {
	a := c.runs("done", inRun)
	c.beats(a)
	c.ended(a, model.Succeeded, false)

	a = c.runs("cancelled", inRun)
	c.sure("cancel", func() error {
		_, err := c.Tasks.Cancel(c.Ctx, trackertest.Scope, "cancelled", model.CancelRequest{Reason: "why"})
		return err
	})
	if b := c.beats(a); b.Cancel == nil {
		c.Fatalf("%s: the cancel is not delivered", c.what)
	}
	c.Beats.CancelDelivered(a)
	c.ended(a, model.Cancelled, false)

	c.queued("cancelled-with-its-run", "q", func(n *model.NewTask) { n.RunID = "r2" })
	c.sure("cancel run", func() error {
		_, err := c.Tasks.CancelRun(c.Ctx, trackertest.Scope, "r2", model.CancelRequest{Reason: "why"})
		return err
	})

	a = c.runs("again")
	c.ended(a, model.Failed, false)
	c.sure("next attempt", func() error {
		next, err := c.Tasks.NextAttempt(c.Ctx, trackertest.Scope, "again", 1)
		if err == nil {
			a = next.Envelope.Attempt
		}
		return err
	})
	c.ended(c.started(a), model.Succeeded, false)
}

// verdicts causes verdicts for silence, a missing start, a long run and a deadline.
func (c *story) verdicts() {
	c.runs("silent")
	c.made("not-started", func(n *model.NewTask) { n.StartTimeout = time.Second })
	long := c.runs("long", func(n *model.NewTask) { n.RunTimeout = 2 * time.Second })
	c.made("late", func(n *model.NewTask) { n.Deadline = c.Store.Clock.Now().Add(2 * time.Second) })
	c.goOn(time.Second)
	c.beats(long)
	c.goOn(1500 * time.Millisecond)
	c.sweeps()
}

// queues pauses and resumes queues; a task that fails there is retried.
func (c *story) queues() {
	c.queued("picky", "q", func(n *model.NewTask) { n.WorkerLabels = map[string]string{"gpu": "none"} })
	c.sure("pause", func() error { _, err := c.Queues.Pause(c.Ctx, trackertest.Scope, "q", ""); return err })
	c.queued("retried", "q", func(n *model.NewTask) {
		n.Retry = &model.RetryPolicy{MaxAttempts: 2, InitialBackoff: time.Second, Multiplier: 1, MaxBackoff: time.Second}
	})
	if got := c.claimed("w1", "paused", 1); len(got) > 0 {
		c.Fatalf("%s: claimed from a paused queue", c.what)
	}
	c.sure("resume", func() error { return c.Queues.Resume(c.Ctx, trackertest.Scope, "q") })
	first := c.claimed("w1", "c1", 1)
	if again := c.claimed("w1", "c1", 1); len(first) != 1 || len(again) != 1 || again[0].TaskID != first[0].TaskID {
		c.Fatalf("%s: claimed %v, again %v", c.what, first, again)
	}
	c.ended(first[0], model.Failed, true)
	c.goOn(1250 * time.Millisecond)
	c.sweeps()
	for _, a := range c.claimed("w2", "c2", 1) {
		c.ended(a, model.Succeeded, false)
	}
}

// word delivers a notice to the worker of a cancelled task.
func (c *story) word() {
	c.queued("called-off", "q")
	held := c.claimed("w1", "c0", 1)
	c.sure("cancel", func() error {
		_, err := c.Tasks.Cancel(c.Ctx, trackertest.Scope, "called-off", model.CancelRequest{Reason: "why"})
		return err
	})
	c.sweeps()
	c.goOn(2 * time.Second)
	c.ended(held[0], model.Cancelled, false)
	c.queued("terminated", "q")
	c.claimed("w1", "ct", 1)
	c.sure("terminate", func() error {
		_, err := c.Tasks.Cancel(c.Ctx, trackertest.Scope, "terminated", model.CancelRequest{Now: true})
		return err
	})
	c.sweeps()
}

// inventory misses one attempt, in two consecutive beats; the other continues.
func (c *story) inventory() {
	c.queued("kept", "q")
	c.queued("missed", "q", func(n *model.NewTask) {
		n.Retry = &model.RetryPolicy{MaxAttempts: 1, MaxLosses: 3, InitialBackoff: time.Second, Multiplier: 1, MaxBackoff: time.Second}
	})
	var kept *model.Attempt
	for _, a := range c.claimed("w1", "c3", 2) {
		if a.TaskID == "kept" {
			kept = a
		}
	}
	for range 13 { // longer than an unknown reservation lasts
		held := holdings.OwnedAttempt{TaskID: "kept", Number: 1}
		c.sendBeat("w1", workers.WorkerBeat{Inventory: []holdings.InventoryItem{{OwnedAttempt: held}}})
		c.goOn(time.Second)
	}
	c.sure("owned", func() error {
		// the second is not cached
		_, err := c.Holdings.Owned(c.Ctx, trackertest.Scope, c.IDs["w1"], []holdings.OwnedAttempt{{TaskID: "kept", Number: 1},
			{TaskID: "done", Number: 1}})
		return err
	})
	c.ended(kept, model.Succeeded, false)
	c.goOn(1250 * time.Millisecond)
	c.sweeps()
	for _, a := range c.claimed("w2", "c4", 1) {
		c.ended(a, model.Succeeded, false)
	}
}

func (c *story) selects(queue string) {
	c.Helper()
	c.sure("select", func() error {
		s := model.Selector{Scope: trackertest.Scope, Queue: queue}
		if err := s.Validate(); err != nil {
			return err
		}
		_, err := c.Workers.Select(c.Ctx, s)
		return err
	})
}

// placements go to the only worker, and to another one when that drains.
func (c *story) placements() {
	c.queued("placed", "pq", func(n *model.NewTask) { n.Placement = "leastLoaded" })
	c.hired("p2", "pq")
	c.alive = append(c.alive, "p2")
	c.selects("pq")
	c.sure("drain", func() error {
		_, err := c.Workers.Drain(c.Ctx, trackertest.Scope, c.IDs["p1"], workers.Drain{Reason: "r"})
		return err
	})
	c.goOn(5 * time.Second)
	c.sweeps()
	c.alive = []string{"w1", "w2", "p2"}
	c.goOn(5 * time.Second)
	c.sweeps()
}

// deaths lets a worker with tasks die, and ends one by hand.
func (c *story) deaths() {
	c.hired("dies", "q")
	for i := range 3 {
		c.queued(fmt.Sprintf("orphan-%d", i), "q", func(n *model.NewTask) { n.WorkerID = c.IDs["dies"]; n.RunID = "r1" })
	}
	if got := c.claimed("dies", "c5", 5); len(got) != 3 {
		c.Fatalf("%s: claimed %v", c.what, got)
	}
	c.goOn(3500 * time.Millisecond)
	c.sweeps()
	c.goOn(5 * time.Second)
	c.sweeps()
	c.hired("leaves", "q")
	c.sure("cordon", func() error {
		_, err := c.Workers.Cordon(c.Ctx, trackertest.Scope, c.IDs["leaves"], "r")
		return err
	})
	c.sure("retire", func() error {
		_, err := c.Workers.Retire(c.Ctx, trackertest.Scope, c.IDs["leaves"], model.WorkerForced, "")
		return err
	})
	c.sweeps()
	c.sure("drain of a machine", func() error {
		_, err := c.Workers.DrainMachine(c.Ctx, trackertest.Scope, "host-leaves", workers.Drain{Reason: "r"})
		return err
	})
	c.hired("returns", "q", func(n *model.NewWorker) { n.MachineID = "host-leaves" })
	c.sure("resume of a machine", func() error {
		_, err := c.Workers.ResumeMachine(c.Ctx, trackertest.Scope, "host-leaves", "r")
		return err
	})
}

// brake holds workers and a herd of tasks that fall silent, and is released.
func (c *story) brake() {
	for i := range 55 {
		c.hired(fmt.Sprintf("herd-%02d", i), "hq")
	}
	c.selects("hq")
	c.goOn(3250 * time.Millisecond)
	c.sweeps()
	for i := range 60 {
		c.runs(fmt.Sprintf("herd-%02d", i), func(n *model.NewTask) {
			n.HeartbeatInterval, n.HeartbeatTimeout = 500*time.Millisecond, 2*time.Second
		})
	}
	c.goOn(2250 * time.Millisecond)
	c.sweeps()
	if task := c.MustGet("herd-00"); task.State != model.Running {
		c.Fatalf("%s: a held task is %s %s", c.what, task.State, task.Reason)
	}
	if w := c.MustWorker(c.IDs["herd-00"]); w.Status != model.Online {
		c.Fatalf("%s: a held worker is %s %s", c.what, w.Status, w.StatusReason)
	}
	c.sure("release", func() error { _, err := c.Brake.Release(c.Ctx, trackertest.Scope, time.Minute); return err })
	c.sweeps()
}

// repairs fixes what a store with lost writes has left behind.
func (c *story) repairs() {
	c.Plant(c.Key("ghost", "ix"), trackertest.Scope.String()+"/R/ghost")
	c.queued("held", "q")
	held := c.claimed("w2", "c6", 1)
	c.sure("reconcile", func() error { _, err := c.Sweeper.Reconcile(c.Ctx); return err })
	c.ended(held[0], model.Succeeded, false)
	c.check("damage", c.Store.Client.Del(c.Ctx, trackertest.WorkerRecord(c.Tracker, trackertest.Scope, c.IDs["p2"])).Err())
	c.sure("adopt", func() error { return c.Workers.Adopt(c.Ctx, trackertest.Scope, c.IDs["p2"], c.records["p2"]) })
}

// holds pauses time while beats are refused.
func (c *story) holds() {
	a := c.runs("held-back")
	beats := c.Key("held-back", "beats:2000")
	c.check("damage", c.Store.Client.Rename(c.Ctx, beats, "away").Err())
	c.check("damage", c.Store.Client.Set(c.Ctx, beats, "no set", 0).Err())
	c.WantCode(c.MustBeat(a, "").Err, model.Unavailable)
	c.holdsTime()
	c.check("damage", c.Store.Client.Rename(c.Ctx, "away", beats).Err())
	c.beats(a)
	c.ended(a, model.Succeeded, false)
}

// holdsTime keeps time until it has been paused once.
func (c *story) holdsTime() {
	ctx, cancel := context.WithCancel(c.Ctx)
	slowed := trackertest.RecordCalls(c.Tracker, "slowclock")
	stopped := make(chan error, 1)
	go func() { stopped <- c.Beats.KeepTime(ctx) }()
	trackertest.Until(c, func() bool { return len(slowed()) > 0 })
	cancel()
	c.check("keep time", <-stopped)
}

// revokes revokes tokens, and reads the list; before that it requests a sweep.
func (c *story) revokes() {
	c.sure("sweep on demand", func() error { _, err := c.Tracker.Sweeper.Sweep(c.Ctx); return err })
	one := revocations.Revocation{Kind: revocations.OfSubject, Tenant: "acme", Workspace: "prod", Name: "ann", IssuedBefore: storyBegins}
	c.sure("revoke", func() error { return c.Revocations.Revoke(c.Ctx, one) })
	c.sure("look at revocations", func() error { return c.Revocations.Refresh(c.Ctx) })
}

// readers reads everything.
func (c *story) readers() {
	c.sure("list", func() error {
		if err := c.readStats(); err != nil {
			return err
		}
		_, err := c.Tasks.List(c.Ctx, model.TaskFilter{Scope: trackertest.Scope, PageSize: 5})
		return err
	})
	c.sure("wait", func() error {
		_, err := c.Tasks.Wait(c.Ctx, tasks.WaitRequest{Scope: trackertest.Scope, TaskIDs: c.tasks, Wait: tasks.MaxWait})
		return err
	})
	c.sure("workers", func() error {
		_, err := c.Workers.List(c.Ctx, workers.WorkerFilter{Scope: trackertest.Scope, PageSize: 100})
		return err
	})
	c.sure("machine", func() error { _, err := c.Workers.Machine(c.Ctx, trackertest.Scope, "host-w1"); return err })
	c.sure("queues", func() error { _, err := c.Queues.List(c.Ctx, trackertest.Scope); return err })
	c.sure("events", func() error { _, err := c.Tracker.Events.List(c.Ctx, events.Query{Size: 100, Back: true}); return err })
}

// readStats publishes what this replica has counted and reads everything that dashboards show.
func (c *story) readStats() error {
	c.Stats.ForgetSnapshots()
	_, err := c.Stats.Leave(c.Ctx)
	if err == nil {
		_, err = c.Stats.Get(c.Ctx, trackertest.Scope)
	}
	if err == nil {
		_, err = c.Stats.System(c.Ctx)
	}
	if err == nil {
		_, err = c.Stats.Scopes(c.Ctx, stats.ScopeFilter{PageSize: 100})
	}
	if err == nil {
		_, err = c.Stats.Verdicts(c.Ctx, stats.VerdictQuery{Scope: trackertest.Scope, Since: time.Hour, By: []string{"machineId"}})
	}
	return err
}
