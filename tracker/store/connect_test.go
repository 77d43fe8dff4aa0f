package store

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// The options that apply whatever the URL sets are set for every kind of client.
func TestTuneSetsAllKindsOfOptions(t *testing.T) {
	s := &servers{opts: Options{Timeout: 3 * time.Second}}
	one, failover, cluster := &redis.Options{MaxRetries: 5}, &redis.FailoverOptions{PoolSize: 1}, &redis.ClusterOptions{Protocol: 3}
	for _, o := range []any{one, failover, cluster} {
		s.tune(o)
	}
	type tuned struct {
		retries, dials, pool, protocol int
		dial, read, write, connection  time.Duration
		untilContextEnds, noIdentity   bool
	}
	want := tuned{-1, 1, poolSize, 2, s.opts.Timeout, s.opts.Timeout, s.opts.Timeout, s.opts.Timeout, true, true}
	for kind, got := range map[string]tuned{
		"one server": {one.MaxRetries, one.DialerRetries, one.PoolSize, one.Protocol, one.DialTimeout, one.ReadTimeout,
			one.WriteTimeout, one.PoolTimeout, one.ContextTimeoutEnabled, one.DisableIdentity},
		"Sentinel": {failover.MaxRetries, failover.DialerRetries, failover.PoolSize, failover.Protocol, failover.DialTimeout,
			failover.ReadTimeout, failover.WriteTimeout, failover.PoolTimeout, failover.ContextTimeoutEnabled, failover.DisableIdentity},
		"Cluster": {cluster.MaxRetries, cluster.DialerRetries, cluster.PoolSize, cluster.Protocol, cluster.DialTimeout,
			cluster.ReadTimeout, cluster.WriteTimeout, cluster.PoolTimeout, cluster.ContextTimeoutEnabled, cluster.DisableIdentity},
	} {
		if got != want {
			t.Errorf("%s: %+v, want %+v", kind, got, want)
		}
	}
}

func TestRedactURL(t *testing.T) {
	for in, want := range map[string]string{
		"redis://127.0.0.1:6379/0":           "redis://127.0.0.1:6379/0",
		"redis://u:secret@h:1/0":             "redis://u:***@h:1/0",
		"redis+sentinel://:p@ss@h:1,g:2/m/0": "redis+sentinel://:***@h:1,g:2/m/0",
	} {
		if got := redactURL(in); got != want {
			t.Errorf("%s became %s, want %s", in, got, want)
		}
	}
}
