package store

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// CountScripts gives a function that tells how often each script was called since.
func (s *Store) CountScripts() func() map[string]int {
	r := &scriptCount{names: map[string]string{}, calls: map[string]int{}}
	for _, name := range s.Scripts.Names() {
		r.names[s.Scripts.Get(name).SHA] = name
	}
	s.single.AddHook(r)
	return func() map[string]int {
		r.mu.Lock()
		defer r.mu.Unlock()
		return maps.Clone(r.calls)
	}
}

// shaOf is of the script that a command runs; "": none.
func shaOf(cmd redis.Cmder) string {
	if args := cmd.Args(); len(args) > 1 {
		switch sha := args[1].(type) {
		case string:
			return sha
		case *string: // of the batcher
			return *sha
		}
	}
	return ""
}

type scriptCount struct {
	names map[string]string // by SHA
	mu    sync.Mutex
	calls map[string]int
}

func (r *scriptCount) DialHook(next redis.DialHook) redis.DialHook { return next }

func (r *scriptCount) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }

func (r *scriptCount) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		r.mu.Lock()
		for _, cmd := range cmds {
			if name := r.names[shaOf(cmd)]; name != "" {
				r.calls[name]++
			}
		}
		r.mu.Unlock()
		return next(ctx, cmds)
	}
}

// ScriptCall is what one call of a script carried, and what came back.
type ScriptCall struct {
	Script    string
	Keys      int
	Sent, Got int           // bytes of its arguments, and of its reply
	Took      time.Duration // of Redis's CPU; 0: not measured
}

// RecordCalls gives a function that tells of the calls of scripts since; of all of them when none is named.
func (s *Store) RecordCalls(scripts ...string) func() []ScriptCall {
	return s.recordCalls(&callRecorder{names: map[string]string{}}, scripts...)
}

// MeasureCalls does what RecordCalls does and measures each call, one at a time. spent is the CPU time of Redis.
func (s *Store) MeasureCalls(spent func() time.Duration) func() []ScriptCall {
	return s.recordCalls(&callRecorder{names: map[string]string{}, spent: spent})
}

func (s *Store) recordCalls(r *callRecorder, scripts ...string) func() []ScriptCall {
	for _, name := range s.Scripts.Names() {
		if len(scripts) == 0 || slices.Contains(scripts, name) {
			r.names[s.Scripts.Get(name).SHA] = name
		}
	}
	s.single.AddHook(r)
	return func() []ScriptCall {
		r.mu.Lock()
		defer r.mu.Unlock()
		return slices.Clone(r.calls)
	}
}

type callRecorder struct {
	names map[string]string // by SHA
	spent func() time.Duration
	alone sync.Mutex
	mu    sync.Mutex
	calls []ScriptCall
}

func (r *callRecorder) DialHook(next redis.DialHook) redis.DialHook { return next }

func (r *callRecorder) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }

func (r *callRecorder) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		took, err := r.run(ctx, next, cmds)
		for i, cmd := range cmds {
			name, ok := r.names[shaOf(cmd)]
			if !ok || cmd.Err() != nil {
				continue
			}
			c := ScriptCall{Script: name, Took: took[i]}
			for i, arg := range cmd.Args() {
				if i == 2 {
					c.Keys, _ = strconv.Atoi(text(arg))
				}
				c.Sent += len(text(arg))
			}
			if done, ok := cmd.(*redis.Cmd); ok {
				c.Got = bytesOf(done.Val())
			}
			r.mu.Lock()
			r.calls = append(r.calls, c)
			r.mu.Unlock()
		}
		return err
	}
}

// run runs the commands, one by one where they are measured.
func (r *callRecorder) run(ctx context.Context, next redis.ProcessPipelineHook, cmds []redis.Cmder) (took []time.Duration, err error) {
	took = make([]time.Duration, len(cmds))
	if r.spent == nil {
		return took, next(ctx, cmds)
	}
	r.alone.Lock()
	defer r.alone.Unlock()
	for i := range cmds {
		before := r.spent()
		if failed := next(ctx, cmds[i:i+1]); failed != nil && err == nil {
			err = failed
		}
		took[i] = r.spent() - before
	}
	return took, err
}

func text(arg any) string {
	switch v := arg.(type) {
	case *string: // of the batcher
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
