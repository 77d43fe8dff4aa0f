package embedded

import (
	"context"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"
)

func client(t *testing.T, r *Redis) *redis.Client {
	t.Helper()
	o, err := redis.ParseURL(strings.Replace(r.URL(), "miniredis:", "redis:", 1))
	if err != nil {
		t.Fatal(err)
	}
	return redis.NewClient(o)
}

func TestServesAndStops(t *testing.T) {
	defer goleak.VerifyNone(t)
	r, err := Start()
	if err != nil {
		t.Fatal(err)
	}
	c := client(t, r)
	ctx := context.Background()
	if v, err := c.Eval(ctx, `redis.call("SET", KEYS[1], ARGV[1]); return redis.call("GET", KEYS[1])`, []string{"k"},
		"v").Result(); err != nil || v != "v" {
		t.Errorf("%v, %v", v, err)
	}
	c.Close()
	r.Close()
	r.Close()
	again := client(t, r)
	defer again.Close()
	if err := again.Ping(ctx).Err(); err == nil {
		t.Error("it still answers")
	}
}

// The port is open to every user of the machine, so it must require the password.
func TestRequiresPassword(t *testing.T) {
	r, err := Start()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	u, err := url.Parse(r.URL())
	if err != nil {
		t.Fatal(err)
	}
	if host := u.Hostname(); host != "127.0.0.1" {
		t.Errorf("it listens on %s", host)
	}
	c := redis.NewClient(&redis.Options{Addr: u.Host, DisableIdentity: true, MaxRetries: -1})
	defer c.Close()
	if err := c.Get(context.Background(), "k").Err(); err == nil || err == redis.Nil {
		t.Errorf("a client without the password was accepted: %v", err)
	}
	other, err := Start()
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if other.URL() == r.URL() {
		t.Error("two of them have the same URL")
	}
}

// Keys must expire automatically, since no test moves the clock.
func TestKeysExpire(t *testing.T) {
	r, err := Start()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	c := client(t, r)
	defer c.Close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := c.Set(ctx, "k", "v", 20*time.Millisecond).Err(); err != nil {
		t.Fatal(err)
	}
	for c.Exists(ctx, "k").Val() == 1 {
		if ctx.Err() != nil {
			t.Fatal("the key is still there")
		}
	}
}

// A show may run for a long time, so the cost of a command must not grow with the number of keys.
func TestManyKeysSlowNoCommand(t *testing.T) {
	r, err := Start()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	c := client(t, r)
	defer c.Close()
	ctx := context.Background()
	fill := func(n int) {
		t.Helper()
		if err := c.Eval(ctx, `for i = 1, tonumber(ARGV[1]) do redis.call('SET', ARGV[1] .. ':' .. i, 'v') end return 1`, nil,
			n).Err(); err != nil {
			t.Fatal(err)
		}
	}
	// The fastest of many, so that who else is on the machine does not count.
	fastest := func() time.Duration {
		t.Helper()
		best := time.Hour
		for range 20 {
			began := time.Now()
			if err := c.Eval(ctx, `for i = 1, 20 do redis.call('GET', 'k') end return 1`, nil).Err(); err != nil {
				t.Fatal(err)
			}
			best = min(best, time.Since(began))
		}
		return best
	}
	fill(10)
	few := fastest()
	for i := range 20 { // in steps, each with new keys
		fill(500 + i)
		if many := fastest(); many > 10*few+time.Millisecond {
			t.Fatalf("a script of 20 commands takes %v with a few keys and %v with thousands", few, many)
		}
	}
}
