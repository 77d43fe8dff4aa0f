package webhooks_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/internal/redistest"
	"github.com/lubdub-io/lubdub/tracker"
	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/trackertest"
)

// A delivering process may die at any step: the next one delivers what is left, and nothing is missed. A message that comes twice has the
// same ID, and the order for each subject is kept.
func TestNothingIsMissedWhenAProcessDies(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, s *redistest.Store) {
		r := &receiver{}
		with := func(o *tracker.Options) { o.WebhookPoster = r }
		h := &hooked{trackertest.NewHarness(t, s, with), r}
		h.create("w", "task.*")
		received := map[string][]string{}
		tasks := 0
		for calls := 0; calls < 14; calls++ {
			for range 3 {
				id := fmt.Sprint("t", tasks)
				tasks++
				a := h.Running(named(id))
				if _, err := h.Beats.Complete(h.Ctx, a, model.Completion{Outcome: model.Succeeded}); err != nil {
					t.Fatal(err)
				}
			}
			dying := trackertest.NewHarness(t, s, with)
			trackertest.DieAfter(dying.Tracker, calls)
			_ = dying.Sweeper.Deliver(context.Background()) // ends with an error, or with the process
			h.Store.Clock.Advance(4 * time.Second)          // its shards are free then
			h.remember(received, h.deliver())
		}
		for i := range tasks {
			got := received[fmt.Sprint("t", i)]
			if !inOrder(got, "task.created", "task.dispatched", "task.started", "task.succeeded") {
				t.Errorf("t%d was delivered as %v", i, got)
			}
		}
	})
}

// remember adds what was posted to the messages about each subject.
func (h *hooked) remember(received map[string][]string, posts []post) {
	for _, p := range posts {
		subject := p.message.Data.Subject
		received[subject] = append(received[subject], p.message.Type)
	}
}

// inOrder reports whether all of `want` arrived, each for the first time after the one before it.
func inOrder(got []string, want ...string) bool {
	for _, kind := range got {
		if len(want) > 0 && kind == want[0] {
			want = want[1:]
		}
	}
	return len(want) == 0
}

// Nothing is missed when the reply of any call is lost, or the call never reaches Redis.
func TestNothingIsMissedWhateverIsLost(t *testing.T) {
	t.Parallel()
	contract(t, func(h *hooked) {
		h.create("w", "task.created")
		received := map[string][]string{}
		tasks := 0
		for _, script := range []string{"webhooks_peek", "webhooks_taken", "webhook_push", "webhook_claim", "webhook_settle",
			"webhook_read", "read"} {
			for _, lost := range []bool{false, true} {
				var mu sync.Mutex
				left := 2
				trackertest.FailCalls(h.Tracker, script, lost, func(int) bool {
					mu.Lock()
					defer mu.Unlock()
					left--
					return left >= 0
				})
				for range 3 {
					h.MustCreate(named(fmt.Sprint("t", tasks)))
					tasks++
				}
				for range 4 {
					_ = h.Sweeper.Deliver(h.Ctx)
				}
				h.remember(received, h.take())
			}
		}
		h.remember(received, h.deliver())
		for i := range tasks {
			if len(received[fmt.Sprint("t", i)]) == 0 {
				t.Errorf("t%d was not delivered", i)
			}
		}
		for range 4 { // still to be lost
			_, _ = h.Webhooks.Get(h.Ctx, trackertest.Scope, "w")
		}
		if w := h.hook("w"); w.Pending != 0 {
			t.Errorf("%d wait", w.Pending)
		}
	})
}

// Without webhooks, errors of Redis delay nothing.
func TestNoWebhooksAreHeldUpByNothing(t *testing.T) {
	t.Parallel()
	contract(t, func(h *hooked) {
		h.MustCreate()
		trackertest.FailCalls(h.Tracker, "webhooks_list", false, func(int) bool { return true })
		h.deliver()
	})
}

// A webhook that is created while a courier without knowledge of it is about to collect events still receives them.
func TestANewWebhookMissesNothing(t *testing.T) {
	t.Parallel()
	contract(t, func(h *hooked) {
		h.create("old", "task.created")
		h.deliver()
		made := false
		trackertest.After(h.Tracker, "webhooks_peek", func() {
			if !made {
				made = true
				h.create("new", "task.created")
				h.MustCreate(named("t1"))
			}
		})
		h.deliver()
		h.deliver()
		if got := h.deliveries("new", ""); len(got) != 1 || got[0].Subject != "t1" {
			t.Errorf("the new one was sent %+v", got)
		}
	})
}

// Two couriers that deliver concurrently, and in turns, send nothing twice while both work; a slow webhook delays no other.
func TestASlowWebhookHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	contract(t, func(h *hooked) {
		h.create("slow", "task.created")
		h.create("fast", "task.created")
		const tasks = 100
		for i := range tasks {
			h.MustCreate(named(fmt.Sprint("t", i)))
		}
		release, fast := make(chan struct{}), make(chan struct{}, tasks)
		h.answers(func(url string, _ post) (int, error) {
			if url == "https://example.com/slow" {
				<-release
			} else {
				fast <- struct{}{}
			}
			return 200, nil
		})
		done := make(chan error, 1)
		go func() { done <- h.Sweeper.Deliver(h.Ctx) }()
		for range tasks { // while the slow one does not respond
			<-fast
		}
		close(release)
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		h.deliver()
		for _, id := range []string{"slow", "fast"} {
			if got := h.deliveries(id, "DELIVERED"); len(got) != tasks {
				t.Errorf("%s got %d", id, len(got))
			}
		}
	})
}
