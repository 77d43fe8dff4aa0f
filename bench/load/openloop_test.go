package load

import (
	"context"
	"net"
	"sync/atomic"
	"testing"
	"time"
)

// fakeClock advances only by the server's processing time and by sleeps.
type fakeClock struct{ at atomic.Int64 }

func (c *fakeClock) now() time.Duration { return time.Duration(c.at.Load()) }

func (c *fakeClock) skip(t time.Duration) bool { return c.sleepUntil(context.Background(), t) }

func (c *fakeClock) sleepUntil(ctx context.Context, t time.Duration) bool {
	if t > c.now() {
		c.at.Store(int64(t))
	}
	return ctx.Err() == nil
}

// One stall of a second is one long request to a closed loop. In an open loop every client that would have sent meanwhile
// has waited, each from their own intended time.
func TestStallIsCountedFromTheIntendedStart(t *testing.T) {
	both(t, func(t *testing.T, dial dialer) {
		run := func(perSecond float64) Result {
			clock := &fakeClock{}
			address := fakeServer(t, func(c net.Conn, n int) {
				if n == 1 {
					clock.at.Add(int64(time.Second))
				}
				write(c, okAnswer)
			})
			r, err := dial(t, address, 1).Run(t.Context(), Load{Source: sources(150), For: 2 * time.Second, PerSecond: perSecond,
				clock: clock})
			if err != nil || r.Beats != 150 {
				t.Fatalf("%v %+v", err, r.Tally)
			}
			return r
		}
		open := run(100) // one each 10 ms: 100 of them are intended while the first is under way
		for _, c := range []struct {
			percent float64
			want    time.Duration
		}{{100, time.Second}, {50, 250 * time.Millisecond}, {33, 0}} {
			got := time.Duration(open.Latency.ValueAtPercentile(c.percent)) * time.Microsecond
			if got < c.want-11*time.Millisecond || got > c.want+11*time.Millisecond {
				t.Errorf("open loop: p%v is %v, not %v", c.percent, got, c.want)
			}
		}
		if late := open.Lateness.Max(); late < 985_000 || late > 991_000 {
			t.Errorf("the second request was sent 990 ms late, and the most is %d µs", late)
		}
		closed := run(0)
		if p := closed.Latency.ValueAtPercentile(99); p != 0 || closed.Latency.Max() < 999_000 {
			t.Errorf("closed loop: p99 %d µs, max %d µs", p, closed.Latency.Max())
		}
	})
}

// An open loop reports its own lateness separately from the wait for the previous response.
func TestOwnLateness(t *testing.T) {
	both(t, func(t *testing.T, dial dialer) {
		clock := &fakeClock{}
		address := fakeServer(t, func(c net.Conn, n int) {
			clock.at.Add(int64(time.Second))
			write(c, okAnswer)
		})
		r, err := dial(t, address, 1).Run(t.Context(), Load{Source: sources(3), PerSecond: 10, clock: clock})
		if err != nil || r.Lateness.Max() < 1_700_000 || r.OwnLateness.TotalCount() != 3 || r.OwnLateness.Max() != 0 {
			t.Errorf("%v: %d µs late, of which %d its own", err, r.Lateness.Max(), r.OwnLateness.Max())
		}
	})
}

// An open loop reports what it could not send by its end.
func TestOverloadIsReported(t *testing.T) {
	both(t, func(t *testing.T, dial dialer) {
		clock := &fakeClock{}
		address := fakeServer(t, func(c net.Conn, n int) {
			clock.at.Add(int64(time.Second))
			write(c, okAnswer)
		})
		r, err := dial(t, address, 1).Run(t.Context(), Load{Source: sources(1 << 30), For: 2 * time.Second, PerSecond: 10, clock: clock})
		if err != nil || r.Beats+r.NotOK[NotSent] != 20 || r.NotOK[NotSent] < 10 {
			t.Errorf("%v %+v", err, r.Tally)
		}
	})
}

func TestSchedule(t *testing.T) {
	const conns, perSecond = 4, 1000.0
	for _, poisson := range []bool{false, true} {
		n := 0
		for i := range conns {
			s, last := newSchedule(i, conns, perSecond, poisson), time.Duration(-1)
			for at := s.take(); at < 10*time.Second; at = s.take() {
				if at < last {
					t.Fatalf("poisson %v: %v comes after %v", poisson, at, last)
				}
				last = at
				n++
			}
		}
		if n < 9500 || n > 10_500 || !poisson && n != 10_000 {
			t.Errorf("poisson %v: %d requests in 10 s at %v per second", poisson, n, perSecond)
		}
	}
}
