package api

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/lubdub-io/lubdub/api/httpapi"
	"github.com/lubdub-io/lubdub/api/token"
	"github.com/lubdub-io/lubdub/tracker/beats"
	"github.com/lubdub-io/lubdub/tracker/holdings"
	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/workers"
)

// twins are two servers with the same content, one with the event loop and one without: whatever comes, they answer the same, and
// the same comes of it.
type twins struct {
	loop, plain *twin
	tokens      map[string]string // by task; and the worker's and an admin's
}

type twin struct {
	s    *Server
	seen *recorder
	reg  *prometheus.Registry
	addr string
	ping func(testing.TB) // returns when a loop has read what was sent before
}

// recorder is a tracker that records the effects of requests. A beat's result depends on its task.
type recorder struct {
	*fakeTracker
	mu   sync.Mutex
	acts []string
}

func (r *recorder) services() Services {
	s := r.fakeTracker.services()
	s.Beats, s.Holdings, s.Workers = r, r, recordedWorkers{fakeWorkers{r.fakeTracker}, r}
	return s
}

func (r *recorder) note(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.acts = append(r.acts, fmt.Sprintf(format, args...))
}

func (r *recorder) take() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	acts := r.acts
	r.acts = nil
	return acts
}

var results = map[string]beats.Beat{
	"task_1":    {},
	"cancelled": {Cancel: &model.Cancel{Reason: "enough \"of\" it"}},
	"delivered": {Cancel: &model.Cancel{Delivered: true}},
	"expired": {Err: &model.Error{Code: model.Expired, State: model.Failed, Reason: model.HeartbeatTimeout,
		Message: "task exceeded heartbeat timeout"}},
	"older": {Err: &model.Error{Code: model.AttemptMismatch, Expected: 2, Received: 1, Message: "attempt 2 is current"}},
	"over":  {Err: &model.Error{Code: model.AlreadyTerminal, State: model.Succeeded, Message: "the attempt is already over"}},
	"full":  {Err: &model.Error{Code: model.Overloaded, RetryAfter: 3 * time.Second, Message: "8 beats wait"}},
	"away":  {Err: &model.Error{Code: model.Unavailable, Cause: io.ErrUnexpectedEOF}},
}

func (r *recorder) Beat(b *beats.Beat) {
	result := results[b.Attempt.TaskID]
	b.At, b.Cancel, b.Err = fakeTime, result.Cancel, result.Err
	if b.Attempt.TaskID != "ping" {
		r.note("beat %s/%s/%d %q", b.Attempt.Scope.Tenant, b.Attempt.TaskID, b.Attempt.Number, strings.Clone(b.Report))
	}
}

func (r *recorder) BeatMany(batch []*beats.Beat) {
	for _, b := range batch {
		r.Beat(b)
	}
}

// Submit completes half of the beats in a separate callback.
func (r *recorder) Submit(batch []*beats.Beat, done func([]*beats.Beat)) {
	rest := append([]*beats.Beat(nil), batch[len(batch)/2:]...)
	r.BeatMany(batch)
	done(batch[:len(batch)/2])
	go done(rest)
}

func (r *recorder) CancelDelivered(a *model.Attempt) { r.note("delivered %s", a.TaskID) }

func (r *recorder) Owned(_ context.Context, _ model.Scope, worker string, names []holdings.OwnedAttempt) ([]*model.Attempt, error) {
	found := make([]*model.Attempt, len(names))
	for i, n := range names {
		if a := testAttempt(); n.TaskID == a.TaskID {
			found[i] = a
		}
	}
	return found, nil
}

// recordedWorkers are its workers.
type recordedWorkers struct {
	fakeWorkers
	r *recorder
}

func (w recordedWorkers) Beat(
	ctx context.Context, scope model.Scope, id string, b workers.WorkerBeat,
) (*holdings.WorkerBeatResponse, error) {
	w.r.note("worker %s %v %v", id, b.Active != nil, b.Inventory)
	return w.fakeWorkers.Beat(ctx, scope, id, b)
}

func newTwin(t testing.TB, configure func(*Config)) *twin {
	t.Helper()
	w := &twin{seen: &recorder{fakeTracker: &fakeTracker{}}, reg: prometheus.NewRegistry()}
	cfg := Config{
		Services: w.seen.services(), Keys: testKeys(t), PublicURL: "http://x", Logger: slog.New(slog.DiscardHandler), Registerer: w.reg,
		TokenCacheSize: 1024, MaxConns: 1 << 14, Now: func() time.Time { return fakeTime }, shareFrom: 1,
	}
	configure(&cfg)
	var err error
	if w.s, err = New(cfg); err != nil {
		t.Fatal(err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w.addr = ln.Addr().String()
	served := make(chan error, 1)
	go func() { served <- w.s.Serve(ln) }()
	t.Cleanup(func() {
		if err := w.s.Shutdown(t.Context()); err != nil && t.Context().Err() == nil {
			t.Error(err)
		}
		<-served
	})
	return w
}

// newTwins starts two servers that know the tokens of all tasks.
func newTwins(t testing.TB, configure ...func(*Config)) *twins {
	t.Helper()
	both := func(c *Config) {
		for _, f := range configure {
			f(c)
		}
	}
	w := &twins{loop: newTwin(t, both), plain: newTwin(t, func(c *Config) { c.NoEventLoop = true; both(c) }), tokens: map[string]string{}}
	for _, task := range []string{"task_1", "cancelled", "delivered", "expired", "older", "over", "full", "away", "ping"} {
		a := testAttempt()
		a.TaskID = task
		text, _, err := httpapi.MintTask(w.loop.s.cfg.Keys, a, time.Hour, true)
		if err != nil {
			t.Fatal(err)
		}
		w.tokens[task] = text
	}
	worker, _, err := httpapi.MintWorker(w.loop.s.cfg.Keys, testAttempt().Scope, &workers.Registered{WorkerID: fakeWorkerID, Queue: "q"},
		fakeTime)
	if err != nil {
		t.Fatal(err)
	}
	admin, _, err := w.loop.s.cfg.Keys.MintControl(token.Control{Role: roleAdmin, Tenant: "acme", Workspace: "prod", TTL: time.Hour}, fakeTime)
	if err != nil {
		t.Fatal(err)
	}
	w.tokens["worker"], w.tokens["admin"] = worker, admin
	for task := range results {
		w.exchange(t, w.beat(task, `{"attempt":1}`))
	}
	for _, one := range []*twin{w.loop, w.plain} {
		pinger := dialTo(t, one.addr)
		ping, answer := []byte(w.beat("ping", `{"attempt":1}`)), make([]byte, 4096)
		one.ping = func(t testing.TB) {
			_ = pinger.SetDeadline(time.Now().Add(patience))
			if _, err := pinger.Write(ping); err != nil {
				t.Fatal(err)
			}
			if _, err := pinger.Read(answer); err != nil {
				t.Fatal(err)
			}
		}
		one.ping(t)
	}
	return w
}

// beat is a heartbeat of a task in the shape that clients send.
func (w *twins) beat(task, body string, headers ...string) string {
	return w.post("/v1/tasks/"+task+"/heartbeat", w.tokens[task], body, headers...)
}

func (w *twins) post(path, token, body string, headers ...string) string {
	more := strings.Join(append(headers, ""), "\r\n")
	return fmt.Sprintf("POST %s HTTP/1.1\r\nHost: lubdub.test\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\n%s"+
		"Content-Length: %d\r\n\r\n%s", path, token, more, len(body), body)
}

func dialTo(t testing.TB, addr string) *net.TCPConn {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	if err := c.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	return c.(*net.TCPConn)
}

// exchange sends parts of a stream, and gives what comes until the server closes the connection, and what has come of it.
func (w *twin) exchange(t testing.TB, parts ...string) (answers string, acts []string) {
	t.Helper()
	c := dialTo(t, w.addr)
	for i, p := range parts {
		if i > 0 {
			w.ping(t)
		}
		if _, err := io.WriteString(c, p); err != nil {
			break // it was refused, and that can be read
		}
	}
	_ = c.CloseWrite()
	b, _ := io.ReadAll(c) // a server that closes before it has read all resets
	_ = c.Close()
	return normalized(string(b)), w.seen.take()
}

var (
	dates = regexp.MustCompile(`Date: [^\r]*`)
	ids   = regexp.MustCompile(`req_[0-9A-V]{10}-[0-9a-z]+`)
)

// Returns answers without what differs from server to server.
func normalized(answers string) string {
	return ids.ReplaceAllString(dates.ReplaceAllString(answers, "Date: now"), "req_x")
}

// exchange sends the stream to both, and compares.
func (w *twins) exchange(t testing.TB, parts ...string) string {
	t.Helper()
	want, wanted := w.plain.exchange(t, parts...)
	got, acts := w.loop.exchange(t, parts...)
	if got != want {
		t.Errorf("%q\nis answered with the loop\n%s\nand without it\n%s", clipped(parts), got, want)
	}
	if fmt.Sprint(acts) != fmt.Sprint(wanted) {
		t.Errorf("%q\nwith the loop does\n%q\nand without it\n%q", clipped(parts), acts, wanted)
	}
	return got
}

func clipped(parts []string) []string {
	short := make([]string, len(parts))
	for i, p := range parts {
		short[i] = p[:min(len(p), 2000)]
	}
	return short
}
