package load

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"

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

// dials are the generators, which must behave the same.
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
