package tasks_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/internal/redistest"
	"github.com/lubdub-io/lubdub/tracker"
	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/tasks"
	"github.com/lubdub-io/lubdub/tracker/trackertest"
)

// got is what a wait returned.
type got struct {
	ended, notFound []string
	err             error
}

func (g got) String() string {
	return fmt.Sprintf("ended %v, not found %v, %v", g.ended, g.notFound, g.err)
}

func waitFor(h *trackertest.Harness, ctx context.Context, wait time.Duration, ids ...string) got {
	r, err := h.Tasks.Wait(ctx, tasks.WaitRequest{Scope: trackertest.Scope, TaskIDs: ids, Wait: wait})
	if err != nil {
		return got{err: err}
	}
	g := got{notFound: r.NotFound}
	for _, task := range r.Tasks {
		g.ended = append(g.ended, task.ID)
	}
	return g
}

// waits begins a wait with the longest time, and returns when it waits for all of these tasks.
func waits(h *trackertest.Harness, ctx context.Context, ids ...string) <-chan got {
	h.Helper()
	before := h.Tasks.Awaited()
	result := make(chan got, 1)
	go func() { result <- waitFor(h, ctx, tasks.MaxWait, ids...) }()
	trackertest.Eventually(h, "it waits", func() bool { return h.Tasks.Awaited() == before+len(ids) && announced(h, ids) })
	return result
}

// announced reports whether the ends of all of these tasks will be announced.
func announced(h *trackertest.Harness, ids []string) bool {
	for _, id := range ids {
		if h.Store.Client.HGet(h.Ctx, taskKey(h, id), "aw").Val() != "1" {
			return false
		}
	}
	return true
}

func taskKey(h *trackertest.Harness, id string) string {
	return h.Tracker.Store.Keys[h.Tracker.Store.ShardOf(trackertest.Scope, id)].Task(trackertest.Scope.String() + "/" + id)
}

// A wait ends with the first task that ends, in whatever way and through whichever replica.
func TestAWaitEndsWithTheFirstEnd(t *testing.T) {
	t.Parallel()
	silent := func(n *model.NewTask) { n.TaskID = "t" }
	queued := func(n *model.NewTask) { n.TaskID, n.Queue, n.HeartbeatTimeout = "t", "q", 0 }
	complete := func(h *trackertest.Harness, a *model.Attempt, c model.Completion) {
		if _, err := h.Beats.Complete(h.Ctx, a, c); err != nil {
			h.Fatal(err)
		}
	}
	for name, end := range map[string]struct {
		task func(*model.NewTask)
		do   func(h *trackertest.Harness, a *model.Attempt)
	}{
		"succeeds": {silent, func(h *trackertest.Harness, a *model.Attempt) {
			complete(h, a, model.Completion{Outcome: model.Succeeded})
		}},
		"fails": {silent, func(h *trackertest.Harness, a *model.Attempt) {
			complete(h, a, model.Completion{Outcome: model.Failed})
		}},
		"cancels": {silent, func(h *trackertest.Harness, a *model.Attempt) {
			complete(h, a, model.Completion{Outcome: model.Cancelled})
		}},
		"is lost": {silent, func(h *trackertest.Harness, a *model.Attempt) {
			h.MustBeat(a, "")
			h.Advance(3 * time.Second)
			h.MustSweep()
		}},
		"is cancelled": {queued, func(h *trackertest.Harness, _ *model.Attempt) {
			if _, err := h.Tasks.Cancel(h.Ctx, trackertest.Scope, "t", model.CancelRequest{}); err != nil {
				h.Fatal(err)
			}
		}},
		"exceeds its deadline": {func(n *model.NewTask) {
			queued(n)
			n.Deadline = time.Date(2026, 1, 15, 10, 0, 2, 0, time.UTC)
		}, func(h *trackertest.Harness, _ *model.Attempt) {
			h.Advance(3 * time.Second)
			h.MustSweep()
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			trackertest.Contract(t, func(h *trackertest.Harness) {
				other := trackertest.NewHarness(h.TB, h.Store)
				made := h.MustCreate(end.task)
				h.MustCreate(func(n *model.NewTask) { queued(n); n.TaskID = "other" })
				here, there := waits(h, h.Ctx, "other", "t"), waits(other, h.Ctx, "t")
				single, begun := make(chan *model.Task, 1), time.Now()
				go func() {
					task, err := h.Tasks.GetWhenEnded(h.Ctx, trackertest.Scope, "t", tasks.MaxWait)
					if err != nil {
						h.Error(err)
					}
					single <- task
				}()
				trackertest.Eventually(h, "all of them wait", func() bool { return h.Tasks.Awaited()+other.Tasks.Awaited() == 4 })
				var a *model.Attempt
				if made.Envelope != nil {
					a = made.Envelope.Attempt
				}
				end.do(h, a)
				for _, g := range []got{<-here, <-there} {
					if !slices.Equal(g.ended, []string{"t"}) || g.notFound != nil || g.err != nil {
						h.Error(g)
					}
				}
				if task := <-single; task == nil || !task.State.Terminal() {
					h.Errorf("%+v", task)
				}
				if time.Since(begun) >= tasks.MaxWait {
					h.Error("the requests were not woken")
				}
				if n := h.Tasks.Awaited() + other.Tasks.Awaited(); n != 0 {
					h.Errorf("%d tasks are still awaited", n)
				}
			})
		})
	}
}

// A wait for tasks that have ended, or that do not exist, ends at once, with at most 100 tasks at a time.
func TestAWaitForEndedTasksEndsAtOnce(t *testing.T) {
	t.Parallel()
	trackertest.Contract(t, func(h *trackertest.Harness) {
		ids := []string{"none"}
		for i := range 120 {
			id := fmt.Sprintf("t%03d", i)
			ids = append(ids, id)
			h.MustCreate(func(n *model.NewTask) { n.TaskID, n.Queue, n.HeartbeatTimeout = id, "q", 0 })
			if i != 50 {
				_, err := h.Tasks.Cancel(h.Ctx, trackertest.Scope, id, model.CancelRequest{})
				if err != nil {
					h.Fatal(err)
				}
			}
		}
		first := waitFor(h, h.Ctx, tasks.MaxWait, ids...)
		if len(first.ended) != 100 || first.ended[99] != "t100" || !slices.Equal(first.notFound, []string{"none"}) {
			h.Fatal(first)
		}
		rest := slices.DeleteFunc(ids, func(id string) bool { return id == "none" || slices.Contains(first.ended, id) })
		if g := waitFor(h, h.Ctx, tasks.MaxWait, rest...); len(g.ended) != 19 || slices.Contains(g.ended, "t050") {
			h.Fatal(g)
		}
		if g := waitFor(h, h.Ctx, 0, "t050"); g.ended != nil || g.notFound != nil || g.err != nil {
			h.Fatal(g)
		}
		if _, err := h.Tasks.GetWhenEnded(h.Ctx, trackertest.Scope, "none", tasks.MaxWait); model.CodeOf(err) != model.NotFound {
			h.Fatal(err)
		}
	}, patient)
}

// A wait ends with its context.
func TestAWaitEndsWithItsRequest(t *testing.T) {
	t.Parallel()
	trackertest.Contract(t, func(h *trackertest.Harness) {
		h.MustCreate(func(n *model.NewTask) { n.TaskID, n.Queue, n.HeartbeatTimeout = "t", "q", 0 })
		ctx, cancel := context.WithCancel(h.Ctx)
		many := waits(h, ctx, "t")
		single := make(chan error, 1)
		go func() {
			_, err := h.Tasks.GetWhenEnded(ctx, trackertest.Scope, "t", tasks.MaxWait)
			single <- err
		}()
		cancel()
		if g, err := <-many, <-single; !errors.Is(g.err, context.Canceled) || !errors.Is(err, context.Canceled) {
			h.Error(g, err)
		}
	})
}

// Waiting requests do not read Redis repeatedly; when the subscription was away, they look again once.
func TestWaitsDoNotPoll(t *testing.T) {
	t.Parallel()
	s := redistest.Real(t)
	h := trackertest.NewHarness(t, s, func(o *tracker.Options) { o.Shards = 1 })
	h.MustCreate(func(n *model.NewTask) { n.TaskID, n.Queue, n.HeartbeatTimeout = "t", "q", 0 })
	h.MustCreate(func(n *model.NewTask) { n.TaskID, n.Queue, n.HeartbeatTimeout = "u", "q", 0 })
	calls := trackertest.CountScripts(h.Tracker)
	result := waits(h, h.Ctx, "t")
	looks := func(n int) func() bool { return func() bool { return calls()["await"] >= n } }
	trackertest.Eventually(t, "it looks again once the subscription is there", looks(2))
	first := calls()["await"]
	var more []<-chan got
	for range 50 {
		more = append(more, waits(h, h.Ctx, "u"))
	}
	trackertest.Eventually(t, "each of them has looked", looks(first+50))
	// An end that is not announced, as by a replica of an older release, is found when the subscription is established again.
	s.Client.HDel(h.Ctx, taskKey(h, "t"), "aw")
	if _, err := h.Tasks.Cancel(h.Ctx, trackertest.Scope, "t", model.CancelRequest{}); err != nil {
		t.Fatal(err)
	}
	if err := s.Client.ClientKillByFilter(h.Ctx, "TYPE", "pubsub").Err(); err != nil {
		t.Fatal(err)
	}
	if g := <-result; !slices.Equal(g.ended, []string{"t"}) {
		t.Error(g)
	}
	if _, err := h.Tasks.Cancel(h.Ctx, trackertest.Scope, "u", model.CancelRequest{}); err != nil {
		t.Fatal(err)
	}
	for _, one := range more {
		if g := <-one; !slices.Equal(g.ended, []string{"u"}) {
			t.Error(g)
		}
	}
	// At the beginning, when the subscription has been away, and at the end of the task. A busy host may lose the subscription again.
	if n := calls()["await"] - first; n > 50+51+50+51 {
		t.Errorf("51 waits read Redis %d times", n)
	}
}
