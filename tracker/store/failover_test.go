package store_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/internal/redistest"
	"github.com/lubdub-io/lubdub/tracker"
	"github.com/lubdub-io/lubdub/tracker/store"
	"github.com/lubdub-io/lubdub/tracker/trackertest"
)

// watched is a primary, its replicas, and Sentinels that watch them.
type watched struct {
	servers   []*redistest.Server // the primary is one of them
	sentinels []*redistest.Server
}

func startWatched(t *testing.T, replicas, sentinels int, args ...string) *watched {
	t.Helper()
	args = append([]string{"--repl-diskless-sync-delay", "0"}, args...)
	primary := redistest.StartServer(t, args...)
	w := &watched{servers: []*redistest.Server{primary}}
	for range replicas {
		w.servers = append(w.servers, redistest.StartReplica(t, primary, args...))
	}
	w.sentinels = redistest.StartSentinels(t, sentinels, "main", primary, replicas, time.Second)
	return w
}

func (w *watched) url() string {
	var addrs []string
	for _, s := range w.sentinels {
		addrs = append(addrs, s.Addr)
	}
	return "redis+sentinel://" + strings.Join(addrs, ",") + "/main/0?" + redistest.Credentials()
}

// primary returns the server that the Sentinels name.
func (w *watched) primary(t *testing.T) *redistest.Server {
	t.Helper()
	c := w.sentinels[0].Client()
	defer func() { _ = c.Close() }()
	at, err := c.Do(context.Background(), "sentinel", "get-master-addr-by-name", "main").StringSlice()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range w.servers {
		if s.Addr == strings.Join(at, ":") {
			return s
		}
	}
	t.Fatalf("no server of ours is the primary: %v", at)
	return nil
}

// promoted waits until a server other than `old` is the primary and reports that role itself.
func (w *watched) promoted(t *testing.T, old *redistest.Server) *redistest.Server {
	t.Helper()
	trackertest.Eventually(t, "a replica is promoted", func() bool { return w.primary(t) != old })
	now := w.primary(t)
	if err := now.AwaitPrimary(); err != nil {
		t.Fatal(err)
	}
	return now
}

// kill kills the primary, and brings it back as a replica when another server is promoted.
func (w *watched) kill(t *testing.T) {
	t.Helper()
	old := w.primary(t)
	old.Kill()
	w.rejoin(t, old, w.promoted(t, old))
}

// rejoin restarts a server that has lost its data. Until it has synced, it must not be promoted.
func (w *watched) rejoin(t *testing.T, old, now *redistest.Server) {
	t.Helper()
	if err := old.Restart(append(now.ReplicaOf(), "--replica-priority", "0")...); err != nil {
		t.Fatal(err)
	}
	if err := old.AwaitSync(); err != nil {
		t.Fatal(err)
	}
	c := old.Client()
	defer func() { _ = c.Close() }()
	if err := c.ConfigSet(context.Background(), "replica-priority", "100").Err(); err != nil {
		t.Fatal(err)
	}
}

// forceFailover makes the Sentinels fail over from a healthy primary.
func (w *watched) forceFailover(t *testing.T) {
	t.Helper()
	old := w.primary(t)
	c := w.sentinels[0].Client()
	defer func() { _ = c.Close() }()
	trackertest.Eventually(t, "Sentinel begins the failover", func() bool {
		return c.Do(context.Background(), "sentinel", "failover", "main").Err() == nil // Sentinel refuses it right after another one
	})
	w.promoted(t, old)
	if err := old.AwaitSync(); err != nil {
		t.Fatal(err)
	}
}

type failover struct {
	name    string
	happens func(*testing.T)
}

// failovers drives a deployment through failovers under load: no task that beats is declared dead, and no acknowledged completion is
// lost.
func failovers(t *testing.T, w *watched, replicas int, events ...failover) {
	t.Helper()
	tr := trackertest.Open(t, tracker.Options{RedisURL: w.url(), Durability: store.Replicated, DurableReplicas: replicas,
		RedisTimeout: time.Second})
	life(t, trackertest.Open(t, tracker.Options{RedisURL: w.url()}))
	h := startHearts(t, tr, 64)
	l := startLoad(t, tr, 8)
	for _, event := range events {
		l.More(t, 50)
		start := time.Now()
		event.happens(t)
		over := time.Since(start)
		h.AllAgain(t)
		t.Logf("%s: over after %v; beats of all tasks continued %v later", event.name, over.Round(time.Millisecond),
			(time.Since(start) - over).Round(time.Millisecond))
		l.More(t, 50)
		l.Check(t)
	}
	l.WantSound(t)
	h.WantAlive(t)
}

func TestSentinel(t *testing.T) {
	t.Parallel()
	w := startWatched(t, 1, 1)
	failovers(t, w, 1, failover{"kill", w.kill})
}
