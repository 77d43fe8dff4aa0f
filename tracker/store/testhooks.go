package store

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/schema"
)

// LookForEviction looks whether Redis evicts, if it is time to.
func (s *Store) LookForEviction(now time.Time) { s.lookForEviction(context.Background(), now) }

// MarkOf is the shard in which the flushes of durable transitions write that go to the node of this one.
func (s *Store) MarkOf(shard int) int { return int(s.Node(shard).mark.shard.Load()) }

// DieAfter lets so many calls reach Redis and no more, as when the process is killed.
func (s *Store) DieAfter(calls int) { s.single.AddHook(&deadline{left: calls}) }

type deadline struct {
	mu   sync.Mutex
	left int
}

var errDead = errors.New("the process is dead")

func (d *deadline) DialHook(next redis.DialHook) redis.DialHook { return next }

func (d *deadline) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }

func (d *deadline) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		d.mu.Lock()
		n := min(d.left, len(cmds))
		d.left -= n
		d.mu.Unlock()
		for _, cmd := range cmds[n:] {
			cmd.SetErr(errDead)
		}
		if n == 0 {
			return errDead
		}
		return next(ctx, cmds[:n])
	}
}

// After calls f each time that a script has run and before what follows it runs.
func (s *Store) After(script string, f func()) {
	s.single.AddHook(&after{sha: s.Scripts.Get(script).SHA, f: f})
}

type after struct {
	sha string
	f   func()
}

func (a *after) DialHook(next redis.DialHook) redis.DialHook { return next }

func (a *after) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }

func (a *after) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		err := next(ctx, cmds)
		if slices.ContainsFunc(cmds, func(cmd redis.Cmder) bool {
			return shaOf(cmd) == a.sha && cmd.Err() == nil
		}) {
			a.f()
		}
		return err
	}
}

// RecordPipelines gives a function that tells the names of the commands of each pipeline that was run since.
func (s *Store) RecordPipelines() func() [][]string {
	r := &recorder{}
	s.single.AddHook(r)
	return func() [][]string {
		r.mu.Lock()
		defer r.mu.Unlock()
		return r.seen
	}
}

type recorder struct {
	mu   sync.Mutex
	seen [][]string
}

func (r *recorder) DialHook(next redis.DialHook) redis.DialHook { return next }

func (r *recorder) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }

func (r *recorder) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		var names []string
		for _, c := range cmds {
			names = append(names, c.Name())
		}
		r.mu.Lock()
		r.seen = append(r.seen, names)
		r.mu.Unlock()
		return next(ctx, cmds)
	}
}

// FailCalls lets the calls of a script fail for which `fails` says so by their number, from 0 on: before Redis has
// seen them or, lost being true, after it has run them.
func (s *Store) FailCalls(script string, lost bool, fails func(n int) bool) {
	s.single.AddHook(&failing{sha: s.Scripts.Get(script).SHA, lost: lost, fails: fails})
}

type failing struct {
	sha   string
	lost  bool
	fails func(int) bool
	mu    sync.Mutex
	n     int
}

func (f *failing) DialHook(next redis.DialHook) redis.DialHook { return next }

func (f *failing) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }

func (f *failing) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		var failed, passed []redis.Cmder
		for _, cmd := range cmds {
			if shaOf(cmd) == f.sha && f.next() {
				failed = append(failed, cmd)
			} else {
				passed = append(passed, cmd)
			}
		}
		if f.lost {
			passed = cmds
		}
		err := errDead
		if len(passed) > 0 {
			err = next(ctx, passed)
		}
		for _, cmd := range failed {
			cmd.SetErr(errDead)
		}
		return err
	}
}

func (f *failing) next() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.n++
	return f.fails(f.n - 1)
}

// Freeze puts a shard on a node of its own, and has the calls of a script that go there wait until the channel closes.
func (s *Store) Freeze(shard int, script string, until <-chan struct{}) {
	o := *s.single.Options()
	o.Addr = strings.Replace(o.Addr, "127.0.0.1", "[::ffff:127.0.0.1]", 1)
	client := redis.NewClient(&o)
	client.AddHook(&frozen{sha: s.Scripts.Get(script).SHA, until: until})
	s.mu.Lock()
	defer s.mu.Unlock()
	byShard := slices.Clone(*s.byShard.Load())
	byShard[shard] = s.nodeOf(client)
	s.useMap(byShard)
}

type frozen struct {
	sha   string
	until <-chan struct{}
}

func (f *frozen) DialHook(next redis.DialHook) redis.DialHook { return next }

func (f *frozen) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }

func (f *frozen) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		if slices.ContainsFunc(cmds, func(cmd redis.Cmder) bool { return len(cmd.Args()) > 1 && cmd.Args()[1] == f.sha }) {
			<-f.until
		}
		return next(ctx, cmds)
	}
}

// HomeOf is the shard of a worker.
func (s *Store) HomeOf(id string) int {
	shard, _ := s.WorkerShard(id)
	return shard
}

// WorkerKey is where a worker's record lies.
func (s *Store) WorkerKey(scope model.Scope, id string) string {
	shard, _ := s.WorkerShard(id)
	return s.Keys[shard].Worker(schema.TaskName(scope, id))
}

// TaskKey is where a task's record lies.
func (s *Store) TaskKey(scope model.Scope, id string) string {
	return s.Keys[s.ShardOf(scope, id)].Task(schema.TaskName(scope, id))
}

// IdempotencyKey is where an idempotency key lies.
func (s *Store) IdempotencyKey(scope model.Scope, key string) string {
	return s.Keys[s.ShardOf(scope, key)].Idempotency(scope, key)
}

// AwaitBackground returns when nothing goes on beside the callers.
func (s *Store) AwaitBackground() { s.background.Wait() }

// AddHook has the client of a single server run a hook.
func (s *Store) AddHook(h redis.Hook) { s.single.AddHook(h) }
