package tracker_test

import (
	"reflect"
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/tracker"
)

func TestStartTimeout(t *testing.T) {
	t.Parallel()
	contract(t, func(h *harness) {
		h.create(func(n *tracker.NewTask) { n.TaskID, n.TokenTTL = "t1", 3*time.Second })
		h.advance(2990 * time.Millisecond)
		if r := h.sweep(); r.TimedOut != 0 {
			h.Fatalf("early: %+v", r)
		}
		h.advance(10 * time.Millisecond)
		if r := h.sweep(); r.TimedOut != 1 {
			h.Fatalf("%+v", r)
		}
		task := h.wantState("t1", tracker.Failed, tracker.StartTimeout)
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
	contract(t, func(h *harness) {
		a := h.running(func(n *tracker.NewTask) { n.TaskID, n.RunTimeout = "t1", 3*time.Second })
		h.advance(1500 * time.Millisecond)
		h.beat(a, "")
		h.advance(1500 * time.Millisecond)
		if r := h.sweep(); r.TimedOut != 1 {
			h.Fatalf("%+v", r)
		}
		h.wantState("t1", tracker.Failed, tracker.RunTimeout)
		h.wantCode(h.beat(a, "").Err, tracker.Expired)
	})
}

func TestDeadline(t *testing.T) {
	t.Parallel()
	contract(t, func(h *harness) {
		deadline := h.store.Clock.Now().Add(5 * time.Second)
		a := h.running(func(n *tracker.NewTask) { n.TaskID, n.Deadline = "t1", deadline })
		h.create(queued, func(n *tracker.NewTask) { n.TaskID, n.Deadline = "t2", deadline })
		for range 5 {
			h.advance(time.Second)
			h.beat(a, "")
		}
		if r := h.sweep(); r.TimedOut != 2 {
			h.Fatalf("%+v", r)
		}
		h.wantState("t1", tracker.Failed, tracker.DeadlineExceeded)
		h.wantState("t2", tracker.Failed, tracker.DeadlineExceeded)
		_, err := h.NextAttempt(h.ctx, scope, "t1", 1)
		h.wantCode(err, tracker.AlreadyTerminal)
	})
}

// At the end of its retention a finished task leaves nothing behind.
func TestRetention(t *testing.T) {
	t.Parallel()
	contract(t, func(h *harness) {
		for range 16 { // some in each shard, so that the sets which all tasks share exist already
			h.create()
		}
		h.sweep()
		h.store.Clock.Advance(time.Minute) // the timeout that nobody lives by yet is dropped with the next sweep
		before := withoutEvents(h)
		a := h.running(func(n *tracker.NewTask) {
			n.TaskID, n.RunID, n.Labels, n.Deadline = "t1", "r1", map[string]string{"a": "b"}, h.store.Clock.Now().Add(time.Hour)
			n.RunTimeout = 2 * time.Hour
		})
		h.beat(a, "\tw\t5\t\"m\"")
		if _, err := h.Complete(h.ctx, a, tracker.Completion{Outcome: tracker.Succeeded}); err != nil {
			h.Fatal(err)
		}
		h.store.Clock.Advance(tracker.DefaultFinishedRetention)
		if r := h.sweep(); r.Removed != 1 || r.TimedOut != 0 {
			h.Fatalf("%+v", r)
		}
		_, err := h.Get(h.ctx, scope, "t1")
		h.wantCode(err, tracker.NotFound)
		if after := withoutEvents(h); !reflect.DeepEqual(before, after) {
			h.Fatalf("left behind:\n%v\nbefore:\n%v", after, before)
		}
	})
}

// withoutEvents is the keyspace but for what changes by itself: events, and who sweeps.
func withoutEvents(h *harness) map[string]any {
	h.sweep()
	dump := h.store.Dump(h.TB)
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
	contract(t, func(h *harness) {
		a := h.running(func(n *tracker.NewTask) { n.TaskID = "t1" })
		done := h.running(func(n *tracker.NewTask) { n.TaskID = "t2" })
		if _, err := h.Complete(h.ctx, done, tracker.Completion{Outcome: tracker.Succeeded}); err != nil {
			h.Fatal(err)
		}
		c, err := h.NextAttempt(h.ctx, scope, "t1", 1)
		if err != nil {
			h.Fatal(err)
		}
		h.beat(c.Envelope.Attempt, "")
		before := h.store.Dump(h.TB)
		for _, old := range []*tracker.Attempt{a, done} {
			if h.beat(old, "\tw\t99\t\"late\"").Err == nil {
				h.Fatal("a late beat was let in")
			}
			if _, err := h.Start(h.ctx, old, tracker.Report{WorkerID: "late"}); err == nil {
				h.Fatal("a late start was let in")
			}
			if _, err := h.Complete(h.ctx, old, tracker.Completion{Outcome: tracker.Cancelled}); err == nil {
				h.Fatal("a late completion was let in")
			}
		}
		_, err = h.Cancel(h.ctx, scope, "t2", "late")
		h.wantCode(err, tracker.AlreadyTerminal)
		_, err = h.NextAttempt(h.ctx, scope, "t1", 7)
		h.wantCode(err, tracker.AttemptMismatch)
		h.get("t1")
		if after := h.store.Dump(h.TB); !reflect.DeepEqual(before, after) {
			h.Fatalf("changed:\n%v\nbefore:\n%v", after, before)
		}
	})
}
