package sweep_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lubdub-io/lubdub/internal/redistest"
	"github.com/lubdub-io/lubdub/internal/testenv"
	"github.com/lubdub-io/lubdub/tracker"
	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/queues"
	"github.com/lubdub-io/lubdub/tracker/sweep"
)

// A sweeper that dies between any two steps of a recovery leaves nothing undone: another one continues, every task is recovered
// exactly once, and the dead worker claims none in between.
func TestRecoveryIsResumedAfterEachStep(t *testing.T) {
	t.Parallel()
	every := testenv.Of(t, 5, 1)
	redistest.Each(t, func(t *testing.T, s *redistest.Store) {
		// A sweeper that survives shows how many steps a whole recovery has.
		total := dieAfter(t, s, 1<<30)
		if total < 12 {
			t.Fatalf("a recovery over two shards has %d steps", total)
		}
		stride := every
		if s.Kind == "miniredis" {
			stride *= 4 // it is slow; other runs cover the other steps
		}
		for n := rand.IntN(stride); n < total; n += stride {
			dieAfter(t, s, n)
		}
	})
}

const recoveryTasks = 110 // more than one call takes in at least one shard

// dieAfter lets a sweeper make n calls to the store after the verdict, lets another one finish and checks the result. It returns
// how many calls were made.
func dieAfter(t *testing.T, s *redistest.Store, n int) (made int) {
	t.Helper()
	ctx := t.Context()
	if err := s.Client.FlushDB(ctx).Err(); err != nil {
		t.Fatal(err)
	}
	s.Clock.Set(s.Clock.Now())
	scope := model.Scope{Tenant: "acme", Workspace: "prod"}
	var opened []*tracker.Tracker
	defer func() {
		for _, tr := range opened {
			_ = tr.Close(context.Background())
		}
	}()
	open := func() *tracker.Tracker {
		tr, err := tracker.Open(ctx, tracker.Options{RedisURL: s.URL, Scripts: s.Scripts, RedisTimeout: 10 * time.Second, Shards: 2,
			WorkerInterval: 400 * time.Millisecond, Logger: slog.New(slog.NewTextHandler(io.Discard, nil))})
		if err != nil {
			t.Fatal(err)
		}
		opened = append(opened, tr)
		return tr
	}
	dying, heir := open(), open()
	if err := heir.Beats.Tick(); err != nil {
		t.Fatal(err)
	}
	w, err := heir.Workers.Register(ctx, model.NewWorker{Scope: scope, Queue: "q", Types: []string{"x"}, MachineID: "m", MaxConcurrent: 1000})
	if err != nil {
		t.Fatal(err)
	}
	var tasks []model.NewTask
	for i := range recoveryTasks {
		task := model.NewTask{Scope: scope, TaskID: fmt.Sprintf("t%03d", i), Queue: "q", Type: "x"}
		if err := task.Validate(s.Clock.Now()); err != nil {
			t.Fatal(err)
		}
		tasks = append(tasks, task)
	}
	for _, r := range heir.Tasks.CreateBatch(ctx, tasks) {
		if r.Err != nil {
			t.Fatal(r.Err)
		}
	}
	var attempts []*model.Attempt
	for len(attempts) < recoveryTasks {
		got, err := heir.Queues.Claim(ctx, queues.ClaimRequest{Scope: scope, WorkerID: w.WorkerID, Queue: "q", Max: 100})
		if err != nil || len(got) == 0 {
			t.Fatal(len(got), err)
		}
		for _, e := range got {
			attempts = append(attempts, e.Attempt)
		}
	}
	advance(t, heir, s, 1250*time.Millisecond)

	life := &mortal{left: n}
	dying.Store.AddHook(life)
	_, _ = sweep.NewSweeper(dying.Sweeper, sweep.SweeperOptions{ID: "swp_dying"}).RunOnce(ctx)
	made = life.made

	if n == 1<<30 {
		return made
	}
	got, _ := heir.Queues.Claim(ctx, queues.ClaimRequest{Scope: scope, WorkerID: w.WorkerID, Queue: "q", Max: 1})
	worker, err := heir.Workers.Get(ctx, scope, w.WorkerID)
	if err != nil || len(got) > 0 && worker.Status == model.Offline {
		t.Fatalf("after %d calls: the ended worker claimed %d: %v", n, len(got), err)
	}
	if worker.Status != model.Offline { // its claim has kept it alive
		advance(t, heir, s, 1250*time.Millisecond)
	}
	before, err := heir.Tasks.Get(ctx, scope, attempts[0].TaskID)
	if err != nil {
		t.Fatal(err)
	}
	_, completed := heir.Beats.Complete(ctx, attempts[0], model.Completion{Outcome: model.Succeeded})
	if taken := len(before.History) > 0; taken == (completed == nil) {
		t.Fatalf("after %d calls: taken %v, and its completion by token: %v", n, taken, completed)
	}
	for range 3 {
		if _, err := sweep.NewSweeper(heir.Sweeper, sweep.SweeperOptions{ID: "swp_heir"}).RunOnce(ctx); err != nil {
			t.Fatal(err)
		}
	}
	for _, a := range attempts {
		task, err := heir.Tasks.Get(ctx, scope, a.TaskID)
		if err != nil {
			t.Fatal(err)
		}
		if a == attempts[0] && completed == nil {
			if task.State != model.Succeeded {
				t.Fatalf("after %d calls: the completed one is %s", n, task.State)
			}
			continue
		}
		if task.State != model.Queued || task.Losses != 1 || len(task.History) != 1 || task.History[0].Reason != model.WorkerLost {
			t.Fatalf("after %d calls: %s is %s with %d losses: %+v", n, task.ID, task.State, task.Losses, task.History)
		}
	}
	events := map[string]int{}
	for shard := range heir.Store.Shards() {
		entries, err := s.Client.XRange(ctx, fmt.Sprintf("lubdub:{%d}:events", shard), "-", "+").Result()
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			events[e.Values["type"].(string)]++
		}
		left := s.Client.ZRange(ctx, fmt.Sprintf("lubdub:{%d}:recoveries", shard), 0, -1).Val()
		if !slices.Equal(left, []string{"!"}) {
			t.Fatalf("after %d calls: recoveries are left: %v", n, left)
		}
	}
	if events["worker.offline"] != 1 || events["worker.tasks_recovered"] != 1 || events["machine.offline"] != 1 {
		t.Fatalf("after %d calls: %v", n, events)
	}
	return made
}

// mortal lets a client send a number of commands and then no more, even within a pipeline.
type mortal struct {
	mu         sync.Mutex
	left, made int
}

func (m *mortal) DialHook(next redis.DialHook) redis.DialHook { return next }

func (m *mortal) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }

func (m *mortal) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		m.mu.Lock()
		lives := min(len(cmds), m.left)
		m.left -= lives
		m.made += lives
		m.mu.Unlock()
		for _, cmd := range cmds[lives:] {
			cmd.SetErr(io.EOF)
		}
		if lives == 0 {
			return io.EOF
		}
		return next(ctx, cmds[:lives])
	}
}
