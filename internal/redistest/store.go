package redistest

import (
	"context"
	"fmt"
	"os"
	"sync"
	"testing"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/lubdub-io/lubdub/lua"
)

// Store is an empty store for one test.
type Store struct {
	Kind    string // "miniredis" or "redis"
	URL     string
	Client  *redis.Client // for assertions
	Clock   *Clock        // wall time as scripts see it
	Scripts *lua.Set      // what Options.Scripts wants, so that they see that clock
}

// Option changes what a store is like.
type Option int

// WallClock leaves the store's true clock in place; the test has no hand in it.
const WallClock Option = 1

// Each runs a test on every kind of store.
func Each(t *testing.T, test func(t *testing.T, s *Store), opts ...Option) {
	t.Helper()
	t.Run("miniredis", func(t *testing.T) { test(t, Miniredis(t, opts...)) })
	t.Run("redis", func(t *testing.T) { test(t, Real(t, opts...)) })
}

func wallClock(opts []Option) bool {
	for _, o := range opts {
		if o == WallClock {
			return true
		}
	}
	return false
}

// Miniredis is a store inside the process.
func Miniredis(t testing.TB, opts ...Option) *Store {
	t.Helper()
	m := miniredis.NewMiniRedis()
	if err := m.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Close)
	s := &Store{Kind: "miniredis", URL: "redis://" + m.Addr() + "/0", Scripts: lua.Load()}
	s.Client = newClient(t, m.Addr(), 0)
	if !wallClock(opts) {
		s.Clock = newClock(m.SetTime)
	}
	return s
}

// databases of the shared server, one for each test that runs at the same time.
const databases = 256

var shared struct {
	sync.Mutex
	server *Server
	err    error
	free   []int
}

// Real is a database of a real redis-server that this test binary has started for itself.
func Real(t testing.TB, opts ...Option) *Store {
	t.Helper()
	shared.Lock()
	if shared.server == nil && shared.err == nil {
		shared.server, shared.err = newServer("", nil)
		for db := range databases {
			shared.free = append(shared.free, databases-1-db)
		}
	}
	if shared.err != nil {
		shared.Unlock()
		t.Fatal(shared.err)
	}
	if len(shared.free) == 0 {
		shared.Unlock()
		t.Fatalf("more than %d stores at once in one test binary", databases)
	}
	db := shared.free[len(shared.free)-1]
	shared.free = shared.free[:len(shared.free)-1]
	addr := shared.server.Addr
	shared.Unlock()

	s := &Store{Kind: "redis", URL: fmt.Sprintf("redis://%s/%d", addr, db), Scripts: lua.Load()}
	s.Client = newClient(t, addr, db)
	flush := func() { _ = s.Client.FlushDB(context.Background()).Err() }
	flush()
	t.Cleanup(func() { // runs before the client's, which was registered first
		flush()
		shared.Lock()
		shared.free = append(shared.free, db)
		shared.Unlock()
	})
	if !wallClock(opts) {
		s.Scripts = lua.LoadWithClock("redis.call('LRANGE', '" + clockKey + "', 0, -1)")
		s.Clock = newRealClock(t, s.Client)
	}
	return s
}

func newClient(t testing.TB, addr string, db int) *redis.Client {
	c := redis.NewClient(&redis.Options{Addr: addr, DB: db, Protocol: 2, DisableIdentity: true})
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// Main runs a package's tests and removes the shared server. Use it as TestMain's whole body.
func Main(m *testing.M) {
	redis.SetLogger(silent{}) // tests take Redis away on purpose
	code := m.Run()
	shared.Lock()
	if shared.server != nil {
		shared.server.remove()
	}
	shared.Unlock()
	os.Exit(code)
}

type silent struct{}

func (silent) Printf(context.Context, string, ...any) {}
