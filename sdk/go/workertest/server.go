package workertest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/sdk/go/client"
	"github.com/lubdub-io/lubdub/sdk/go/internal/beats"
	"github.com/lubdub-io/lubdub/sdk/go/internal/clock"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

// Token is valid for control calls and registrations.
const Token = "workertest-token"

// Server is a Lubdub server. Any number of goroutines may use it.
type Server struct {
	tb   testing.TB
	hand *clock.Hand // nil: the test does not control the clock
	time clock.Clock

	mu       sync.Mutex
	changed  chan struct{} // closed with the next change
	tasks    map[string]*task
	drained  bool // the machine of all workers is drained
	queued   []*task
	workers  map[string]*fakeWorker
	claims   map[string][]string // what was handed out under a claim's id
	requests []Request
	flying   int
	number   int
	interval time.Duration // of workers
	timeout  time.Duration

	down      func() (*http.Response, error) // nil: it answers
	downSince time.Time
	intercept func(*http.Request, []byte) (status int, body any, ok bool)
	mangle    func(*http.Request) error
}

// Request is a request that the server received.
type Request struct {
	Method, Path string
	Header       http.Header
	Body         []byte
	At           time.Time
	// Status is the answer's; 0 before there is one.
	Status int
}

// Option configures New.
type Option func(*Server)

// MachineTime makes the server use the system's clock, which is also that of testing/synctest inside a bubble.
func MachineTime() Option {
	return func(s *Server) { s.hand, s.time = nil, clock.Real }
}

// WorkerBeats sets the heartbeat interval and the heartbeat timeout of workers; by default 10 s and 30 s.
func WorkerBeats(interval, timeout time.Duration) Option {
	return func(s *Server) { s.interval, s.timeout = interval, timeout }
}

// New returns a server whose clock shows the beginning of 2026.
func New(tb testing.TB, opts ...Option) *Server {
	s := &Server{
		tb: tb, hand: clock.NewHand(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)), changed: make(chan struct{}),
		tasks: map[string]*task{}, workers: map[string]*fakeWorker{}, claims: map[string][]string{},
		interval: 10 * time.Second, timeout: 30 * time.Second,
	}
	s.time = s.hand
	for _, opt := range opts {
		opt(s)
	}
	return s
}

// URL is the server's address, which only the transport of Options reaches.
func (s *Server) URL() string { return "http://127.0.0.1:1" }

// Options are the options of a client of this server: its transport, its clock and its token.
func (s *Server) Options() []client.Option {
	return []client.Option{client.Transport(s), beats.Client.WithClock(s.time).(client.Option), client.Token(Token)}
}

// Now is the server's time.
func (s *Server) Now() time.Time { return s.time.Now() }

// Advance moves the clock, and wakes waiters in the order of their times.
func (s *Server) Advance(d time.Duration) { s.inHand().Advance(d) }

// Jump moves the clock as if the host had slept: no waiter is woken on the way.
func (s *Server) Jump(d time.Duration) { s.inHand().Jump(d) }

func (s *Server) inHand() *clock.Hand {
	if s.hand == nil {
		s.tb.Helper()
		s.tb.Fatal("workertest: the clock of this server is not in the test's hand: leave MachineTime out")
	}
	return s.hand
}

// Until moves the clock, from one waiter to the next, until a condition holds. The test fails if it does not hold within an hour of the
// server's time.
func (s *Server) Until(what string, holds func() bool) {
	s.tb.Helper()
	hand := s.inHand()
	for end := hand.Now().Add(time.Hour); ; {
		if s.settle(holds) {
			return
		}
		if hand.Now().After(end) {
			s.tb.Fatalf("workertest: within an hour of the server's time it did not come to this: %s", what)
		}
		// In small steps, since a goroutine that has not been scheduled yet is not visible.
		next, waits := hand.Next()
		if !waits || next > step {
			next = step
		}
		hand.Advance(next)
	}
}

// step is how far the clock moves at once.
const step = time.Second

// settle gives all goroutines time until no visible work is in flight, and reports whether the condition holds.
func (s *Server) settle(holds func() bool) bool {
	for quiet := 0; quiet < 3; {
		if holds() {
			return true
		}
		runtime.Gosched()
		time.Sleep(200 * time.Microsecond) // goroutines run in the machine's time
		if s.busy() {
			quiet = 0
		} else {
			quiet++
		}
	}
	return holds()
}

func (s *Server) busy() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.flying > 0 || s.hand.Unread() > 0
}

// Requests returns all received requests, in order.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Request(nil), s.requests...)
}

// Count returns the number of requests to a path.
func (s *Server) Count(path string) int {
	n := 0
	for _, r := range s.Requests() {
		if r.Path == path {
			n++
		}
	}
	return n
}

// Down makes the server answer nothing: connections are refused. Its timeouts are paused, as when Redis is down.
func (s *Server) Down() {
	s.fall(func() (*http.Response, error) { return nil, errors.New("connection refused") })
}

// Unavailable makes the server answer every request with 503, and with Retry-After unless that is 0.
func (s *Server) Unavailable(retryAfter time.Duration) {
	s.fall(func() (*http.Response, error) {
		w := httptest.NewRecorder()
		if retryAfter > 0 {
			w.Header().Set("Retry-After", fmt.Sprint(int(retryAfter.Seconds())))
		}
		answer(w, http.StatusServiceUnavailable, v1.Error{Error: v1.CodeStoreUnavailable, Message: "Redis is not responding; retry"})
		return w.Result(), nil
	})
}

func (s *Server) fall(how func() (*http.Response, error)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.down == nil {
		s.downSince = s.time.Now()
	}
	s.down = how
}

// Up ends Down and Unavailable.
func (s *Server) Up() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.down == nil {
		return
	}
	away := s.time.Now().Sub(s.downSince)
	s.down = nil
	for _, t := range s.tasks {
		t.lastBeat = t.lastBeat.Add(away)
	}
	for _, w := range s.workers {
		w.lastBeat = w.lastBeat.Add(away)
	}
}

// Intercept lets f answer before the server does, if it returns ok. nil removes it.
func (s *Server) Intercept(f func(r *http.Request, body []byte) (status int, answer any, ok bool)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.intercept = f
}

// LoseAnswers loses the answers of requests for which f returns an error: the server still applies them. nil removes it.
func (s *Server) LoseAnswers(f func(r *http.Request) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mangle = f
}

// RoundTrip implements http.RoundTripper.
func (s *Server) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := readBody(r)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	s.flying++
	n := len(s.requests)
	s.requests = append(s.requests, Request{Method: r.Method, Path: r.URL.Path, Header: r.Header.Clone(), Body: body, At: s.time.Now()})
	down, intercept, mangle := s.down, s.intercept, s.mangle
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		s.flying--
		s.mu.Unlock()
	}()
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	if down != nil {
		return down()
	}
	if intercept != nil {
		if status, reply, ok := intercept(r, body); ok {
			w := httptest.NewRecorder()
			answer(w, status, reply)
			s.note(n, status)
			return w.Result(), nil
		}
	}
	w := httptest.NewRecorder()
	if err := s.serve(r.Context(), w, r, body); err != nil {
		return nil, err
	}
	s.note(n, w.Code)
	if mangle != nil {
		if err := mangle(r); err != nil {
			return nil, err
		}
	}
	return w.Result(), nil
}

func (s *Server) note(n, status int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests[n].Status = status
}

// change wakes waiters. The mutex is held.
func (s *Server) change() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// wait waits for a change, a timeout, or the end of the request. It does not count as work in flight.
func (s *Server) wait(ctx context.Context, changed <-chan struct{}, t clock.Timer) {
	s.mu.Lock()
	s.flying--
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		s.flying++
		s.mu.Unlock()
	}()
	select {
	case <-changed:
	case <-t.C():
	case <-ctx.Done():
	}
}
