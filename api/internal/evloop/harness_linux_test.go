package evloop

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/lubdub-io/lubdub/api/internal/conn"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// The tests' protocol: a request is a line, and some have a body.
//
//	e<text>        is answered <text>, once it has been to the backend
//	n<text>        is answered <text> at once
//	b<n>:<n bytes> is answered with those bytes, once they have been to the backend
//	g<n>           is answered with n bytes, once it has been to the backend
//	m<n>           is answered with n bytes at once
//	h<text>        is handed over, and answered <text>
//	o<text>        the same as soon as it begins
//	p<text>        panics
//	t<text>        panics when its turn ends, and is answered when the test releases it
//	l<text>        the same when it comes back from the backend
//	w<text>        is answered <text> when the test releases it
//
// Each answer is one line.
type echo struct {
	s    *server
	l    *Loop
	turn []*echoRequest
}

type echoRequest struct {
	c    *Conn
	text string
	kind byte
}

func (h *echo) Read(c *Conn, unread []byte) (int, Next) {
	if unread[0] == 'b' {
		head, body, ok := bytes.Cut(unread, []byte(":"))
		if !ok {
			return 0, More
		}
		n, _ := strconv.Atoi(string(head[1:]))
		if whole := len(head) + 1 + n; len(body) < n {
			return whole, More
		}
		return len(head) + 1 + n, h.begin(c, string(body[:n]))
	}
	if unread[0] == 'o' {
		return 0, HandOff
	}
	line, _, ok := bytes.Cut(unread, []byte("\n"))
	if !ok {
		return 0, More
	}
	text := string(line[1:])
	switch line[0] {
	case 'h':
		return 0, HandOff
	case 'p':
		panic(text)
	case 'n':
		c.Answer([]byte(text+"\n"), h.l.Stopping())
	case 'm':
		n, _ := strconv.Atoi(text)
		c.Answer([]byte(strings.Repeat("m", n)+"\n"), h.l.Stopping())
	case 'g':
		n, _ := strconv.Atoi(text)
		h.begin(c, strings.Repeat("g", n))
	case 'w':
		h.s.held <- &echoRequest{c: c, text: text}
	default:
		h.begin(c, text)
		h.turn[len(h.turn)-1].kind = line[0]
	}
	return len(line) + 1, Begun
}

func (h *echo) begin(c *Conn, text string) Next {
	h.turn = append(h.turn, &echoRequest{c: c, text: text})
	return Begun
}

// Turn sends the requests of a turn to the backend, which answers all with one Post.
func (h *echo) Turn() {
	if turn := h.turn; len(turn) > 0 {
		h.turn = nil
		if turn[0].kind == 't' {
			h.s.held <- turn[0]
			panic(turn[0].text)
		}
		go h.l.Post(turn)
	}
}

func (h *echo) Receive(done any) {
	switch done := done.(type) {
	case []*echoRequest:
		for _, r := range done {
			if r.kind == 'l' {
				h.s.held <- r
				panic(r.text)
			}
			r.c.AnswerThen([]byte(r.text+"\n"), h.l.Stopping(), func() { h.s.sent.Add(1) })
		}
	case func(*Loop):
		done(h.l)
	}
}

// server is a front with the tests' protocol.
type server struct {
	*Front
	t         testing.TB
	watch     *conn.Watch
	addr      string
	held      chan *echoRequest
	sent      atomic.Int64
	panics    atomic.Int64
	handedOff atomic.Int64
	starve    atomic.Int64
	reject    atomic.Int64

	readTimeout time.Duration
}

// serve starts a server, as changed, which ends with the test.
func serve(t testing.TB, change ...func(*Config)) *server {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &server{t: t, held: make(chan *echoRequest, 1000), addr: ln.Addr().String()}
	cfg := Config{
		Loops: 1, Handler: func(l *Loop) Handler { return &echo{s: s, l: l} }, Serve: s.serveHandedOff,
		ShareFrom:   1,
		ReadTimeout: time.Minute, WriteTimeout: time.Minute, IdleTimeout: time.Minute, MaxRequest: 1 << 20,
		Bound: conn.Bound{
			Max: 1 << 20, Rejected: func() { s.reject.Add(1) }, Starved: func(error) { s.starve.Add(1) },
			Refuse: func(w io.Writer) { _, _ = io.WriteString(w, "full\n") },
		},
		Panicked: func(any, []byte) { s.panics.Add(1) },
	}
	for _, f := range change {
		f(&cfg)
	}
	cfg.Watch = conn.NewWatch(cfg.ReadTimeout, cfg.WriteTimeout, cfg.IdleTimeout, nil)
	s.watch, s.readTimeout = cfg.Watch, cfg.ReadTimeout
	if s.Front, err = Listen(ln.(*net.TCPListener), cfg); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.end)
	return s
}

// end stops the server, and waits until all connections have ended.
func (s *server) end() {
	_ = s.Gate().Close()
	over := make(chan struct{})
	defer close(over)
	go s.watch.StopReading(over)
	_, _ = s.Gate().Accept()
}

// serveHandedOff does what fasthttp does: it reads a request, answers, and reports that it is between two requests.
func (s *server) serveHandedOff(c net.Conn) {
	defer c.Close()
	in := bufio.NewReader(c)
	for {
		_ = c.SetReadDeadline(time.Now().Add(s.readTimeout))
		line, err := in.ReadString('\n')
		if err != nil {
			if err != io.EOF {
				_, _ = fmt.Fprintf(c, "sorry %s%v\n", line, err)
			}
			return
		}
		s.handedOff.Add(1)
		if _, err := io.WriteString(c, line[1:]); err != nil {
			return
		}
		conn.Idle(c, true)
		if _, err := in.Peek(1); err != nil {
			return
		}
		conn.Idle(c, false)
	}
}

// client is a connection of the test's.
type client struct {
	t testing.TB
	*net.TCPConn
	in *bufio.Reader
}

// patience is only waited for when something is broken.
const patience = time.Minute

// next is the next request that waits until the test answers it.
func (s *server) next() *echoRequest {
	s.t.Helper()
	select {
	case r := <-s.held:
		return r
	case <-time.After(patience):
		s.t.Fatalf("no request has begun in %v", patience)
		return nil
	}
}

func (s *server) dial() *client {
	s.t.Helper()
	c, err := net.Dial("tcp", s.addr)
	if err != nil {
		s.t.Fatal(err)
	}
	_ = c.SetDeadline(time.Now().Add(patience))
	s.t.Cleanup(func() { _ = c.Close() })
	return &client{s.t, c.(*net.TCPConn), bufio.NewReader(c)}
}

func (c *client) send(text string) *client {
	c.t.Helper()
	if _, err := io.WriteString(c, text); err != nil {
		c.t.Fatal(err)
	}
	return c
}

// wants reads answers, and fails the test unless they are these.
func (c *client) wants(lines ...string) *client {
	c.t.Helper()
	for _, want := range lines {
		got, err := c.in.ReadString('\n')
		if err != nil || got != want+"\n" {
			c.t.Fatalf("got %.100q %v, want %.100q", got, err, want)
		}
	}
	return c
}

// ends waits until the server has closed the connection, and gives what came before.
func (c *client) ends() string {
	c.t.Helper()
	b, err := io.ReadAll(c.in)
	if e, ok := err.(net.Error); ok && e.Timeout() {
		c.t.Fatalf("the connection is still open and sent %q", b)
	}
	return string(b)
}

// until waits for what another goroutine brings about.
func until(t testing.TB, good func() bool, what func() string) {
	t.Helper()
	for deadline := time.Now().Add(patience); !good(); runtime.Gosched() {
		if time.Now().After(deadline) {
			t.Fatal(what())
		}
	}
}

func (s *server) opens(n int) {
	s.t.Helper()
	until(s.t, func() bool { open, _ := s.watch.Count(); return open == n }, func() string {
		open, leaving := s.watch.Count()
		return fmt.Sprintf("%d connections are open, %d of them leave; want %d", open, leaving, n)
	})
}
