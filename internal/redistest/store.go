package redistest

import (
	"context"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/lubdub-io/lubdub/internal/testenv"
	"github.com/lubdub-io/lubdub/lua"
)

// Store is an empty store for one test.
type Store struct {
	Kind    string        // "miniredis" or "redis"
	URL     string        // of a real one as Lubdub's user
	Client  *redis.Client // for assertions; it may run every command
	Clock   *Clock        // wall time as scripts see it
	Scripts *lua.Set      // from Options.Scripts, changed so that they see that clock
}

// Eval runs a script by its name, with an unknown actor in the events that it writes.
func (s *Store) Eval(ctx context.Context, name string, keys []string, args ...any) *redis.Cmd {
	script := s.Scripts.Get(name)
	if script.Events {
		args = append(slices.Clone(args), "")
	}
	return s.Client.Eval(ctx, script.Source, keys, args...)
}

// Option configures a store.
type Option int

// WallClock leaves the store's real clock in place, and so runs the scripts exactly as production does.
const WallClock Option = 1

// Each runs a test on every kind of store. The race detector makes the Lua of miniredis several times slower and observes the same
// code of Lubdub on Redis, so with it a test runs on miniredis only if it does more in `make test-all` than in `make test`.
func Each(t *testing.T, test func(t *testing.T, s *Store), opts ...Option) {
	t.Helper()
	t.Run("miniredis", func(t *testing.T) {
		if testenv.Race && !testenv.IsLongerInAll(t) {
			t.Skip("`make test` runs it on miniredis; with the race detector it runs on Redis")
		}
		test(t, Miniredis(t, opts...))
	})
	t.Run("redis", func(t *testing.T) { test(t, Real(t, opts...)) })
}

// Miniredis returns a store inside the process.
func Miniredis(t testing.TB, opts ...Option) *Store {
	t.Helper()
	m := miniredis.NewMiniRedis()
	if err := m.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Close)
	s := &Store{Kind: "miniredis", URL: "miniredis://" + m.Addr() + "/0", Scripts: scripts(""), Clock: &Clock{}}
	s.Client = newClient(t, m.Addr(), 0)
	if slices.Contains(opts, WallClock) {
		m.ClockTTL(true) // otherwise keys would not expire at all
	} else {
		s.Clock = newMiniredisClock(m)
	}
	return s
}

// Real returns a database of a real redis-server that this test binary has started. It waits when all are taken, and fails the test
// if there is no redis-server.
func Real(t testing.TB, opts ...Option) *Store {
	t.Helper()
	addr, db := takeDatabase(t)
	s := &Store{Kind: "redis", URL: fmt.Sprintf("redis://%s/%d", As(addr), db), Scripts: scripts(""), Clock: &Clock{}}
	s.Client = newClient(t, addr, db)
	if !slices.Contains(opts, WallClock) {
		s.Scripts = scripts(clockExpr)
		s.Clock = newRealClock(t, s.Client)
	}
	return s
}

// Own returns a real redis-server for the test alone, for tests that change server-wide state, and its database 0 as a store whose
// clock the test moves.
func Own(t testing.TB, args ...string) (*Store, *Server) {
	t.Helper()
	server := StartServer(t, args...)
	s := &Store{Kind: "redis", URL: server.URL(), Scripts: scripts(clockExpr), Client: newClient(t, server.Addr, 0)}
	s.Clock = newClock(func(now time.Time, _ time.Duration) { setRealClock(t, s.Client, now, 0) })
	return s, server
}

// Alone returns a real redis-server that nothing else uses, with a clock that the test controls. Keys do not expire by it: aging all of
// them would be additional work for Redis.
func Alone(t testing.TB, args ...string) (*Store, *Server) {
	t.Helper()
	server := StartServer(t, args...)
	s := &Store{Kind: "redis", URL: server.URL(), Scripts: scripts(clockExpr), Client: newClient(t, server.Addr, 0)}
	s.Clock = newClock(func(now time.Time, _ time.Duration) { setRealClock(t, s.Client, now, 0) })
	return s, server
}

func newClient(t testing.TB, addr string, db int) *redis.Client {
	c := dial(addr, db)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// scriptsFolder names a directory whose scripts replace the embedded ones; internal/mutants puts wrong ones there.
const scriptsFolder = "LUBDUB_TEST_SCRIPTS"

// Scripts returns the scripts as production runs them, for a test that starts its own server.
func Scripts() *lua.Set { return scripts("") }

// scripts composes the scripts with a clock; "": the store's clock.
func scripts(clock string) *lua.Set {
	if dir := os.Getenv(scriptsFolder); dir != "" {
		return lua.LoadWithClockFrom(os.DirFS(dir), clock)
	}
	if clock == "" {
		return lua.Load()
	}
	return lua.LoadWithClock(clock)
}
