package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/lubdub-io/lubdub/bench/load"
	"github.com/lubdub-io/lubdub/bench/proc"
)

// Programs.
const (
	lubdub       = "lubdub"
	empty        = "empty"
	naive        = "naive"
	autopipeline = "autopipeline"
	zadd         = "zadd"
	etcd         = "etcd"
)

// baseline finds a baseline program. Without it the report says so, and what it is for is not measured.
func (b *bench) baseline(name string) (path string, ok bool) {
	path = filepath.Join(b.Baselines, name)
	if _, err := os.Stat(path); err != nil {
		b.note("the baseline %s is missing from %s: what is measured against it is left out; 'make bench' builds it", name,
			filepath.Base(b.Baselines))
		return "", false
	}
	if !slices.Contains(b.report.Settings.Baselines, name) {
		b.report.Settings.Baselines = append(b.report.Settings.Baselines, name)
	}
	return path, true
}

// serveBaseline starts an HTTP baseline on a Redis of its own and gives it the tasks that Lubdub has: the tokens are
// the same, since the signing keys are. Nil: it is missing.
func (b *bench) serveBaseline(ctx context.Context, name string, t *tasks) (_ *target, err error) {
	path, ok := b.baseline(name)
	if !ok || b.URL != "" {
		return nil, nil
	}
	to := &target{program: name}
	defer func() {
		if err != nil {
			to.stop()
		}
	}()
	args := []string{"--listen", "127.0.0.1:0"}
	if name != empty {
		if to.redis, err = b.newRedis(ctx); err != nil {
			return nil, err
		}
		args = append(args, "--redis", to.redis.URL)
	}
	if to.server, err = proc.StartServer(ctx, name, path, b.environ(), args...); err != nil {
		return nil, err
	}
	if to.pool, err = load.DialLight(ctx, to.address(), b.Connections); err != nil {
		return nil, err
	}
	if name != empty {
		r, err := to.pool.Run(ctx, load.Load{Source: t.start, Progress: b.progress.of("starting tasks on "+name, "tasks", int64(t.len()))})
		if err == nil {
			err = complete(r, t.len(), "started on "+name)
		}
		if err != nil {
			return nil, err
		}
		to.tracked = t.len()
	}
	return to, nil
}

// beside is a deployment and the HTTP baselines that there are. They run until stop, which is never nil.
func (b *bench) beside(ctx context.Context, f *fixture) (targets []*target, stop func(), err error) {
	targets = []*target{&f.target}
	stop = func() {
		for _, t := range targets[1:] {
			t.stop()
		}
	}
	for _, name := range []string{empty, naive, autopipeline} {
		t, err := b.serveBaseline(ctx, name, f.tasks)
		if err != nil {
			return targets, stop, err
		}
		if t != nil {
			targets = append(targets, t)
		}
	}
	return targets, stop, nil
}

// ownReport is what a baseline that drives itself says.
type ownReport struct {
	Ops              int64    `json:"ops"`
	Seconds          float64  `json:"seconds"`
	RedisCPUSeconds  *float64 `json:"redisCpuSeconds"`
	ServerCPUSeconds *float64 `json:"serverCpuSeconds"`
}

// self runs a baseline that drives itself and returns what it reports.
func (b *bench) self(ctx context.Context, name, path string, args ...string) (r ownReport, err error) {
	cmd := exec.Command(path, args...)
	cmd.Env = b.environ()
	child, err := proc.Start(name, cmd)
	if err != nil {
		return r, err
	}
	line, err := child.Line(ctx, b.For+time.Minute)
	if err != nil {
		child.Stop()
		return r, err
	}
	if err := child.Wait(ctx); err != nil {
		return r, err
	}
	if err := json.Unmarshal([]byte(line), &r); err != nil || r.Ops == 0 {
		return r, fmt.Errorf("%s reports %q and not its operations", name, strings.TrimSpace(line))
	}
	return r, nil
}

// perOp returns CPU seconds as µs per operation.
func (r *ownReport) perOp(seconds *float64) *float64 {
	if seconds == nil {
		return nil
	}
	v := *seconds * 1e6 / float64(r.Ops)
	return &v
}
