package load

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"time"
)

// A connection that the server closes is counted and opened again.
func TestServerCloses(t *testing.T) {
	both(t, func(t *testing.T, dial dialer) {
		address := fakeServer(t, func(c net.Conn, n int) {
			if n == 3 {
				write(c, "HTTP/1.1 200 OK\r\nContent-Le")
				_ = c.Close()
				return
			}
			write(c, okAnswer)
		})
		r, err := dial(t, address, 1).Run(t.Context(), Load{Source: sources(5)})
		if err != nil {
			t.Fatal(err)
		}
		if r.Beats != 4 || r.NotOK["connection closed by the server"] != 1 {
			t.Errorf("%+v", r.Tally)
		}
	})
}

// A server that is gone ends the run with an error, not with numbers.
func TestServerGone(t *testing.T) {
	both(t, func(t *testing.T, dial dialer) {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		p := dial(t, l.Addr().String(), 1)
		accepted, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		_ = l.Close()
		_ = accepted.Close()
		if r, err := p.Run(t.Context(), Load{Source: sources(1)}); err == nil || !strings.Contains(err.Error(), "takes no connections any more") {
			t.Errorf("%v %+v", err, r.Tally)
		}
	})
}

// A run that is interrupted ends, though the server withholds its answer.
func TestInterrupt(t *testing.T) {
	both(t, func(t *testing.T, dial dialer) {
		ctx, cancel := context.WithCancel(t.Context())
		address := fakeServer(t, func(c net.Conn, n int) { cancel() })
		if _, err := dial(t, address, 1).Run(ctx, Load{Source: sources(2)}); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
}

// An open loop whose connections all sleep is interrupted too, and reports it.
func TestInterruptWhileAsleep(t *testing.T) {
	both(t, func(t *testing.T, dial dialer) {
		address := fakeServer(t, func(c net.Conn, _ int) { write(c, okAnswer) })
		p := dial(t, address, 2)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		for range 50 {
			if _, err := p.Run(ctx, Load{Source: sources(1), PerSecond: 1, clock: &fakeClock{}}); !errors.Is(err, context.Canceled) {
				t.Fatal(err)
			}
		}
	})
}

// A run that is stopped waits for the requests under way, and returns no error.
func TestUntil(t *testing.T) {
	both(t, func(t *testing.T, dial dialer) {
		until := make(chan struct{})
		address := fakeServer(t, func(c net.Conn, n int) {
			if n == 10 {
				close(until)
			}
			write(c, okAnswer)
		})
		r, err := dial(t, address, 1).Run(t.Context(), Load{Source: sources(1 << 30), Until: until})
		if err != nil || r.Beats < 10 || r.Beats != r.Requests || len(r.NotOK) != 0 {
			t.Errorf("%v %+v", err, r.Tally)
		}
	})
}

// Each connection of a closed loop sends one request at least, even where its run is over before it comes to it.
func TestARunThatBeginsLate(t *testing.T) {
	both(t, func(t *testing.T, dial dialer) {
		address := fakeServer(t, func(c net.Conn, _ int) { write(c, okAnswer) })
		clock := &fakeClock{}
		clock.at.Store(int64(time.Minute))
		r, err := dial(t, address, 3).Run(t.Context(), Load{Source: sources(5), For: time.Second, clock: clock})
		if err != nil || r.Beats != 3 || len(r.NotOK) != 0 {
			t.Errorf("%v %+v", err, r.Tally)
		}
	})
}

// Answers to requests that a run left unanswered are dropped: the next run on the same connections gets its own answers.
func TestRunAfterAnInterrupt(t *testing.T) {
	both(t, func(t *testing.T, dial dialer) {
		ctx, cancel := context.WithCancel(t.Context())
		held := make(chan struct{})
		address := fakeServer(t, func(c net.Conn, n int) {
			if n == 1 {
				cancel()
				<-held
				write(c, "HTTP/1.1 410 Gone\r\nContent-Length: 0\r\n\r\n")
				return
			}
			write(c, okAnswer)
		})
		g := dial(t, address, 1)
		if _, err := g.Run(ctx, Load{Source: sources(1)}); !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		close(held)
		if r, err := g.Run(t.Context(), Load{Source: sources(2)}); err != nil || r.NotOK["410"] != 0 || r.Beats == 0 {
			t.Errorf("%v %+v", err, r.Tally)
		}
	})
}

// A connection that the server gave up while no run used it is opened again, and nothing is counted.
func TestIdleConnectionsThatWereClosed(t *testing.T) {
	closing := make(chan struct{})
	closed := make(chan struct{})
	address := fakeServer(t, func(c net.Conn, n int) {
		write(c, okAnswer)
		if n == 1 {
			go func() {
				<-closing
				write(c, "HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\n\r\n")
				_ = c.Close()
				close(closed)
			}()
		}
	})
	g, err := DialLight(t.Context(), address, 1)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(g.Close)
	if _, pool := g.(*Pool); pool {
		t.Skip("there is no light generator here")
	}
	for n := range 2 {
		if r, err := g.Run(t.Context(), Load{Source: sources(1)}); err != nil || r.Beats != 1 || len(r.NotOK) > 0 {
			t.Errorf("run %d: %v %+v", n+1, err, r.Tally)
		}
		if n == 0 {
			close(closing)
			<-closed
		}
	}
}

// More connections than an address has ports leave from other loopback addresses.
func TestManyConnectionsLeaveFromManyAddresses(t *testing.T) {
	for i, want := range map[int]string{0: "<nil>", portsPerAddress - 1: "<nil>", portsPerAddress: "127.0.0.2", 99_999: "127.0.0.10"} {
		if got := sourceOf(i).String(); got != want {
			t.Errorf("connection %d leaves from %s, not %s", i, got, want)
		}
	}
}
