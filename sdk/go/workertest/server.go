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

// Token authorizes control calls of the server, and registrations of workers.
const Token = "workertest-token"

// Server is a Lubdub server. Its methods may be called concurrently.
type Server struct {
	tb   testing.TB
	hand *clock.Hand // nil: the test does not control the clock
	time clock.Clock

	mu       sync.Mutex
	changed  chan struct{} // closed at the next change
	tasks    map[string]*task
	drained  bool // the machine of all workers is drained
	queued   []*task
	workers  map[string]*fakeWorker
	claims   map[string][]string // the tasks handed out under a claim's id
	requests []Request
	flying   int
	number   int
	interval time.Duration // of workers
	timeout  time.Duration

	down      func() (*http.Response, error) // nil: the server answers
	downSince time.Time
	intercept func(*http.Request, []byte) (status int, body any, ok bool)
	mangle    func(*http.Request) error
}

// Request is a request that the server has received.
type Request struct {
	Method, Path string
	Header       http.Header
	Body         []byte
	At           time.Time
	// Status is the status of the answer; 0 before it.
	Status int
}

// Option configures a server that New creates.
type Option func(*Server)

// MachineTime makes the server use the machine's clock, which in a bubble of testing/synctest is the bubble's.
func MachineTime() Option {
	return func(s *Server) { s.hand, s.time = nil, clock.Real }
}

// WorkerBeats sets how often workers beat, and how long they may be silent. The default is 10 s and 30 s.
func WorkerBeats(interval, timeout time.Duration) Option {
	return func(s *Server) { s.interval, s.timeout = interval, timeout }
}

// New creates a server whose clock starts at the beginning of 2026.
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

// URL returns the server's address, which only the transport of Options knows.
func (s *Server) URL() string { return "http://127.0.0.1:1" }

// Options returns the options for a client of this server: its transport, its clock and its token.
func (s *Server) Options() []client.Option {
	return []client.Option{client.Transport(s), beats.Client.WithClock(s.time).(client.Option), client.Token(Token)}
}

// Now returns the server's time.
func (s *Server) Now() time.Time { return s.time.Now() }

// Advance advances the clock; timers fire in order.
func (s *Server) Advance(d time.Duration) { s.inHand().Advance(d) }

// Jump advances the clock as while a machine sleeps: no timer fires on the way.
func (s *Server) Jump(d time.Duration) { s.inHand().Jump(d) }

func (s *Server) inHand() *clock.Hand {
	if s.hand == nil {
		s.tb.Helper()
		s.tb.Fatal("workertest: the clock of this server is not in the test's hand: leave MachineTime out")
	}
	return s.hand
}

// Until advances the clock from one timer to the next until a condition holds. The test fails if it does not hold within an hour of the
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
		// In small steps, since a goroutine that the machine has not scheduled yet is not visible.
		next, waits := hand.Next()
		if !waits || next > step {
			next = step
		}
		hand.Advance(next)
	}
}

// step is the most that the clock advances at once.
const step = time.Second

// settle lets all goroutines run until no visible work is under way, and reports whether the condition holds.
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

// Requests returns all requests received, in order.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Request(nil), s.requests...)
}

// Count returns how many requests were received at a path.
func (s *Server) Count(path string) int {
	n := 0
	for _, r := range s.Requests() {
		if r.Path == path {
			n++
		}
	}
	return n
}

// Down makes the server refuse connections. Its timeouts are paused, as those of a server whose store is unavailable.
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
		answer(w, http.StatusServiceUnavailable, v1.Error{Error: v1.CodeStoreUnavailable, Message: "the store does not answer; come again"})
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

// Up undoes Down and Unavailable.
func (s *Server) Up() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.down == nil {
		return
	}
	away := s.time.Now().Sub(s.downSince)
	s.down = nil
	for _, t := range s.tasks {
		t.heard = t.heard.Add(away)
	}
	for _, w := range s.workers {
		w.heard = w.heard.Add(away)
	}
}

// Intercept makes f answer requests before the server does if it returns ok. A nil f ends that.
func (s *Server) Intercept(f func(r *http.Request, body []byte) (status int, answer any, ok bool)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.intercept = f
}

// LoseAnswers drops the answers of requests for which f returns an error; the requests are still processed. A nil f ends that.
func (s *Server) LoseAnswers(f func(r *http.Request) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mangle = f
}

// RoundTrip implements http.RoundTripper, so that a client can use the server as its transport.
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
		if status, said, ok := intercept(r, body); ok {
			w := httptest.NewRecorder()
			answer(w, status, said)
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

// change wakes all goroutines that wait for a change. The mutex is held.
func (s *Server) change() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// wait waits for a change, until the time is up or until the caller has gone. It does not count as work under way.
func (s *Server) wait(ctx context.Context, changed <-chan struct{}, t clock.Timer) (more bool) {
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
		return true
	case <-t.C():
		return false
	case <-ctx.Done():
		return false
	}
}
