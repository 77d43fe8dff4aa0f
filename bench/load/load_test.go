package load

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const okAnswer = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

// fakeServer answers each request with what answer writes, on a real socket.
func fakeServer(t *testing.T, answer func(conn net.Conn, n int)) (address string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	var requests atomic.Int64
	wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() {
				defer c.Close()
				for r := bufio.NewReader(c); ; {
					req, err := http.ReadRequest(r)
					if err != nil {
						return
					}
					_, _ = io.Copy(io.Discard, req.Body)
					answer(c, int(requests.Add(1)))
				}
			})
		}
	})
	t.Cleanup(func() { _ = l.Close(); wg.Wait() })
	return l.Addr().String()
}

func write(c net.Conn, text string) { _, _ = io.WriteString(c, text) }

// dials are the generators, which must be alike.
var dials = map[string]func(context.Context, string, int) (Generator, error){
	"pool":  func(ctx context.Context, address string, n int) (Generator, error) { return Dial(ctx, address, n) },
	"light": DialLight,
}

type dialer func(t *testing.T, address string, n int) Generator

// both runs a test with each generator.
func both(t *testing.T, test func(t *testing.T, dial dialer)) {
	for name, d := range dials {
		t.Run(name, func(t *testing.T) {
			test(t, func(t *testing.T, address string, n int) Generator {
				t.Helper()
				g, err := d(t.Context(), address, n)
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(g.Close)
				return g
			})
		})
	}
}

// some sends a number of requests and takes every 200 for a beat.
type some struct {
	left   int
	bodies []string
}

func (s *some) Next(dst []byte) []byte {
	if s.left == 0 {
		return nil
	}
	s.left--
	return append(dst, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nbeat"...)
}

func (s *some) Answered(status int, body []byte, t *Tally) int {
	s.bodies = append(s.bodies, string(body))
	if status != 200 {
		t.Refused(fmt.Sprint(status), 1)
		return 0
	}
	return 1
}

func sources(n int) func(int, int) Source {
	return func(int, int) Source { return &some{left: n} }
}

func TestCountsByStatus(t *testing.T) {
	both(t, func(t *testing.T, dial dialer) {
		address := fakeServer(t, func(c net.Conn, n int) {
			switch n % 4 {
			case 0:
				write(c, "HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\n\r\n")
			case 1:
				write(c, "HTTP/1.1 410 Gone\r\nX: y\r\nCONTENT-LENGTH:  3 \r\n\r\nend")
			default:
				write(c, okAnswer)
			}
		})
		r, err := dial(t, address, 4).Run(t.Context(), Load{Source: sources(10)})
		if err != nil {
			t.Fatal(err)
		}
		want := map[string]int64{"503": 10, "410": 10}
		if r.Requests != 40 || r.Beats != 20 || !maps.Equal(r.NotOK, want) || r.Latency.TotalCount() != 40 {
			t.Errorf("%+v, %d latencies", r.Tally, r.Latency.TotalCount())
		}
	})
}

// Answers come in pieces, several large ones in a row, and none is mistaken for the next.
func TestPartialReads(t *testing.T) {
	both(t, func(t *testing.T, dial dialer) {
		sizes := []int{0, 1, 5000, 3, 70_000, 4096}
		body := func(n int) string { return strings.Repeat(string(rune('a'+n%26)), sizes[n%len(sizes)]) }
		address := fakeServer(t, func(c net.Conn, n int) {
			text := fmt.Sprintf("HTTP/1.1 200 OK\r\nServer: x\r\nContent-Length: %d\r\n\r\n%s", len(body(n)), body(n))
			for len(text) > 0 {
				piece := min(len(text), 1+len(text)/3)
				write(c, text[:piece])
				text = text[piece:]
			}
		})
		s := &some{left: 3 * len(sizes)}
		r, err := dial(t, address, 1).Run(t.Context(), Load{Source: func(int, int) Source { return s }})
		if err != nil || r.Beats != int64(3*len(sizes)) {
			t.Fatalf("%v %+v", err, r.Tally)
		}
		for i, got := range s.bodies {
			if want := body(i + 1); got != want {
				t.Errorf("answer %d has %d bytes, not %d", i+1, len(got), len(want))
			}
		}
	})
}

// Wherever an answer is torn apart, also inside the end of its head, it is put together again.
func TestByteByByte(t *testing.T) {
	server, client := net.Pipe()
	var wg sync.WaitGroup
	wg.Go(func() {
		for range 2 {
			for i := range len(okAnswer) {
				if _, err := server.Write([]byte{okAnswer[i]}); err != nil {
					return
				}
			}
		}
	})
	c := &conn{}
	for range 2 {
		if status, body, err := c.read(client); err != nil || status != 200 || string(body) != "ok" {
			t.Fatal(status, string(body), err)
		}
	}
	wg.Wait()
}

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

func TestAnswersThatAreNone(t *testing.T) {
	both(t, func(t *testing.T, dial dialer) {
		for name, text := range map[string]string{
			"no HTTP":                    "SSH-2.0-OpenSSH\r\n\r\n",
			"without a Content-Length":   "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
			"Content-Length":             "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
			"an answer of more than 64":  "HTTP/1.1 200 OK\r\nContent-Length: 999999999\r\n\r\n",
			"connection closed by the s": "",
		} {
			t.Run(name, func(t *testing.T) {
				address := fakeServer(t, func(c net.Conn, _ int) { write(c, text); _ = c.Close() })
				r, err := dial(t, address, 1).Run(t.Context(), Load{Source: sources(1)})
				if err != nil || r.Beats != 0 || len(r.NotOK) != 1 {
					t.Fatalf("%v %+v", err, r.Tally)
				}
				for why := range r.NotOK {
					if !strings.Contains(why, name) {
						t.Errorf("it is %q", why)
					}
				}
			})
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

// An open loop whose connections all sleep is interrupted too, and says so.
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

// A run that is told to end waits for what is under way and is no error.
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

// fakeClock stands still but for what the server takes and what is slept.
type fakeClock struct{ at atomic.Int64 }

func (c *fakeClock) now() time.Duration { return time.Duration(c.at.Load()) }

func (c *fakeClock) skip(t time.Duration) bool { return c.sleepUntil(context.Background(), t) }

func (c *fakeClock) sleepUntil(ctx context.Context, t time.Duration) bool {
	if t > c.now() {
		c.at.Store(int64(t))
	}
	return ctx.Err() == nil
}

// One stall of a second is one long request to a closed loop. In an open loop everybody who wanted to send meanwhile
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
				Window: 500 * time.Millisecond, clock: clock})
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
		var beats, latencies int64
		for _, w := range open.Windows {
			beats += w.Beats
			latencies += w.Latency.TotalCount()
		}
		if len(open.Windows) != 3 || beats != 150 || latencies != 150 || open.Windows[0].Beats != 0 {
			t.Errorf("%d windows with %d beats, %d latencies", len(open.Windows), beats, latencies)
		}
	})
}

// An open loop tells its own lateness apart from the wait for the answer before.
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

// Requests that are larger than what a socket takes at once arrive whole, and in their order.
func TestLargeRequests(t *testing.T) {
	both(t, func(t *testing.T, dial dialer) {
		address := fakeServer(t, func(c net.Conn, _ int) { write(c, okAnswer) })
		r, err := dial(t, address, 2).Run(t.Context(), Load{Source: func(int, int) Source { return &large{left: 3} }})
		if err != nil || r.Beats != 6 || len(r.NotOK) > 0 {
			t.Errorf("%v %+v", err, r.Tally)
		}
	})
}

// large sends requests of 8 MiB.
type large struct {
	quiet
	left int
}

func (l *large) Next(dst []byte) []byte {
	if l.left == 0 {
		return nil
	}
	l.left--
	const size = 8 << 20
	return append(fmt.Appendf(dst, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n", size), make([]byte, size)...)
}

// What a run left unanswered is nobody's: the next run on the same connections gets its own answers.
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

// Bytes that nobody asked for are no answer to the next request.
func TestUnaskedBytes(t *testing.T) {
	address := fakeServer(t, func(c net.Conn, n int) { write(c, okAnswer+okAnswer) })
	g, err := DialLight(t.Context(), address, 1)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(g.Close)
	if _, pool := g.(*Pool); pool {
		t.Skip("there is no light generator here")
	}
	r, err := g.Run(t.Context(), Load{Source: sources(3)})
	if err != nil || r.NotOK["bytes that nobody asked for"] == 0 {
		t.Errorf("%v %+v", err, r.Tally)
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

// What an open loop could not send by its end it tells.
func TestOverloadIsTold(t *testing.T) {
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

// The loop must not allocate for a request: the generator shares the cores with what it measures.
func TestNoAllocationsPerRequest(t *testing.T) {
	const answers = 2000
	server, client := net.Pipe()
	var wg sync.WaitGroup
	wg.Go(func() {
		buf := make([]byte, 4096)
		for {
			if _, err := server.Read(buf); err != nil {
				return
			}
			if _, err := server.Write([]byte(okAnswer)); err != nil {
				return
			}
		}
	})
	c := &conn{dial: func(context.Context) (net.Conn, error) { return client, nil }}
	if err := c.connect(t.Context()); err != nil {
		t.Fatal(err)
	}
	rec, s := newRecorder(0), &quiet{}
	one := func() {
		c.out = s.Next(c.out[:0])
		status, body, err := c.do()
		if err != nil || s.Answered(status, body, nil) != 1 {
			t.Fatal(status, err)
		}
		rec.record(0, times{done: time.Millisecond}, 1)
	}
	one()
	if n := testing.AllocsPerRun(answers, one); n > 1.01 { // net.Pipe's own
		t.Errorf("%v allocations a request", n)
	}
	c.close()
	_ = server.Close()
	wg.Wait()
}

// quiet is a source that keeps nothing.
type quiet struct{}

func (quiet) Next(dst []byte) []byte { return append(dst, "GET / HTTP/1.1\r\n\r\n"...) }
func (quiet) Answered(status int, _ []byte, _ *Tally) int {
	if status == 200 {
		return 1
	}
	return 0
}
