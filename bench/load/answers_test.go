package load

import (
	"context"
	"fmt"
	"maps"
	"net"
	"strings"
	"sync"
	"testing"
	"time"
)

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

// Wherever a response is split, also inside the end of its head, it is put together again.
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

// Bytes that belong to no request are not the response to the next request.
func TestUnrequestedBytes(t *testing.T) {
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
	if err != nil || r.NotOK["bytes without a request"] == 0 {
		t.Errorf("%v %+v", err, r.Tally)
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
	rec, s := newRecorder(), &quiet{}
	one := func() {
		c.out = s.Next(c.out[:0])
		status, body, err := c.do()
		if err != nil || s.Answered(status, body, nil) != 1 {
			t.Fatal(status, err)
		}
		rec.record(0, times{done: time.Millisecond})
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
