package conformance

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"time"

	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

// exchange is one request and its answer.
type exchange struct {
	call   string
	task   string   // of the calls of one task
	names  []string // the tasks that it names, as beats do
	worker string
	token  string
	body   []byte
	rule   *Rule // nil: the server answers as it should

	entries []*exchange // of an exchange, which has several completions
	within  *exchange   // the exchange that it is an entry of; nil: it was sent alone

	at         time.Time
	clientDone <-chan struct{} // closed when the client no longer waits
	answered   time.Time       // zero: it was not
	status     int
}

// answered reports whether the runner can know what became of the request.
func (x *exchange) known() bool { return !x.answered.IsZero() }

// reply is an answer; nil: the connection is cut.
type reply struct {
	status     int
	body       any
	retryAfter int
}

// server plays the server in one case.
type server struct {
	*Case
	contract  *contract
	http      *httptest.Server
	authority []byte // that of its certificate, as PEM; nil: it has none

	mu         sync.Mutex
	changed    chan struct{} // closed with each change
	exchanges  []*exchange
	violations []string
	rules      []*Rule
	tasks      map[string]*task
	queue      []string
	workers    map[string]*workerState
	current    string            // the newest worker
	registered map[string]string // by registrationId
	claims     map[string][]string
	control    int // the number of the control token
	interval   int64
	draining   bool
	drained    bool              // its machine is: it registers, and waits
	held       bool              // it may not register
	names      []string          // of registrations
	keys       map[string]string // idempotency keys of creations, by task
	created    map[string]bool   // and whether that was answered
	counted    struct{ completed, failed int64 }
}

func newServer(c *Case) (*server, error) {
	contract, err := theContract()
	if err != nil {
		return nil, err
	}
	s := &server{
		Case: c, contract: contract, changed: make(chan struct{}), tasks: map[string]*task{}, workers: map[string]*workerState{},
		registered: map[string]string{}, claims: map[string][]string{}, control: 1, drained: c.With.Drained,
		keys: map[string]string{}, created: map[string]bool{},
	}
	for _, rule := range c.Answers {
		s.rules = append(s.rules, &rule)
	}
	var ids []string
	for id := range c.Tasks {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	for _, id := range ids {
		t := &task{Task: c.Tasks[id], id: id, attempt: max(1, c.Tasks[id].Attempt), number: 1}
		t.cancelled, t.why = t.Cancelled != "", t.Cancelled
		s.tasks[id] = t
		if !t.Held && c.Mode == "worker" {
			s.queue = append(s.queue, id)
		}
	}
	s.http = httptest.NewUnstartedServer(s)
	if !c.With.TLS {
		s.http.Start()
		return s, nil
	}
	s.http.Config.ErrorLog = log.New(io.Discard, "", 0) // of runners that do not trust it
	if s.http.TLS, s.authority, err = newAuthority(); err != nil {
		return nil, err
	}
	s.http.StartTLS()
	return s, nil
}

func (s *server) controlToken() string { return fmt.Sprintf("control-%d", s.control) }

// ServeHTTP receives a request and answers it by the rules.
func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	x := read(r, body)
	wrong := s.contract.request(r, body)
	s.mu.Lock()
	if wrong != nil {
		s.violate("%s %s is not as openapi.json has it: %v: %.300s", r.Method, r.URL.Path, wrong, body)
	}
	s.headers(r, x)
	s.arrive(x)
	x.rule = s.ruleFor(x)
	s.exchanges = append(s.exchanges, x)
	if x.call == "exchange" {
		s.split(x)
	}
	s.change()
	s.mu.Unlock()
	a := s.respond(r.Context(), x)
	if a == nil || r.Context().Err() != nil {
		s.cut(w, x)
		return
	}
	text, err := json.Marshal(a.body)
	if err == nil {
		err = s.contract.answer(r, a.status, text)
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Request-Id", "req_1")
	if a.retryAfter > 0 {
		w.Header().Set("Retry-After", fmt.Sprint(a.retryAfter))
	}
	w.WriteHeader(a.status)
	s.mu.Lock() // before the answer is out, since the next request may come at once
	defer s.mu.Unlock()
	if err != nil {
		s.violate("the harness's answer to %s is not as openapi.json has it: %v: %.300s", x.call, err, text)
	}
	x.answered, x.status = time.Now(), a.status
	s.depart(x, a)
	s.settle(x, a)
	_, _ = w.Write(text)
	if f, ok := w.(http.Flusher); ok {
		f.Flush()
	}
	s.change()
}

// cut closes the connection instead of an answer. It is noted before, since the next request may come at once.
func (s *server) cut(w http.ResponseWriter, x *exchange) {
	s.mu.Lock()
	clientDone := make(chan struct{})
	close(clientDone)
	x.clientDone = clientDone
	s.change()
	s.mu.Unlock()
	h, ok := w.(http.Hijacker)
	if !ok {
		return
	}
	if c, _, err := h.Hijack(); err == nil {
		if tcp, ok := c.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0)
		}
		_ = c.Close()
	}
}

func (s *server) respond(ctx context.Context, x *exchange) *reply {
	rule := x.rule
	if rule == nil {
		return s.handle(ctx, x)
	}
	defer pause(ctx, rule.DelayMs)
	switch {
	case rule.Cut == "before":
		return nil
	case rule.Cut == "after":
		s.handle(ctx, x)
		return nil
	case rule.Empty:
		return &reply{status: http.StatusOK, body: v1.ClaimResponse{Tasks: []v1.TaskEnvelope{}}}
	case rule.Status != 0:
		code := rule.Error
		if code == "" {
			code = map[int]string{503: v1.CodeStoreUnavailable, 401: v1.CodeUnauthorized, 429: v1.CodeOverloaded}[rule.Status]
		}
		if rule.Status == http.StatusUnauthorized && x.call == "heartbeats" { // each beat brings its own token
			a := v1.HeartbeatsResponse{ServerTime: now()}
			for _, id := range x.names {
				a.Results = append(a.Results, v1.HeartbeatResult{TaskID: id, Status: rule.Status, Error: code, Message: "the case has it so"})
			}
			return ok(a)
		}
		if x.call == "create" && rule.Task != "" { // one creation of many
			s.mu.Lock()
			defer s.mu.Unlock()
			return s.create(x, rule)
		}
		return &reply{rule.Status, v1.Error{
			Error: code, Message: "the case has it so", Reason: rule.Reason, Remedy: rule.Remedy,
		}, rule.RetryAfter}
	}
	return s.handle(ctx, x)
}

func pause(ctx context.Context, ms int64) {
	if ms == 0 {
		return
	}
	select {
	case <-time.After(time.Duration(ms) * time.Millisecond):
	case <-ctx.Done():
	}
}

// ruleFor is the rule for a call; nil: none. The mutex is held.
func (s *server) ruleFor(x *exchange) *Rule {
	for i, rule := range s.rules {
		beats := x.call == "beat" || x.call == "heartbeat" || x.call == "heartbeats"
		if rule.Call != x.call && rule.Call != "any" && !(rule.Call == "beats" && beats) {
			continue
		}
		if rule.Task != "" && rule.Task != x.task && !slices.Contains(x.names, rule.Task) {
			continue
		}
		if rule.Counts && !counts(x) {
			continue
		}
		if rule.Skip > 0 {
			rule.Skip--
			continue
		}
		if rule.Times >= 0 {
			if rule.Times--; rule.Times <= 0 {
				s.rules = slices.Delete(s.rules, i, i+1)
			}
		}
		return rule
	}
	return nil
}

// counts reports whether a request is a worker's heartbeat with deltas.
func counts(x *exchange) bool {
	var r v1.WorkerHeartbeatRequest
	return json.Unmarshal(x.body, &r) == nil && (r.CompletedDelta != 0 || r.FailedDelta != 0)
}

// read parses a request.
func read(r *http.Request, body []byte) *exchange {
	x := &exchange{body: body, at: time.Now(), clientDone: r.Context().Done(),
		token: strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")}
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	at := func(i int) string {
		if i < len(parts) {
			return parts[i]
		}
		return ""
	}
	var named struct {
		Heartbeats, Tasks, Completed []struct{ TaskID string }
	}
	_ = json.Unmarshal(body, &named) // the contract check reports what is wrong with it
	for _, item := range slices.Concat(named.Heartbeats, named.Tasks, named.Completed) {
		x.names = append(x.names, item.TaskID)
	}
	switch at(1) {
	case "workers":
		x.worker, x.call = at(2), at(3)
		if x.worker == "" {
			x.call = "register"
		} else if x.call == "heartbeat" {
			x.call = "beat"
		}
	case "tasks":
		x.task, x.call = at(2), at(3)
		x.names = []string{x.task}
	case "queues":
		x.call = at(3)
	case "tasks:batch":
		x.call = "create"
	default:
		x.call = at(1)
	}
	return x
}

func (s *server) violate(format string, args ...any) {
	s.violations = append(s.violations, fmt.Sprintf(format, args...))
}

func (s *server) change() {
	close(s.changed)
	s.changed = make(chan struct{})
}
