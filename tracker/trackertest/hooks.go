package trackertest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lubdub-io/lubdub/tracker"
	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/schema"
)

// hook is called instead of each pipeline; the batcher sends nothing else. It calls next with what Redis is to receive.
type hook func(ctx context.Context, cmds []redis.Cmder, next redis.ProcessPipelineHook) error

func addHook(tr *tracker.Tracker, h hook) { tr.Store.AddHook(h) }

func (hook) DialHook(next redis.DialHook) redis.DialHook { return next }

func (hook) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }

func (h hook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error { return h(ctx, cmds, next) }
}

// DieAfter lets a number of calls reach Redis and then none, as when the process is killed.
func DieAfter(tr *tracker.Tracker, calls int) { addHook(tr, (&deadline{left: calls}).pipeline) }

type deadline struct {
	mu   sync.Mutex
	left int
}

var errDead = errors.New("the process is dead")

func (d *deadline) pipeline(ctx context.Context, cmds []redis.Cmder, next redis.ProcessPipelineHook) error {
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

// After calls f each time a script has run, before any later command.
func After(tr *tracker.Tracker, script string, f func()) {
	sha := tr.Store.Scripts.Get(script).SHA
	addHook(tr, func(ctx context.Context, cmds []redis.Cmder, next redis.ProcessPipelineHook) error {
		err := next(ctx, cmds)
		if slices.ContainsFunc(cmds, func(cmd redis.Cmder) bool { return shaOf(cmd) == sha && cmd.Err() == nil }) {
			f()
		}
		return err
	})
}

// FailCalls fails the calls of a script for whose number, from 0 on, `fails` returns true: before Redis receives them or, if lost is
// true, after it has run them.
func FailCalls(tr *tracker.Tracker, script string, lost bool, fails func(n int) bool) {
	addHook(tr, (&failing{sha: tr.Store.Scripts.Get(script).SHA, lost: lost, fails: fails}).pipeline)
}

type failing struct {
	sha   string
	lost  bool
	fails func(int) bool
	mu    sync.Mutex
	n     int
}

func (f *failing) pipeline(ctx context.Context, cmds []redis.Cmder, next redis.ProcessPipelineHook) error {
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

func (f *failing) next() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.n++
	return f.fails(f.n - 1)
}

// WorkerRecord returns the key of a worker's record.
func WorkerRecord(tr *tracker.Tracker, scope model.Scope, id string) string {
	shard, _ := tr.Store.WorkerShard(id)
	return tr.Store.Keys[shard].Worker(schema.TaskName(scope, id))
}

// TaskRecord returns the key of a task's record.
func TaskRecord(tr *tracker.Tracker, scope model.Scope, id string) string {
	return tr.Store.Keys[tr.Store.ShardOf(scope, id)].Task(schema.TaskName(scope, id))
}

// IdempotencyKey returns the Redis key of an idempotency key.
func IdempotencyKey(tr *tracker.Tracker, scope model.Scope, key string) string {
	return tr.Store.Keys[tr.Store.ShardOf(scope, key)].Idempotency(scope, key)
}

// CountScripts returns a function that returns how often each script was called since.
func CountScripts(tr *tracker.Tracker) func() map[string]int {
	names, calls := map[string]string{}, map[string]int{} // by SHA, by name
	for _, name := range tr.Store.Scripts.Names() {
		names[tr.Store.Scripts.Get(name).SHA] = name
	}
	var mu sync.Mutex
	addHook(tr, func(ctx context.Context, cmds []redis.Cmder, next redis.ProcessPipelineHook) error {
		mu.Lock()
		for _, cmd := range cmds {
			if name := names[shaOf(cmd)]; name != "" {
				calls[name]++
			}
		}
		mu.Unlock()
		return next(ctx, cmds)
	})
	return func() map[string]int {
		mu.Lock()
		defer mu.Unlock()
		return maps.Clone(calls)
	}
}

// shaOf returns the SHA of the script that a command runs; "": none.
func shaOf(cmd redis.Cmder) string {
	if args := cmd.Args(); len(args) > 1 {
		switch sha := args[1].(type) {
		case string:
			return sha
		case *string: // from the batcher
			return *sha
		}
	}
	return ""
}

// ScriptCall is the size and time of one call of a script.
type ScriptCall struct {
	Script    string
	Keys      int
	Sent, Got int           // bytes of its arguments, and of its reply
	Took      time.Duration // of Redis's CPU; 0: not measured
}

// RecordCalls returns a function that returns the calls of these scripts since, or of all scripts if none is named.
func RecordCalls(tr *tracker.Tracker, scripts ...string) func() []ScriptCall {
	return recordCalls(tr, &callRecorder{names: map[string]string{}}, scripts...)
}

// MeasureCalls is RecordCalls with the time of each call, run one at a time. `spent` returns the CPU time of Redis; `corrected`, unless
// it is nil, is called right after each call and returns its time at the host's usual speed.
func MeasureCalls(tr *tracker.Tracker, spent func() time.Duration, corrected func(ScriptCall) time.Duration) func() []ScriptCall {
	return recordCalls(tr, &callRecorder{names: map[string]string{}, spent: spent, corrected: corrected})
}

func recordCalls(tr *tracker.Tracker, r *callRecorder, scripts ...string) func() []ScriptCall {
	for _, name := range tr.Store.Scripts.Names() {
		if len(scripts) == 0 || slices.Contains(scripts, name) {
			r.names[tr.Store.Scripts.Get(name).SHA] = name
		}
	}
	addHook(tr, r.pipeline)
	return func() []ScriptCall {
		r.mu.Lock()
		defer r.mu.Unlock()
		return slices.Clone(r.calls)
	}
}

type callRecorder struct {
	names     map[string]string // by SHA
	spent     func() time.Duration
	corrected func(ScriptCall) time.Duration
	alone     sync.Mutex
	mu        sync.Mutex
	calls     []ScriptCall
}

func (r *callRecorder) pipeline(ctx context.Context, cmds []redis.Cmder, next redis.ProcessPipelineHook) (err error) {
	if r.spent == nil {
		err = next(ctx, cmds)
		for _, cmd := range cmds {
			r.record(cmd, 0)
		}
		return err
	}
	r.alone.Lock()
	defer r.alone.Unlock()
	for i := range cmds {
		before := r.spent()
		if failed := next(ctx, cmds[i:i+1]); failed != nil && err == nil {
			err = failed
		}
		r.record(cmds[i], r.spent()-before)
	}
	return err
}

// record records a command, unless it runs another script or has failed.
func (r *callRecorder) record(cmd redis.Cmder, took time.Duration) {
	name, ok := r.names[shaOf(cmd)]
	if !ok || cmd.Err() != nil {
		return
	}
	c := ScriptCall{Script: name, Took: took}
	for i, arg := range cmd.Args() {
		if i == 2 {
			c.Keys, _ = strconv.Atoi(text(arg))
		}
		c.Sent += len(text(arg))
	}
	if done, ok := cmd.(*redis.Cmd); ok {
		c.Got = bytesOf(done.Val())
	}
	if r.corrected != nil {
		c.Took = r.corrected(c)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls = append(r.calls, c)
}

func text(arg any) string {
	switch v := arg.(type) {
	case *string: // from the batcher
		return *v
	case []byte:
		return string(v)
	}
	return fmt.Sprint(arg)
}

func bytesOf(reply any) int {
	list, ok := reply.([]any)
	if !ok {
		return len(text(reply))
	}
	n := 0
	for _, part := range list {
		n += bytesOf(part)
	}
	return n
}

// EndWithoutRecovery ends a worker like a process that dies right after the verdict.
func EndWithoutRecovery(tr *tracker.Tracker, scope model.Scope, id string) error {
	d := &dying{after: tr.Store.Scripts.Get("worker_status").SHA}
	addHook(tr, d.pipeline)
	_, err := tr.Workers.Retire(context.Background(), scope, id, model.WorkerForced, "")
	d.over.Store(true)
	if d.died.Load() {
		return nil // the error came after the worker's end
	}
	return err
}

// dying blocks all calls to Redis once a script has run, until `over` is set.
type dying struct {
	after      string
	died, over atomic.Bool
}

func (d *dying) pipeline(ctx context.Context, cmds []redis.Cmder, next redis.ProcessPipelineHook) error {
	if d.died.Load() && !d.over.Load() {
		for _, cmd := range cmds {
			cmd.SetErr(errDead)
		}
		return errDead
	}
	err := next(ctx, cmds)
	if slices.ContainsFunc(cmds, func(cmd redis.Cmder) bool { return shaOf(cmd) == d.after && cmd.Err() == nil }) {
		d.died.Store(true)
	}
	return err
}
