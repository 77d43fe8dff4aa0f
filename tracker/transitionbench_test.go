package tracker_test

import (
	"context"
	"io"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/internal/redistest"
	"github.com/lubdub-io/lubdub/tracker"
	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/queues"
	"github.com/lubdub-io/lubdub/tracker/sweep"
)

// BenchmarkTransitions reports as redis-ns/op what each transition of a queued task costs Redis, as CPU time of its process: other load
// on the host matters little. It uses only what much older commits have too, so that bench/compare.sh can run it in their trees (WITH).
func BenchmarkTransitions(b *testing.B) {
	var t transitions
	for _, act := range []struct {
		name string
		do   func(n int) time.Duration
	}{
		{"create", func(n int) time.Duration { return t.cost(func() { t.create(n) }) }},
		{"claim", func(n int) time.Duration {
			t.create(n)
			return t.cost(func() { t.claim(n) })
		}},
		{"start", func(n int) time.Duration {
			t.create(n)
			attempts := t.claim(n)
			return t.cost(func() { t.start(attempts) })
		}},
		{"complete", func(n int) time.Duration {
			t.create(n)
			attempts := t.start(t.claim(n))
			return t.cost(func() { t.complete(attempts) })
		}},
		{"expire and retry", func(n int) time.Duration { return t.expire(n, 3) }},
		{"expire and fail", func(n int) time.Duration { return t.expire(n, 0) }},
	} {
		b.Run(act.name, func(b *testing.B) {
			t.open(b)
			t.complete(t.start(t.claim(t.create(5000)))) // fills lists and the stream of events
			t.start(t.claim(t.create(5000)))
			var costs []float64
			for left := b.N; left > 0; left -= 250 {
				n := min(left, 250)
				costs = append(costs, float64(act.do(n).Nanoseconds())/float64(n))
			}
			slices.Sort(costs) // a busy host makes some of them more expensive, and none cheaper
			b.ReportMetric(costs[len(costs)/4], "redis-ns/op")
		})
	}
}

// transitions are a tracker on a Redis that nothing else uses, with a clock that the test controls.
type transitions struct {
	*testing.B
	*tracker.Tracker
	store  *redistest.Store
	server *redistest.Server
	worker string
	losses int           // allowed by a task's policy
	silent time.Duration // after which an attempt is a zombie; 0: when its worker is
}

var transitionScope = model.Scope{Tenant: "acme", Workspace: "prod"}

func (t *transitions) must(err error) {
	if err != nil {
		t.Fatal(err)
	}
}

func (t *transitions) open(b *testing.B) {
	b.Helper()
	*t = transitions{B: b, losses: 3}
	t.store, t.server = redistest.Alone(b)
	var err error
	t.Tracker, err = tracker.Open(b.Context(), tracker.Options{RedisURL: t.store.URL, Scripts: t.store.Scripts, Shards: 16,
		RedisTimeout: time.Minute, WorkerInterval: time.Hour, Logger: slog.New(slog.NewTextHandler(io.Discard, nil))})
	t.must(err)
	b.Cleanup(func() { _ = t.Close(context.Background()) })
	t.must(t.Beats.Tick())
	n := model.NewWorker{Scope: transitionScope, Queue: "q", Types: []string{"x"}, MaxConcurrent: 10_000}
	t.must(n.Validate())
	w, err := t.Workers.Register(b.Context(), n)
	t.must(err)
	t.worker = w.WorkerID
}

// cost returns the time that Redis spends on an act.
func (t *transitions) cost(act func()) time.Duration {
	before := t.server.CPU(t)
	act()
	return t.server.CPU(t) - before
}

func (t *transitions) create(n int) int {
	retry := model.DefaultRetryPolicy
	retry.MaxLosses = t.losses
	for left := n; left > 0; left -= 1000 {
		batch := make([]model.NewTask, min(left, 1000))
		for i := range batch {
			batch[i] = model.NewTask{Scope: transitionScope, Queue: "q", Type: "x", HeartbeatInterval: t.silent / 2,
				HeartbeatTimeout: t.silent, Retry: &retry}
			t.must(batch[i].Validate(t.store.Clock.Now()))
		}
		for _, r := range t.Tasks.CreateBatch(t.Context(), batch) {
			t.must(r.Err)
		}
	}
	return n
}

func (t *transitions) claim(n int) (attempts []*model.Attempt) {
	for len(attempts) < n {
		got, err := t.Queues.Claim(t.Context(), queues.ClaimRequest{Scope: transitionScope, WorkerID: t.worker, Queue: "q",
			Max: min(queues.MaxClaim, n-len(attempts))})
		t.must(err)
		for _, e := range got {
			attempts = append(attempts, e.Attempt)
		}
	}
	return attempts
}

// each runs an act for attempts, as many at once as in a busy replica.
func (t *transitions) each(attempts []*model.Attempt, act func(*model.Attempt) error) []*model.Attempt {
	var all sync.WaitGroup
	errs := make([]error, len(attempts))
	const atOnce = 64
	for w := range atOnce {
		all.Go(func() {
			for i := w; i < len(attempts); i += atOnce {
				errs[i] = act(attempts[i])
			}
		})
	}
	all.Wait()
	for _, err := range errs {
		t.must(err)
	}
	return attempts
}

func (t *transitions) start(attempts []*model.Attempt) []*model.Attempt {
	return t.each(attempts, func(a *model.Attempt) error {
		_, err := t.Beats.Start(t.Context(), a, model.Report{})
		return err
	})
}

func (t *transitions) complete(attempts []*model.Attempt) {
	t.each(attempts, func(a *model.Attempt) error {
		_, err := t.Beats.Complete(t.Context(), a, model.Completion{Outcome: model.Succeeded})
		return err
	})
}

// expire ends attempts that were silent.
func (t *transitions) expire(n, losses int) time.Duration {
	t.silent, t.losses = 2*time.Second, losses
	t.create(n)
	t.start(t.claim(n))
	for range 20 { // longer steps would not advance shard time further
		t.store.Clock.Advance(200 * time.Millisecond)
		t.must(t.Beats.Tick())
	}
	sweeper := sweep.NewSweeper(t.Tracker.Sweeper, sweep.SweeperOptions{ID: "swp_bench"})
	ended := 0
	spent := t.cost(func() {
		for range 10 {
			r, err := sweeper.RunOnce(t.Context())
			t.must(err)
			if ended += r.Zombies; ended >= n {
				break
			}
		}
	})
	if ended != n {
		t.Fatalf("%d of %d ended", ended, n)
	}
	return spent
}
