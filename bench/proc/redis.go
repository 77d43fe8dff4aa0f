package proc

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// Redis is a measured Redis server.
type Redis struct {
	URL string
	// Pid is 0 if unknown: then its CPU is omitted.
	Pid    int
	Client *redis.Client

	child *Child // nil: the benchmark did not start it
	dir   string
}

// RedisArgs are the settings of private processes, without address and directory.
var RedisArgs = []string{"--save", "", "--appendonly", "no"}

// ErrNoRedis explains what to do without a redis-server.
var ErrNoRedis = errors.New("there is no redis-server in PATH: install one (the package is redis-server or redis), or name a running " +
	"Redis with --redis")

// StartRedis starts a private redis-server: loopback only, an empty directory, nothing on disk.
func StartRedis(ctx context.Context) (*Redis, error) {
	path, err := exec.LookPath("redis-server")
	if err != nil {
		return nil, ErrNoRedis
	}
	dir, err := os.MkdirTemp("", "lubdub-bench-redis-")
	if err != nil {
		return nil, err
	}
	for range 5 { // a free port may be taken before the server binds it
		var r *Redis
		if r, err = startRedis(ctx, path, dir); err == nil {
			return r, nil
		}
		if ctx.Err() != nil {
			break
		}
	}
	_ = os.RemoveAll(dir)
	return nil, err
}

func startRedis(ctx context.Context, path, dir string) (*Redis, error) {
	port, err := FreePort()
	if err != nil {
		return nil, err
	}
	args := append([]string{"--bind", "127.0.0.1", "--port", strconv.Itoa(port), "--dir", dir, "--maxclients", "10000"}, RedisArgs...)
	cmd := exec.Command(path, args...)
	child, err := Start("redis-server", cmd)
	if err != nil {
		return nil, err
	}
	r := &Redis{URL: fmt.Sprintf("redis://127.0.0.1:%d/0", port), Pid: child.Pid, child: child, dir: dir}
	r.Client = redis.NewClient(&redis.Options{Addr: fmt.Sprintf("127.0.0.1:%d", port), Protocol: 2, DisableIdentity: true,
		ReadTimeout: time.Minute})
	if err := r.awaitReady(ctx); err != nil {
		_ = r.Client.Close()
		child.Kill()
		return nil, err
	}
	return r, nil
}

// FreePort returns a loopback port that is free at the moment.
func FreePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}

// awaitReady waits until the server answers, and it is this one.
func (r *Redis) awaitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 15*time.Second)
	defer cancel()
	for {
		info, err := r.Info(ctx, "server")
		if err == nil {
			if info["process_id"] != strconv.Itoa(r.Pid) {
				return fmt.Errorf("another Redis answers at %s", r.URL)
			}
			return nil
		}
		select {
		case <-r.child.exited:
			return r.child.failed("ended at once")
		case <-ctx.Done():
			return errors.Join(errors.New("redis-server did not answer within 15 s"), err)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// UseRedis connects to a running Redis. pid is that of its process on this machine, or 0.
func UseRedis(ctx context.Context, url string, pid int) (*Redis, error) {
	o, err := redis.ParseURL(url)
	if err != nil {
		return nil, fmt.Errorf("--redis: %w (the benchmark knows redis://, rediss:// and unix:// URLs)", err)
	}
	o.Protocol, o.DisableIdentity, o.ReadTimeout = 2, true, time.Minute
	r := &Redis{URL: url, Pid: pid, Client: redis.NewClient(o)}
	if err := r.Client.Ping(ctx).Err(); err != nil {
		_ = r.Client.Close()
		return nil, fmt.Errorf("Redis at %s does not answer: %w", o.Addr, err)
	}
	return r, nil
}

// Private reports whether the process is the benchmark's own.
func (r *Redis) Private() bool { return r.child != nil }

// Stop ends a private process and removes its directory; it does not change another one.
func (r *Redis) Stop() {
	_ = r.Client.Close()
	if r.child != nil {
		r.child.Kill() // there is nothing to keep
		_ = os.RemoveAll(r.dir)
	}
}

// Info reads sections of INFO.
func (r *Redis) Info(ctx context.Context, sections ...string) (map[string]string, error) {
	text, err := r.Client.Info(ctx, sections...).Result()
	if err != nil {
		return nil, err
	}
	info := map[string]string{}
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			info[name] = value
		}
	}
	return info, nil
}

// UsedMemory returns the memory that Redis reports as used, in bytes.
func (r *Redis) UsedMemory(ctx context.Context) (int64, error) {
	info, err := r.Info(ctx, "memory")
	if err != nil {
		return 0, err
	}
	return strconv.ParseInt(info["used_memory"], 10, 64)
}

// Version returns the server's version.
func (r *Redis) Version(ctx context.Context) (string, error) {
	info, err := r.Info(ctx, "server")
	return info["redis_version"], err
}
