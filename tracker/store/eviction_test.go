package store_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/lubdub-io/lubdub/internal/redistest"
	"github.com/lubdub-io/lubdub/internal/testenv"
	"github.com/lubdub-io/lubdub/tracker"
	"github.com/lubdub-io/lubdub/tracker/store"
	"github.com/lubdub-io/lubdub/tracker/trackertest"
)

// logged is a log that can be read while it is written.
type logged struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logged) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// openLogged returns a tracker with its log and metrics.
func openLogged(t *testing.T, url string) (*tracker.Tracker, *logged, *prometheus.Registry) {
	t.Helper()
	log, registry := &logged{}, prometheus.NewRegistry()
	tr, err := tracker.Open(t.Context(), tracker.Options{RedisURL: url, Registerer: registry, RedisTimeout: trackertest.PatientRedis,
		Logger: slog.New(slog.NewTextHandler(log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tr.Close(t.Context()) })
	return tr, log, registry
}

func wantEvicts(t *testing.T, registry *prometheus.Registry, want string) {
	t.Helper()
	text := "# HELP lubdub_redis_evicts 1 while a Redis server may evict keys, or does not say by INFO whether it does: tasks may be lost; " +
		"else 0. Looked at every minute.\n# TYPE lubdub_redis_evicts gauge\nlubdub_redis_evicts " + want + "\n"
	if err := testutil.GatherAndCompare(registry, strings.NewReader(text), "lubdub_redis_evicts"); err != nil {
		t.Error(err)
	}
}

// A server that is set to evict while Lubdub runs, or stops reporting its policy, shows within a minute in the log, a metric and
// readiness.
func TestEvictionThatIsSetLaterIsReported(t *testing.T) {
	t.Parallel()
	s := redistest.StartServer(t)
	tr, log, registry := openLogged(t, s.URL())
	c := s.Client()
	defer func() { _ = c.Close() }()
	begun := time.Now()
	for _, step := range []struct {
		what string
		do   []any
		want string
	}{
		{"it evicts", []any{"config", "set", "maxmemory-policy", "allkeys-lru"}, "maxmemory-policy allkeys-lru"},
		{"no more", []any{"config", "set", "maxmemory-policy", "noeviction"}, ""},
		{"INFO is refused", []any{"acl", "setuser", redistest.User, "-info"}, "INFO"},
	} {
		if err := c.Do(t.Context(), step.do...).Err(); err != nil {
			t.Fatal(err)
		}
		was := tr.Store.Ready(t.Context())
		begun = begun.Add(59 * time.Second)
		tr.Store.CheckEviction(begun)
		if is := tr.Store.Ready(t.Context()); (is == nil) != (was == nil) {
			t.Errorf("%s: looked again within a minute: %v", step.what, is)
		}
		begun = begun.Add(time.Minute)
		tr.Store.CheckEviction(begun)
		err := tr.Store.Ready(t.Context())
		var e *store.EvictionError
		switch {
		case step.want == "" && err != nil:
			t.Errorf("%s: %v", step.what, err)
		case step.want != "" && (!errors.As(err, &e) || !strings.Contains(e.Message, step.want)):
			t.Errorf("%s: %v, want an error with %q", step.what, err, step.want)
		case !strings.Contains(log.String(), step.want):
			t.Errorf("%s is not in the log: %s", step.what, log)
		}
		wantEvicts(t, registry, map[bool]string{true: "1", false: "0"}[step.want != ""])
	}
}

// Lubdub does not start when it cannot read whether keys may be evicted.
func TestAServerThatRefusesINFOIsRefused(t *testing.T) {
	t.Parallel()
	s := redistest.StartServer(t)
	c := s.Client()
	defer func() { _ = c.Close() }()
	if err := c.Do(t.Context(), "acl", "setuser", redistest.User, "-info").Err(); err != nil {
		t.Fatal(err)
	}
	_, err := tracker.Open(t.Context(), tracker.Options{RedisURL: s.URL(), Logger: trackertest.Quiet, RedisTimeout: trackertest.PatientRedis})
	if err == nil || !strings.Contains(err.Error(), "+info") {
		t.Errorf("opened: %v", err)
	}
}

// Every node of a Cluster is checked, replicas included: one that evicts is found on any of them, and reported when it is reconfigured or
// promoted later.
func TestEveryNodeOfAClusterIsCheckedForEviction(t *testing.T) {
	testenv.OnlyAll(t)
	t.Parallel()
	c := redistest.StartCluster(t, 3, 1, 2*time.Second)
	set := func(s *redistest.Server, policy string) {
		t.Helper()
		client := s.Client()
		defer func() { _ = client.Close() }()
		if err := client.ConfigSet(t.Context(), "maxmemory-policy", policy).Err(); err != nil {
			t.Fatal(err)
		}
	}
	for i, s := range c.Servers {
		set(s, "allkeys-random")
		_, err := tracker.Open(t.Context(), tracker.Options{RedisURL: c.URL(), Logger: trackertest.Quiet, RedisTimeout: trackertest.PatientRedis})
		if err == nil || !strings.Contains(err.Error(), "maxmemory-policy allkeys-random") || !strings.Contains(err.Error(), s.Addr) {
			t.Errorf("node %d evicts: %v", i, err)
		}
		set(s, "noeviction")
	}
	tr, _, registry := openLogged(t, c.URL())
	replica := c.Servers[3]
	primary := c.Servers[0]
	set(replica, "volatile-lru")
	client := replica.Client()
	defer func() { _ = client.Close() }()
	if err := client.ClusterFailover(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	primary.Kill()
	for deadline := time.Now().Add(trackertest.Patience); !reportsEviction(tr, replica) && time.Now().Before(deadline); {
		_ = tr.Beats.Tick() // finds the new primary, and so triggers a check
		<-time.After(20 * time.Millisecond)
	}
	if !reportsEviction(tr, replica) {
		t.Errorf("the promoted replica evicts, and readiness returns %v", tr.Store.Ready(t.Context()))
	}
	wantEvicts(t, registry, "1")
}

func reportsEviction(tr *tracker.Tracker, s *redistest.Server) bool {
	var e *store.EvictionError
	return errors.As(tr.Store.Ready(context.Background()), &e) && strings.Contains(e.Message, s.Addr)
}
