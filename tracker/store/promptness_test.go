package store_test

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/internal/faultproxy"
	"github.com/lubdub-io/lubdub/internal/redistest"
	"github.com/lubdub-io/lubdub/internal/testenv"
	"github.com/lubdub-io/lubdub/tracker"
	"github.com/lubdub-io/lubdub/tracker/beats"
	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/store"
	"github.com/lubdub-io/lubdub/tracker/trackertest"
	"github.com/lubdub-io/lubdub/tracker/workers"
)

// waits measures how long concurrent calls wait for their results.
type waits struct {
	mu   sync.Mutex
	took []time.Duration
	bad  []error
	own  time.Duration // delay of this process itself meanwhile; of a crowd
}

func (a *waits) run(n int, call func(i int) error) {
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			start := time.Now()
			err := call(i)
			d := time.Since(start)
			a.mu.Lock()
			defer a.mu.Unlock()
			a.took = append(a.took, d)
			if code := model.CodeOf(err); err != nil && code != model.Unavailable && code != model.Overloaded {
				a.bad = append(a.bad, err)
			}
		})
	}
	all.Wait()
}

// within records in `exceeded` the calls that took longer than a limit.
func (a *waits) within(t *testing.T, exceeded redistest.TooLong, what string, limit time.Duration) {
	t.Helper()
	slices.Sort(a.took)
	median, most := a.took[len(a.took)/2], a.took[len(a.took)-1]
	t.Logf("%s: %d answers, median %v, most %v", what, len(a.took), median, most)
	if most > limit {
		exceeded[what] = fmt.Sprintf("an answer took %v; want %v", most, limit)
	}
	if len(a.bad) > 0 {
		t.Errorf("%s: %v", what, a.bad[0])
	}
}

// crowd makes a thousand calls of each kind that may wait, all at once, in every lane.
func crowd(t *testing.T, tr *tracker.Tracker, attempts []*model.Attempt, worker string) (call func(*waits)) {
	ctx := t.Context()
	return func(a *waits) {
		own := redistest.OwnDelays()
		defer func() { a.own = own() }()
		var all sync.WaitGroup
		for _, call := range []func(i int) error{
			func(i int) error {
				_, err := tr.Beats.Complete(ctx, attempts[i], model.Completion{Outcome: model.Succeeded})
				return err
			},
			func(i int) error { b := &beats.Beat{Attempt: attempts[i]}; tr.Beats.Beat(b); return b.Err },
			func(i int) error {
				_, err := tr.Workers.Beat(ctx, trackertest.Scope, worker, workers.WorkerBeat{})
				return err
			},
			func(i int) error { _, err := tr.Beats.Start(ctx, attempts[i], model.Report{}); return err },
			func(i int) error { _, err := tr.Tasks.Get(ctx, trackertest.Scope, attempts[i].TaskID); return err },
			func(i int) error {
				_, err := tr.Tasks.Create(ctx, model.NewTask{Scope: trackertest.Scope, IdempotencyKey: fmt.Sprint("k", i), IdempotencyHash: "h",
					HeartbeatTimeout: time.Minute})
				return err
			},
		} {
			all.Go(func() { a.run(len(attempts), call) })
		}
		all.Go(func() {
			a.run(10, func(int) error {
				_, err := tr.Tasks.List(ctx, model.TaskFilter{Scope: trackertest.Scope, Type: "none", PageSize: 100})
				return err
			})
		})
		all.Wait()
	}
}

// A thousand concurrent calls of each kind all get a response in time while Redis hangs or is slow, in every lane, however many wait
// before them, and with each kind of durability.
func TestACrowdIsAnsweredInTimeWhileRedisHangs(t *testing.T) {
	testenv.OnlyAll(t)
	const timeout = time.Second
	for _, durability := range []store.Durability{store.Memory, store.Fsync} {
		t.Run(string(durability), func(t *testing.T) {
			redistest.Measured(t, func(t *testing.T) redistest.TooLong { return crowdWhileRedisHangs(t, timeout, durability) })
		})
	}
}

func crowdWhileRedisHangs(t *testing.T, timeout time.Duration, durability store.Durability) redistest.TooLong {
	server := redistest.StartServer(t, "--appendonly", "yes", "--appendfsync", "always")
	proxy := faultproxy.Start(t, server.Addr)
	tr := trackertest.Open(t, tracker.Options{
		RedisURL: "redis://" + redistest.As(proxy.Addr) + "/0", RedisTimeout: timeout, Durability: durability,
		Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
	})
	patient := trackertest.Open(t, tracker.Options{RedisURL: server.URL(), RedisTimeout: 10 * time.Second})
	attempts := make([]*model.Attempt, 1000)
	for i := range attempts {
		attempts[i] = trackertest.NewTask(t, patient, fmt.Sprint("t", i))
	}
	connected(t, tr, attempts[:1])
	w, err := patient.Workers.Register(t.Context(), model.NewWorker{Scope: trackertest.Scope, Queue: "q", Types: []string{"t"}})
	if err != nil {
		t.Fatal(err)
	}
	call := crowd(t, tr, attempts, w.WorkerID)
	var first, second, slow waits
	if err := server.Freeze(); err != nil {
		t.Fatal(err)
	}
	call(&first)
	call(&second)
	if err := server.Thaw(); err != nil {
		t.Fatal(err)
	}
	backAgain(t, tr)
	proxy.Delay(timeout * 7 / 10)
	call(&slow)
	proxy.Delay(0)
	limit, exceeded := timeout*3/2, redistest.TooLong{}
	first.within(t, exceeded, "when it began to hang", limit+first.own)
	second.within(t, exceeded, "while it was known to hang", limit+second.own)
	slow.within(t, exceeded, "while it was slow", limit+slow.own)
	trackertest.Eventually(t, "all is done", func() bool {
		_, err := tr.Beats.Complete(t.Context(), attempts[999], model.Completion{Outcome: model.Succeeded})
		return err == nil
	})
	return exceeded
}

// connected returns when a tracker has connections to the servers of all these attempts.
func connected(t *testing.T, tr *tracker.Tracker, attempts []*model.Attempt) {
	t.Helper()
	for _, a := range attempts {
		trackertest.Eventually(t, "it has a connection", func() bool {
			b := &beats.Beat{Attempt: a}
			tr.Beats.Beat(b)
			_, err := tr.Tasks.Get(t.Context(), trackertest.Scope, a.TaskID)
			return err == nil && b.Err == nil
		})
	}
}

// A frozen node of a Cluster delays no call to a shard on another node.
func TestAFrozenNodeDelaysNoOther(t *testing.T) {
	t.Parallel()
	redistest.Measured(t, callsAlongsideFrozenNode)
}

func callsAlongsideFrozenNode(t *testing.T) redistest.TooLong {
	const timeout = time.Second
	c := redistest.StartCluster(t, 3, 0, time.Hour)
	tr := trackertest.Open(t, tracker.Options{RedisURL: c.URL(), RedisTimeout: timeout, Shards: 12})
	patient := trackertest.Open(t, tracker.Options{RedisURL: c.URL(), RedisTimeout: 10 * time.Second})
	var healthy, cut []*model.Attempt
	frozen := c.Servers[1]
	for i := range 300 {
		a := trackertest.NewTask(t, patient, fmt.Sprint("t", i))
		owner, err := c.Owner(c.Slot(fmt.Sprint(tr.Store.ShardOf(trackertest.Scope, a.TaskID))), c.Servers[0])
		if err != nil {
			t.Fatal(err)
		}
		if owner == frozen {
			cut = append(cut, a)
		} else {
			healthy = append(healthy, a)
		}
	}
	connected(t, tr, append(healthy, cut...))
	if err := frozen.Freeze(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = frozen.Thaw() }()
	own := redistest.OwnDelay()
	var theirs, others waits
	var refused atomic.Pointer[error] // of calls to other nodes
	var all sync.WaitGroup
	for range 3 {
		all.Go(func() {
			theirs.run(len(cut), func(i int) error { _, err := tr.Tasks.Get(t.Context(), trackertest.Scope, cut[i].TaskID); return err })
		})
		all.Go(func() {
			others.run(len(healthy), func(i int) error {
				b := &beats.Beat{Attempt: healthy[i]}
				tr.Beats.Beat(b)
				_, err := tr.Tasks.Get(t.Context(), trackertest.Scope, healthy[i].TaskID)
				if err = errors.Join(b.Err, err); err != nil {
					refused.Store(&err)
				}
				return nil
			})
		})
		all.Wait()
	}
	delay := own()
	exceeded := redistest.TooLong{}
	theirs.within(t, exceeded, "of the frozen node", timeout*3/2+delay)
	others.within(t, exceeded, "of the others", timeout/2+delay)
	if err := refused.Load(); err != nil {
		exceeded["refused to the others"] = (*err).Error()
	}
	return exceeded
}
