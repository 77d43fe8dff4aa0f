package faultproxy_test

import (
	"bytes"
	"context"
	"errors"
	"net"
	"os"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lubdub-io/lubdub/internal/faultproxy"
	"github.com/lubdub-io/lubdub/internal/redistest"
)

func TestMain(m *testing.M) { redistest.Main(m) }

// setUp returns a proxy before a server, a client of the proxy that tries nothing twice, and one of the server.
func setUp(t *testing.T) (p *faultproxy.Proxy, through, direct *redis.Client) {
	t.Helper()
	s := redistest.StartServer(t)
	p = faultproxy.Start(t, s.Addr)
	through = redis.NewClient(&redis.Options{
		Addr: p.Addr, Protocol: 2, DisableIdentity: true, MaxRetries: -1, DialerRetries: 1, PoolSize: 1, ReadTimeout: 3 * time.Second,
	})
	direct = s.Client()
	t.Cleanup(func() { _, _ = through.Close(), direct.Close() })
	return p, through, direct
}

func counter(t *testing.T, c *redis.Client) int64 {
	t.Helper()
	n, err := c.Get(context.Background(), "n").Int64()
	if err != nil && !errors.Is(err, redis.Nil) {
		t.Fatal(err)
	}
	return n
}

func TestActions(t *testing.T) {
	p, through, direct := setUp(t)
	ctx := t.Context()
	for _, c := range []struct {
		action   faultproxy.Action
		executed int64
		fails    bool
	}{{faultproxy.Pass, 1, false}, {faultproxy.LoseRequest, 0, true}, {faultproxy.CutShort, 0, true}, {faultproxy.LoseReply, 1, true}} {
		before := counter(t, direct)
		p.Intercept(func(request []byte) faultproxy.Action {
			if bytes.Contains(request, []byte("incr")) {
				return c.action
			}
			return faultproxy.Pass
		})
		err := through.Incr(ctx, "n").Err()
		if got := counter(t, direct) - before; got != c.executed || (err != nil) != c.fails {
			t.Errorf("action %d: executed %d times, %v", c.action, got, err)
		}
		if err := through.Ping(ctx).Err(); err != nil {
			t.Errorf("action %d: the next connection: %v", c.action, err)
		}
	}
	p.Intercept(nil)
	if err := through.Incr(ctx, "n").Err(); err != nil {
		t.Error(err)
	}
}

func TestPauseHoldsAndResumeLetsGo(t *testing.T) {
	p, through, direct := setUp(t)
	ctx := t.Context()
	if err := through.Incr(ctx, "n").Err(); err != nil {
		t.Fatal(err)
	}
	p.Pause()
	if err := through.Incr(ctx, "n").Err(); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("while it is paused: %v", err)
	}
	if n := counter(t, direct); n != 1 {
		t.Fatalf("%d got through", n)
	}
	p.Resume()
	if err := through.Incr(ctx, "n").Err(); err != nil {
		t.Fatal(err)
	}
}

func TestCutAndRefuse(t *testing.T) {
	p, through, _ := setUp(t)
	ctx := t.Context()
	sub := through.Subscribe(ctx, "c")
	defer func() { _ = sub.Close() }()
	if _, err := sub.Receive(ctx); err != nil {
		t.Fatal(err)
	}
	p.Cut()
	if _, err := sub.Receive(ctx); err == nil {
		t.Error("the connection lives on")
	}
	if err := through.Ping(ctx).Err(); err != nil {
		t.Errorf("a new connection after the cut: %v", err)
	}
	p.Refuse()
	for range 2 {
		if err := through.Ping(ctx).Err(); err == nil {
			t.Error("it took a connection")
		}
	}
	p.Resume()
	if err := through.Ping(ctx).Err(); err != nil {
		t.Error(err)
	}
}

func TestDelay(t *testing.T) {
	p, through, _ := setUp(t)
	ctx := t.Context()
	if err := through.Ping(ctx).Err(); err != nil {
		t.Fatal(err)
	}
	p.Delay(time.Minute)
	if err := through.Ping(ctx).Err(); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("an answer a minute late: %v", err)
	}
	p.Delay(0)
	if err := through.Ping(ctx).Err(); err != nil {
		t.Error(err)
	}
}

func TestDrop(t *testing.T) {
	p, through, _ := setUp(t)
	ctx := t.Context()
	if err := through.Ping(ctx).Err(); err != nil {
		t.Fatal(err)
	}
	p.Drop()
	var failed net.Error
	if _, err := net.DialTimeout("tcp", p.Addr, 100*time.Millisecond); !errors.As(err, &failed) || !failed.Timeout() {
		t.Errorf("a new connection: %v", err)
	}
	short, cancel := context.WithTimeout(ctx, 10*time.Millisecond)
	defer cancel()
	if err := through.Ping(short).Err(); err == nil {
		t.Error("it answered")
	}
	p.Resume()
	if err := through.Ping(ctx).Err(); err != nil {
		t.Error(err)
	}
}
