//go:build long

package store_test

import (
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/internal/redistest"
	"github.com/lubdub-io/lubdub/tracker"
	"github.com/lubdub-io/lubdub/tracker/store"
	"github.com/lubdub-io/lubdub/tracker/trackertest"
)

// kills returns how often a primary is killed where no write may be lost; LUBDUB_TEST_KILLS changes it.
func kills(t *testing.T) int {
	t.Helper()
	text := os.Getenv("LUBDUB_TEST_KILLS")
	if text == "" {
		return 100
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// underKills kills a primary under load repeatedly.
func underKills(t *testing.T, o tracker.Options, n int, kill func(*testing.T, *Load)) *Load {
	t.Helper()
	o.RedisTimeout = time.Second
	l := startLoad(t, trackertest.Open(t, o), 16)
	for i := range n {
		l.More(t, 100)
		kill(t, l)
		l.Check(t)
		if i%10 == 9 {
			t.Logf("%d kills: %d completions acknowledged, %d lost", i+1, l.Acknowledged(), len(l.Lost))
		}
	}
	l.More(t, 100)
	return l
}

// restarted kills and restarts a server without replicas.
func restarted(s *redistest.Server) func(*testing.T, *Load) {
	return func(t *testing.T, _ *Load) {
		s.Kill()
		if err := s.Restart(); err != nil {
			t.Fatal(err)
		}
	}
}

// pair is a primary and its replica behind one address.
type pair struct {
	*Address
	primary, replica *redistest.Server
}

func startPair(t *testing.T) *pair {
	t.Helper()
	p := &pair{primary: redistest.StartServer(t, "--repl-diskless-sync-delay", "0")}
	p.replica = redistest.StartReplica(t, p.primary, "--repl-diskless-sync-delay", "0")
	p.Address = StartAddress(t, p.primary)
	return p
}

// kill kills the primary. The replica is promoted at once, whatever it has not read yet, and the killed one comes back empty, as its
// replica.
func (p *pair) kill(t *testing.T, _ *Load) {
	t.Helper()
	p.primary.Kill()
	c := p.replica.Client()
	defer func() { _ = c.Close() }()
	if err := c.ReplicaOf(t.Context(), "NO", "ONE").Err(); err != nil {
		t.Fatal(err)
	}
	p.LeadTo(p.replica)
	if err := p.primary.Restart(p.replica.ReplicaOf()...); err != nil {
		t.Fatal(err)
	}
	if err := p.primary.AwaitSync(); err != nil {
		t.Fatal(err)
	}
	p.primary, p.replica = p.replica, p.primary
}

// killWhileBehind kills the primary while the replica lags.
func (p *pair) killWhileBehind(t *testing.T, l *Load) {
	t.Helper()
	if err := p.replica.Freeze(); err != nil {
		t.Fatal(err)
	}
	l.More(t, 500)
	p.primary.Kill()
	if err := p.replica.Thaw(); err != nil {
		t.Fatal(err)
	}
	p.kill(t, l)
}

// TestLongReplicated: no acknowledged write is lost when primaries are killed and replicas promoted.
func TestLongReplicated(t *testing.T) {
	p := startPair(t)
	underKills(t, tracker.Options{RedisURL: p.URL(), Durability: store.Replicated}, kills(t), p.kill).WantSound(t)
}

// TestLongFsync: no acknowledged write is lost after kill -9 and restart of a server that syncs always.
func TestLongFsync(t *testing.T) {
	s := redistest.StartServer(t, "--appendonly", "yes", "--appendfsync", "always")
	underKills(t, tracker.Options{RedisURL: s.URL(), Durability: store.Fsync}, kills(t), restarted(s)).WantSound(t)
}

// TestLongMemory measures what durability memory loses; it asserts nothing.
func TestLongMemory(t *testing.T) {
	measure := func(name string, n int, url string, kill func(*testing.T, *Load)) {
		t.Run(name, func(t *testing.T) {
			l := underKills(t, tracker.Options{RedisURL: url}, n, kill)
			l.End()
			l.CheckAll(t)
			t.Logf("%d kills: %d completions acknowledged, %d lost", n, len(l.Completed), len(l.Lost))
		})
	}
	for name, args := range map[string][]string{
		"no file and restart":     nil,
		"everysec and restart":    {"--appendonly", "yes", "--appendfsync", "everysec"},
		"sync always and restart": {"--appendonly", "yes", "--appendfsync", "always"},
	} {
		s := redistest.StartServer(t, args...)
		measure(name, 20, s.URL(), restarted(s))
	}
	p := startPair(t)
	measure("replica promoted", 20, p.URL(), p.kill)
	p = startPair(t)
	measure("replica promoted that was behind", 20, p.URL(), p.killWhileBehind)
}
