package bench

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/lubdub-io/lubdub/bench/load"
	"github.com/lubdub-io/lubdub/bench/proc"
)

// target is one program under load: the server and the Redis that it stands on, either of which may be nil or
// unknown.
type target struct {
	program string
	server  *proc.Server
	redis   *proc.Redis
	pool    load.Generator
	tracked int
}

func (t *target) address() string { return strings.TrimPrefix(t.server.URL, "http://") }

func newKeys() string {
	var key [32]byte
	_, _ = rand.Read(key[:]) // it never fails
	return "bench=" + base64.StdEncoding.EncodeToString(key[:])
}

func (b *bench) newRedis(ctx context.Context) (*proc.Redis, error) {
	if b.RedisURL != "" {
		return proc.UseRedis(ctx, b.RedisURL, b.RedisPid)
	}
	return proc.StartRedis(ctx)
}

// serve starts a Lubdub of its own on a Redis. The token cache holds every tracked task, as it should wherever so
// many are served.
func (b *bench) serve(ctx context.Context, redis *proc.Redis, tracked int, args ...string) (*proc.Server, error) {
	args = append([]string{
		"serve", "--redis", redis.URL, "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0", "--log-level", "error",
		"--max-connections", strconv.Itoa(2 * maxStreams), "--token-cache-size", strconv.Itoa(max(1<<18, 2*tracked)),
	}, append(args, b.ServerFlags...)...)
	return proc.StartServer(ctx, "lubdub", b.Program, b.environ(), args...)
}

// control makes a control token for a tenant and workspace.
func (b *bench) control(ctx context.Context, tenant, workspace string) (string, error) {
	if b.URL != "" {
		return b.Token, nil
	}
	cmd := exec.CommandContext(ctx, b.Program, "token", "--role", "admin", "--tenant", tenant, "--workspace", workspace, "--ttl", "2h")
	cmd.Env = b.environ()
	out, err := cmd.Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		err = fmt.Errorf("lubdub token: %s", exit.Stderr)
	}
	return strings.TrimSpace(string(out)), err
}

// fixture is a deployment of Lubdub with tasks that beat.
type fixture struct {
	target
	tasks   *tasks
	control string
}

// quiet tasks need no beat within a run: their timeout is the longest there is.
const (
	quietInterval = 12 * time.Hour
	quietTimeout  = 24 * time.Hour
)

// newFixture starts a Redis and a Lubdub, or connects to the deployment that was named.
func (b *bench) newFixture(ctx context.Context, tracked int, args ...string) (f *fixture, err error) {
	f = &fixture{target: target{program: lubdub}}
	defer func() {
		if err != nil {
			f.stop()
		}
	}()
	if b.URL != "" {
		f.server = &proc.Server{URL: strings.TrimSuffix(b.URL, "/")}
	} else {
		if f.redis, err = b.newRedis(ctx); err != nil {
			return nil, err
		}
		if f.server, err = b.serve(ctx, f.redis, tracked, args...); err != nil {
			return nil, err
		}
	}
	if f.control, err = b.control(ctx, "default", "default"); err != nil {
		return nil, err
	}
	if f.pool, err = load.DialLight(ctx, f.address(), b.Connections); err != nil {
		return nil, err
	}
	return f, nil
}

func (f *fixture) stop() { f.target.stop() }

func (t *target) stop() {
	if t.pool != nil {
		t.pool.Close()
	}
	if t.server != nil {
		t.server.Stop()
	}
	if t.redis != nil {
		t.redis.Stop()
	}
}

// fewTasks returns the deployment with few tasks.
func (b *bench) fewTasks(ctx context.Context) (*fixture, error) {
	if b.few == nil && b.fewErr == nil {
		b.few, b.fewErr = b.fillFew(ctx)
	}
	return b.few, b.fewErr
}

func (b *bench) fillFew(ctx context.Context) (*fixture, error) {
	n := max(min(few, b.Tracked), b.Connections)
	f, err := b.newFixture(ctx, n, "--worker-heartbeat-interval", patientInterval.String()) // workers there only poll
	if err != nil {
		return nil, err
	}
	b.atEnd(f.stop)
	f.tasks = newTasks(newPrefix(), n, quietInterval, quietTimeout, 0)
	if b.URL != "" {
		b.atEnd(func() { b.complete(f) })
	}
	if _, err := b.populate(ctx, f, f.tasks); err != nil {
		return nil, err
	}
	return f, nil
}

// complete ends the tasks on a deployment that goes on without the benchmark. It is done also after an interrupt.
func (b *bench) complete(f *fixture) {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	pool, err := load.Dial(ctx, f.address(), populateConnections)
	if err != nil {
		b.note("the benchmark's tasks were left running: %v", err)
		return
	}
	defer pool.Close()
	r, err := pool.Run(ctx, load.Load{Source: f.tasks.end, Progress: b.progress.of("completing the tasks", "tasks", int64(f.tasks.len()))})
	if err == nil {
		err = complete(r, f.tasks.len(), "completed")
	}
	if err != nil {
		b.note("some of the benchmark's tasks were left running: %v", err)
	}
}

// newPrefix of task ids is the run's own: a Redis may hold those of runs before.
func newPrefix() string { return "bench-" + strings.ToLower(rand.Text()[:6]) + "-" }
