package redistest

import (
	"context"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// databases of the shared server, one for each concurrent test. Every test uses the same keys, so the database isolates tests.
const databases = 256

// shared is the one server of this test binary, and its free databases.
var shared struct {
	once   sync.Once
	server *Server
	free   chan int
	err    error
}

func startShared() {
	shared.server, shared.err = newServer("", nil, nil)
	shared.free = make(chan int, databases)
	for db := range databases {
		shared.free <- db
	}
}

// takeDatabase returns an empty database of the shared server until the end of the test.
func takeDatabase(t testing.TB) (addr string, db int) {
	t.Helper()
	skipIfShort(t)
	shared.once.Do(startShared)
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	select {
	case db = <-shared.free:
	case <-time.After(time.Minute):
		t.Fatalf("no database for a minute: tests of this binary hold all %d; does one take them in a loop?", databases)
	}
	flush := func() error {
		c := dial(shared.server.Addr, db)
		defer func() { _ = c.Close() }()
		return c.FlushDB(context.Background()).Err()
	}
	if err := flush(); err != nil { // goroutines leaked by a test may have written after its end
		t.Fatalf("emptying database %d: %v", db, err)
	}
	t.Cleanup(func() {
		if err := flush(); err != nil {
			t.Errorf("emptying database %d: %v", db, err)
		}
		shared.free <- db
	})
	return shared.server.Addr, db
}

// Main runs a package's tests and removes the shared server. TestMain should only call Main.
func Main(m *testing.M) {
	redis.SetLogger(silent{}) // tests stop Redis on purpose
	code := m.Run()
	if shared.server != nil {
		shared.server.remove()
	}
	os.Exit(code)
}

type silent struct{}

func (silent) Printf(context.Context, string, ...any) {}
