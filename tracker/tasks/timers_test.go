package tasks_test

import (
	"reflect"
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/trackertest"
)

func TestStartTimeout(t *testing.T) {
	t.Parallel()
	trackertest.Contract(t, func(h *trackertest.Harness) {
		h.MustCreate(func(n *model.NewTask) { n.TaskID, n.TokenTTL = "t1", 3*time.Second })
		h.Advance(2990 * time.Millisecond)
		if r := h.MustSweep(); r.TimedOut != 0 {
			h.Fatalf("early: %+v", r)
		}
		h.Advance(10 * time.Millisecond)
		if r := h.MustSweep(); r.TimedOut != 1 {
			h.Fatalf("%+v", r)
		}
		task := h.WantState("t1", model.Failed, model.StartTimeout)
		if e := task.History[0].Evidence; e == nil || e.Timeout != 3*time.Second || !e.LastHeartbeatAt.IsZero() {
			h.Fatalf("%+v", e)
		}
		if string(task.Error) != `{"category":"TIMEOUT","message":"Task was not started in time","retryable":true}` {
			h.Fatalf("%s", task.Error)
		}
	})
}

func TestRunTimeout(t *testing.T) {
	t.Parallel()
	trackertest.Contract(t, func(h *trackertest.Harness) {
		a := h.Running(func(n *model.NewTask) { n.TaskID, n.RunTimeout = "t1", 3*time.Second })
		h.Advance(1500 * time.Millisecond)
		h.MustBeat(a, "")
		h.Advance(1500 * time.Millisecond)
		if r := h.MustSweep(); r.TimedOut != 1 {
			h.Fatalf("%+v", r)
		}
		h.WantState("t1", model.Failed, model.RunTimeout)
		h.WantCode(h.MustBeat(a, "").Err, model.Expired)
	})
}

func TestDeadline(t *testing.T) {
	t.Parallel()
	trackertest.Contract(t, func(h *trackertest.Harness) {
		deadline := h.Store.Clock.Now().Add(5 * time.Second)
		a := h.Running(func(n *model.NewTask) { n.TaskID, n.Deadline = "t1", deadline })
		h.MustCreate(trackertest.Queued, func(n *model.NewTask) { n.TaskID, n.Deadline = "t2", deadline })
		for range 5 {
			h.Advance(time.Second)
			h.MustBeat(a, "")
		}
		if r := h.MustSweep(); r.TimedOut != 2 {
			h.Fatalf("%+v", r)
		}
		h.WantState("t1", model.Failed, model.DeadlineExceeded)
		h.WantState("t2", model.Failed, model.DeadlineExceeded)
		_, err := h.Tasks.NextAttempt(h.Ctx, trackertest.Scope, "t1", 1)
		h.WantCode(err, model.AlreadyTerminal)
	})
}

// At the end of its retention a finished task leaves nothing behind.
func TestRetention(t *testing.T) {
	t.Parallel()
	trackertest.Contract(t, func(h *trackertest.Harness) {
		for range 16 { // some in each shard, so that the sets which all tasks share exist already
			h.MustCreate()
		}
		h.MustSweep()
		h.Store.Clock.Advance(time.Minute) // the next sweep drops the timeout that no attempt uses yet
		before := withoutEvents(h)
		a := h.Running(func(n *model.NewTask) {
			n.TaskID, n.RunID, n.Labels, n.Deadline = "t1", "r1", map[string]string{"a": "b"}, h.Store.Clock.Now().Add(time.Hour)
			n.RunTimeout = 2 * time.Hour
		})
		h.MustBeat(a, "\tw\t5\t\"m\"")
		if _, err := h.Beats.Complete(h.Ctx, a, model.Completion{Outcome: model.Succeeded}); err != nil {
			h.Fatal(err)
		}
		h.Store.Clock.Advance(model.DefaultFinishedRetention)
		if r := h.MustSweep(); r.Removed != 1 || r.TimedOut != 0 {
			h.Fatalf("%+v", r)
		}
		_, err := h.Tasks.Get(h.Ctx, trackertest.Scope, "t1")
		h.WantCode(err, model.NotFound)
		if after := withoutEvents(h); !reflect.DeepEqual(before, after) {
			h.Fatalf("left behind:\n%v\nbefore:\n%v", after, before)
		}
	})
}

// withoutEvents returns the keyspace without what changes automatically: events, and which sweepers are live.
func withoutEvents(h *trackertest.Harness) map[string]any {
	h.MustSweep()
	dump := h.Store.Dump(h.TB)
	for key := range dump {
		for _, suffix := range []string{":events", ":sweepers", ":clock", ":replicas", ":outages"} {
			if len(key) > len(suffix) && key[len(key)-len(suffix):] == suffix {
				delete(dump, key)
			}
		}
	}
	return dump
}

// Reading, and every refusal, leaves the keyspace as it was.
func TestRefusalsChangeNothing(t *testing.T) {
	t.Parallel()
	trackertest.Contract(t, func(h *trackertest.Harness) {
		a := h.Running(func(n *model.NewTask) { n.TaskID = "t1" })
		done := h.Running(func(n *model.NewTask) { n.TaskID = "t2" })
		if _, err := h.Beats.Complete(h.Ctx, done, model.Completion{Outcome: model.Succeeded}); err != nil {
			h.Fatal(err)
		}
		c, err := h.Tasks.NextAttempt(h.Ctx, trackertest.Scope, "t1", 1)
		if err != nil {
			h.Fatal(err)
		}
		h.MustBeat(c.Envelope.Attempt, "")
		before := h.Store.Dump(h.TB)
		for _, old := range []*model.Attempt{a, done} {
			if h.MustBeat(old, "\tw\t99\t\"late\"").Err == nil {
				h.Fatal("a late beat was accepted")
			}
			if _, err := h.Beats.Start(h.Ctx, old, model.Report{WorkerID: "late"}); err == nil {
				h.Fatal("a late start was accepted")
			}
			if _, err := h.Beats.Complete(h.Ctx, old, model.Completion{Outcome: model.Cancelled}); err == nil {
				h.Fatal("a late completion was accepted")
			}
		}
		_, err = h.Tasks.Cancel(h.Ctx, trackertest.Scope, "t2", model.CancelRequest{Reason: "late"})
		h.WantCode(err, model.AlreadyTerminal)
		_, err = h.Tasks.NextAttempt(h.Ctx, trackertest.Scope, "t1", 7)
		h.WantCode(err, model.AttemptMismatch)
		h.MustGet("t1")
		if after := h.Store.Dump(h.TB); !reflect.DeepEqual(before, after) {
			h.Fatalf("changed:\n%v\nbefore:\n%v", after, before)
		}
	})
}
