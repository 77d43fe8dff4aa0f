//go:build long

package tracker_test

import (
	"os"
	"strconv"
	"testing"

	"github.com/lubdub-io/lubdub/internal/redistest"
	"github.com/lubdub-io/lubdub/tracker"
)

// kills is how often a primary is killed where nothing may be lost; LUBDUB_TEST_KILLS changes it.
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

// underKills kills a primary under load again and again.
func underKills(t *testing.T, o tracker.Options, n int, kill func(*testing.T)) *load {
	t.Helper()
	l := startLoad(t, open(t, o), 16)
	for i := range n {
		l.more(t, 100)
		kill(t)
		l.check(t)
		if i%10 == 9 {
			t.Logf("%d kills: %d completions acknowledged, %d lost", i+1, l.acknowledged(), len(l.lost))
		}
	}
	l.more(t, 100)
	return l
}

// killAndRestart is for a server without replicas.
func killAndRestart(s *redistest.Server) func(*testing.T) {
	return func(t *testing.T) {
		s.Kill()
		if err := s.Restart(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestLongReplicated: kill -9 of the primary, Sentinel promotes its replica, the killed one rejoins empty.
func TestLongReplicated(t *testing.T) {
	w := startWatched(t, 1, 1)
	underKills(t, tracker.Options{RedisURL: w.url(), Durability: tracker.Replicated}, kills(t), w.kill).wantSound(t)
}

// TestLongFsync: kill -9 and restart of a server that syncs always.
func TestLongFsync(t *testing.T) {
	s := redistest.StartServer(t, "--appendonly", "yes", "--appendfsync", "always")
	underKills(t, tracker.Options{RedisURL: s.URL(), Durability: tracker.Fsync}, kills(t), killAndRestart(s)).wantSound(t)
}

// TestLongMemory measures what durability memory loses; it judges nothing.
func TestLongMemory(t *testing.T) {
	const n = 20
	tell := func(t *testing.T, l *load) {
		t.Helper()
		l.end()
		l.checkAll(t)
		t.Logf("%d kills: %d completions acknowledged, %d lost (%.3f a kill)", n, len(l.completed), len(l.lost), float64(len(l.lost))/n)
	}
	t.Run("everysec and restart", func(t *testing.T) {
		s := redistest.StartServer(t, "--appendonly", "yes", "--appendfsync", "everysec")
		tell(t, underKills(t, tracker.Options{RedisURL: s.URL()}, n, killAndRestart(s)))
	})
	t.Run("failover", func(t *testing.T) {
		w := startWatched(t, 1, 1)
		tell(t, underKills(t, tracker.Options{RedisURL: w.url()}, n, w.kill))
	})
	t.Run("failover after the replica lagged", func(t *testing.T) {
		w := startWatched(t, 1, 1)
		var l *load
		l = startLoad(t, open(t, tracker.Options{RedisURL: w.url()}), 16)
		for range n {
			l.more(t, 100)
			old := w.primary(t)
			replica := w.servers[0]
			if replica == old {
				replica = w.servers[1]
			}
			if err := replica.Freeze(); err != nil {
				t.Fatal(err)
			}
			l.more(t, 500) // acknowledged without the replica
			old.Kill()
			if err := replica.Thaw(); err != nil {
				t.Fatal(err)
			}
			w.rejoin(t, old, w.promoted(t, old))
			l.check(t)
		}
		tell(t, l)
	})
	t.Run("nothing on disk", func(t *testing.T) {
		s := redistest.StartServer(t)
		tell(t, underKills(t, tracker.Options{RedisURL: s.URL()}, 3, killAndRestart(s)))
	})
}
