package testbed

import (
	"errors"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"sync"

	"github.com/lubdub-io/lubdub/bench/load"
	"github.com/lubdub-io/lubdub/bench/proc"
	"github.com/lubdub-io/lubdub/sdk/go/client"
)

// NewRedis starts a Redis, or connects to the one in the options.
func (b *Bed) NewRedis() *proc.Redis {
	if b.RedisURL != "" {
		return Must(proc.UseRedis(b.Ctx, b.RedisURL, b.RedisPid))
	}
	return Must(proc.StartRedis(b.Ctx))
}

// MaxStreams is how many event streams a server accepts, half of max-connections; one token may have half of them.
const MaxStreams = 20_064

// Serve starts a Lubdub on a Redis. The token cache has room for every tracked task, as it should in production.
func (b *Bed) Serve(redis string, tracked int, args ...string) *proc.Server {
	args = append([]string{
		"serve", "--redis", redis, "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0", "--log-level", "error",
		"--max-connections", strconv.Itoa(2 * MaxStreams), "--token-cache-size", strconv.Itoa(max(1<<18, 2*tracked)),
	}, append(args, b.ServerFlags...)...)
	return Must(proc.StartServer(b.Ctx, "lubdub", b.Program, b.environ(), args...))
}

// ControlToken creates a control token for a tenant and workspace.
func (b *Bed) ControlToken(tenant, workspace string) string {
	if b.URL != "" {
		return b.Token
	}
	cmd := exec.CommandContext(b.Ctx, b.Program, "token", "--role", "admin", "--tenant", tenant, "--workspace", workspace, "--ttl", "2h")
	cmd.Env = b.environ()
	out, err := cmd.Output()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		err = fmt.Errorf("lubdub token: %s", exit.Stderr)
	}
	Check(err)
	return strings.TrimSpace(string(out))
}

// Deploy starts a Redis and a Lubdub until the end of the scenario, or connects to the deployment in the options.
func (b *Bed) Deploy(tracked int, args ...string) *Fixture {
	f := &Fixture{Target: Target{Program: Lubdub}}
	b.Cleanup(f.Stop)
	if b.URL != "" {
		f.Server = &proc.Server{URL: strings.TrimSuffix(b.URL, "/")}
	} else {
		f.Redis = b.NewRedis()
		f.Server = b.Serve(f.Redis.URL, tracked, args...)
	}
	f.Control = b.ControlToken("default", "default")
	f.API = Must(client.New(f.Server.URL, client.Token(f.Control), client.AllowHTTP()))
	b.Cleanup(f.API.Close)
	f.Pool = Must(load.DialLight(b.Ctx, f.Address(), b.Connections))
	return f
}

// Replica starts another server with the role api on a deployment's Redis, until the end of the scenario. It has no connections yet.
func (b *Bed) Replica(f *Fixture, tracked int, args ...string) *Target {
	r := &Target{Program: Lubdub, Redis: f.Redis, Tracked: f.Tracked, Server: b.Serve(f.Redis.URL, tracked, append(args, "--roles", "api")...)}
	b.Cleanup(r.Server.Stop)
	return r
}

// Wide returns a target with so many new connections, until the end of the scenario. light: its sources do not wait.
func (b *Bed) Wide(t *Target, connections int, light bool) *Target {
	wide := *t
	if light {
		wide.Pool = Must(load.DialLight(b.Ctx, t.Address(), connections))
	} else {
		wide.Pool = Must(load.Dial(b.Ctx, t.Address(), connections))
	}
	b.Cleanup(wide.Pool.Close)
	return &wide
}

// Each calls do n times, with at most atOnce calls at a time.
func Each(n, atOnce int, do func(i int) error) error {
	var running sync.WaitGroup
	errs, slots := make([]error, n), make(chan struct{}, atOnce)
	for i := range n {
		slots <- struct{}{}
		running.Go(func() { errs[i] = do(i); <-slots })
	}
	running.Wait()
	return errors.Join(errs...)
}
