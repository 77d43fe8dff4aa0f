package redistest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// ReplicaOf returns the command line of a replica of this server.
func (s *Server) ReplicaOf() []string {
	host, port, _ := net.SplitHostPort(s.Addr)
	return []string{"--replicaof", host + " " + port}
}

// StartReplica starts a replica of a server and returns when it has its data.
func StartReplica(t testing.TB, of *Server, args ...string) *Server {
	t.Helper()
	s := StartServer(t, append(append([]string{}, args...), of.ReplicaOf()...)...)
	if err := s.AwaitSync(); err != nil {
		t.Fatal(err)
	}
	return s
}

// AwaitSync waits until the server is a replica that has its primary's data.
func (s *Server) AwaitSync() error {
	return s.await("a replica in sync", func(ctx context.Context, c *redis.Client) bool {
		return strings.Contains(c.Info(ctx, "replication").Val(), "master_link_status:up")
	})
}

// AwaitPrimary waits until the server has been promoted.
func (s *Server) AwaitPrimary() error {
	return s.await("a primary", func(ctx context.Context, c *redis.Client) bool {
		return strings.Contains(c.Info(ctx, "replication").Val(), "role:master")
	})
}

func (s *Server) await(what string, is func(context.Context, *redis.Client) bool) error {
	c := s.Client()
	defer func() { _ = c.Close() }()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute) // a Sentinel that was held up does nothing for 30 s
	defer cancel()
	for !is(ctx, c) {
		select {
		case <-ctx.Done():
			state, _ := c.Info(context.Background(), "replication").Result()
			return fmt.Errorf("%s did not become %s within two minutes: %s", s.Addr, what, state)
		case <-time.After(20 * time.Millisecond):
		}
	}
	return nil
}

// StartSentinels starts n Sentinels that watch a server and its replicas by this name, and waits until they know each other and the
// replicas. They declare it dead after downAfter.
func StartSentinels(t testing.TB, n int, name string, primary *Server, replicas int, downAfter time.Duration) []*Server {
	t.Helper()
	host, port, _ := net.SplitHostPort(primary.Addr)
	conf := fmt.Sprintf("sentinel monitor %[1]s %s %s %d\nsentinel down-after-milliseconds %[1]s %[5]d\n"+
		"sentinel failover-timeout %[1]s 2000\nsentinel parallel-syncs %[1]s 16\n",
		name, host, port, n/2+1, downAfter.Milliseconds())
	sentinels := make([]*Server, n)
	for i := range sentinels {
		sentinels[i] = startServer(t, conf, []string{"--sentinel"})
	}
	var failed error
	for _, s := range sentinels {
		failed = errors.Join(failed, s.await("a Sentinel that knows the others", func(ctx context.Context, c *redis.Client) bool {
			others, err := c.Do(ctx, "sentinel", "sentinels", name).Slice()
			known, err2 := c.Do(ctx, "sentinel", "replicas", name).Slice()
			return err == nil && err2 == nil && len(others) == n-1 && len(known) == replicas
		}))
	}
	if failed != nil {
		t.Fatal(failed)
	}
	return sentinels
}
