package api

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/lubdub-io/lubdub/api/token"
	"github.com/lubdub-io/lubdub/internal/redistest"
	"github.com/lubdub-io/lubdub/internal/shares"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
	"github.com/lubdub-io/lubdub/tracker"
	"github.com/lubdub-io/lubdub/tracker/model"
)

// sse is a client of a stream of events.
type sse struct {
	t      *testing.T
	res    *http.Response
	lines  *bufio.Scanner
	cancel context.CancelFunc
	last   string // id
}

// frame is one block of a stream.
type frame struct{ event, id, retry, data, comment string }

func (f frame) of() (e v1.Event) {
	_ = json.Unmarshal([]byte(f.data), &e)
	return e
}

// stream opens a stream; it must be answered 200.
func (e *env) stream(token, query string, headers ...string) *sse {
	e.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	req, err := http.NewRequestWithContext(ctx, "GET", "http://lubdub.test/v1/events?"+query, nil)
	if err != nil {
		e.t.Fatal(err)
	}
	req.Header.Set("Accept", "text/event-stream")
	req.Header.Set("Authorization", "Bearer "+token)
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	res, err := e.client.Do(req)
	if err != nil {
		e.t.Fatal(err)
	}
	s := &sse{t: e.t, res: res, lines: bufio.NewScanner(res.Body), cancel: cancel}
	e.t.Cleanup(s.leave)
	if h := res.Header; res.StatusCode != 200 || h.Get("Content-Type") != "text/event-stream" || h.Get("X-Accel-Buffering") != "no" ||
		h.Get("Cache-Control") != "no-store" || h.Get("X-Request-Id") == "" {
		e.t.Fatalf("%d %v", res.StatusCode, h)
	}
	if hello := s.block(); hello.id == "" || hello.retry == "" {
		e.t.Fatalf("the stream begins with %+v", hello)
	}
	return s
}

func (s *sse) leave() {
	s.cancel()
	_ = s.res.Body.Close()
}

// block reads the next one; the zero frame is the end.
func (s *sse) block() (f frame) {
	s.t.Helper()
	for s.lines.Scan() {
		line := s.lines.Text()
		name, value, _ := strings.Cut(line, ": ")
		switch name {
		case "":
			if line == "" {
				if f.id != "" {
					s.last = f.id
				}
				return f
			}
			f.comment = value
		case "event":
			f.event = value
		case "id":
			f.id = value
		case "retry":
			f.retry = value
		case "data":
			f.data = value
		default:
			s.t.Fatalf("%q", line)
		}
	}
	return frame{}
}

// next reads the next block that has data.
func (s *sse) next() frame {
	s.t.Helper()
	for {
		if f := s.block(); f.data != "" || f == (frame{}) {
			return f
		}
	}
}

// wantEnd compares the last frame of a stream with the expected one.
func (s *sse) wantEnd(f frame, event, data string) {
	s.t.Helper()
	after, err := strconv.Atoi(f.retry)
	if f.event != event || f.data != data || f.id == "" || err != nil || after < 1000 || after > 5000 {
		s.t.Errorf("the stream ends with %+v, want the event %s with %s, and an id and a time to come again", f, event, data)
	}
	if f := s.next(); f != (frame{}) {
		s.t.Errorf("behind the end comes %+v", f)
	}
}

// A stream sends what happens from now on, once and with the same ids as pages. From any event's id another stream continues without
// gaps, whether an event happened before or since.
func TestContractEventStream(t *testing.T) {
	t.Parallel()
	contract(t, func(t *testing.T, l *live) {
		viewer := l.control(roleViewer)
		l.create(`{"taskId":"before"}`)
		s := l.stream(viewer, "")
		begin := s.last
		for i := range 5 {
			l.create(fmt.Sprintf(`{"taskId":"t%d","runId":"r%d"}`, i, i%2))
		}
		var ids, cursors []string
		for range 10 {
			f := s.next()
			if e := f.of(); f.event != "" || f.id == "" || !strings.HasPrefix(e.Subject, "t") || e.TenantID != "acme" {
				t.Fatalf("%+v", f)
			}
			ids, cursors = append(ids, f.of().ID), append(cursors, f.id)
		}
		for i, from := range append([]string{begin}, cursors...) {
			again := l.stream(viewer, "", "Last-Event-ID", from)
			var got []string
			for range len(ids) - i {
				got = append(got, again.next().of().ID)
			}
			task := fmt.Sprint("more", i)
			l.create(`{"taskId":"` + task + `"}`)
			for range 2 {
				f := again.next()
				if f.of().Subject != task {
					t.Errorf("from %d: received %s, want only events about %s", i, f.data, task)
				}
				ids = append(ids, f.of().ID)
			}
			if want := slices.Sorted(slices.Values(ids[i : len(ids)-2])); !slices.Equal(slices.Sorted(slices.Values(got)), want) {
				t.Errorf("from %d: received %v, want %v", i, got, want)
			}
			again.leave()
		}
		filtered := l.stream(viewer, "runId=r1&after="+begin)
		for range 4 {
			if e := filtered.next().of(); e.RunID != "r1" {
				t.Errorf("%+v", e)
			}
		}
		old := l.stream(viewer, "subject=before&after=2020-01-01T00:00:00Z")
		if e := old.next().of(); e.Type != "task.created" || e.Subject != "before" {
			t.Errorf("%+v", e)
		}
	})
}

// Streams live longer than a response may take. They send keep-alives with their position, also when the filter drops every event.
func TestAStreamStaysOpen(t *testing.T) {
	t.Parallel()
	contract(t, func(t *testing.T, l *live) {
		l.s.events.KeepAlive = 20 * time.Millisecond
		s := l.stream(l.control(roleViewer), "type=worker.late")
		for began := time.Now(); time.Since(began) < 300*time.Millisecond; {
			if f := s.block(); f.comment != "keep-alive" || f.id == "" {
				t.Fatalf("%+v", f)
			}
		}
		first := s.last
		l.create(`{"taskId":"t1"}`)
		for s.last == first {
			if f := s.block(); f.comment != "keep-alive" {
				t.Fatalf("%+v", f)
			}
		}
		if seen := l.page(l.control(roleViewer), "after="+s.last); len(seen.Events) > 1 {
			t.Errorf("the keep-alive's cursor is before %d events", len(seen.Events))
		}
	})
}

// A stream ends with its token, and states that.
func TestAStreamEndsWithItsToken(t *testing.T) {
	t.Parallel()
	contract(t, func(t *testing.T, l *live) {
		l.s.events.KeepAlive = 20 * time.Millisecond
		s := l.stream(l.controlOf(token.Control{Role: roleViewer, TTL: time.Minute}), "")
		other := l.stream(l.control(roleViewer), "")
		l.store.Clock.Advance(2 * time.Minute)
		f := s.next()
		s.wantEnd(f, "end", `{"reason":"token_expired","cursor":"`+f.id+`"}`)
		if f := other.block(); f.comment != "keep-alive" {
			t.Errorf("another stream received %+v", f)
		}
		l.stream(l.control(roleViewer), "", "Last-Event-ID", f.id)
	})
}

// A stream ends with a notice once its token is revoked, by this replica or another one; with a token that was issued since, its client
// continues and misses nothing.
func TestAStreamEndsWhenItsTokenIsRevoked(t *testing.T) {
	t.Parallel()
	contract(t, func(t *testing.T, l *live) {
		other := l.newReplica()
		l.s.events.KeepAlive, other.s.events.KeepAlive = 20*time.Millisecond, 20*time.Millisecond
		viewer := func(name string) string {
			return l.controlOf(token.Control{Role: roleViewer, Subject: name, TTL: time.Hour})
		}
		here, there, bob := l.stream(viewer("ann"), ""), other.stream(viewer("ann"), ""), l.stream(viewer("bob"), "")
		l.do("POST", "/v1/tokens:revoke", l.superAdmin(), `{"subject":"ann"}`).want(200)
		other.refreshRevocations()
		for _, s := range []*sse{here, there} {
			f := s.next()
			s.wantEnd(f, "end", `{"reason":"token_revoked","cursor":"`+f.id+`"}`)
		}
		if f := bob.block(); f.event == "end" {
			t.Errorf("another stream received %+v", f)
		}
		l.create(`{"taskId":"meanwhile"}`)
		l.pass(2 * time.Second)
		for _, s := range []*sse{here, there} {
			if e := l.stream(viewer("ann"), "", "Last-Event-ID", s.last).next().of(); e.Subject != "meanwhile" {
				t.Errorf("the next stream received %+v", e)
			}
		}
	})
}

// A client that reads too slowly is notified, with the id from which to continue; from there it misses nothing.
func TestAStreamThatDoesNotKeepUpEnds(t *testing.T) {
	t.Parallel()
	inMemory(t, func(t *testing.T, l *live) {
		const tasks = 800 // with the reasons of their cancels more than a listener's queue and the connection hold
		viewer, scope := l.control(roleViewer), model.Scope{Tenant: "acme", Workspace: "prod"}
		how := model.CancelRequest{Reason: strings.Repeat("\x01", 512)}
		slow, quick := l.stream(viewer, "type=task.cancel_requested"), l.stream(viewer, "type=task.cancel_requested")
		for i := range tasks {
			id := fmt.Sprint("t", i)
			if _, err := l.tr.Tasks.Create(t.Context(), model.NewTask{Scope: scope, TaskID: id}); err != nil {
				t.Fatal(err)
			}
			if _, err := l.tr.Tasks.Cancel(t.Context(), scope, id, how); err != nil {
				t.Fatal(err)
			}
			if i%50 == 49 {
				for range 50 {
					quick.next()
				}
			}
		}
		received := map[string]bool{}
		f := slow.next()
		for ; f.event == "" && f.data != ""; f = slow.next() {
			received[f.of().Subject] = true
		}
		slow.wantEnd(f, "lagged", `{"cursor":"`+f.id+`"}`)
		for again := l.stream(viewer, "type=task.cancel_requested", "Last-Event-ID", f.id); len(received) < tasks; {
			subject := again.next().of().Subject
			if received[subject] {
				t.Fatalf("the event of %s is delivered twice", subject)
			}
			received[subject] = true
		}
	})
}

// A replica that stops notifies its streams, and accepts no new ones.
func TestStreamsEndWhenTheReplicaStops(t *testing.T) {
	t.Parallel()
	contract(t, func(t *testing.T, l *live) {
		var streams []*sse
		for range 8 {
			streams = append(streams, l.stream(l.control(roleViewer), ""))
		}
		l.s.stop()
		when := map[string]bool{}
		for _, s := range streams {
			f := s.next()
			s.wantEnd(f, "end", `{"reason":"draining","cursor":"`+f.id+`"}`)
			when[f.retry] = true
		}
		if len(when) == 1 {
			t.Errorf("all clients were told to reconnect after %v ms", when)
		}
		l.do("GET", "/v1/events", l.control(roleViewer), "", "Accept", "text/event-stream").refused(503, v1.CodeOverloaded)
	})
}

// Streams are bounded; one more is refused until another one has ended.
func TestStreamsAreBounded(t *testing.T) {
	t.Parallel()
	contract(t, func(t *testing.T, l *live) {
		l.s.events.Streams, l.s.events.KeepAlive = shares.NewPool(2), 20*time.Millisecond
		viewer := l.control(roleViewer)
		first := l.stream(viewer, "")
		l.stream(l.controlFor(roleViewer, "other", "prod"), "")
		r := l.do("GET", "/v1/events", viewer, "", "Accept", "text/event-stream")
		if r.refused(503, v1.CodeOverloaded); r.header.Get("Retry-After") == "" || !strings.Contains(r.body, "max-connections") {
			t.Errorf("%v %s", r.header, r.body)
		}
		l.do("GET", "/v1/events", viewer, "").want(200)
		head, err := http.NewRequest("HEAD", "http://lubdub.test/v1/events", nil)
		if err != nil {
			t.Fatal(err)
		}
		head.Header.Set("Accept", "text/event-stream")
		head.Header.Set("Authorization", "Bearer "+viewer)
		if res, err := l.client.Do(head); err != nil || res.StatusCode != 200 || res.Header.Get("Content-Type") != "text/event-stream" {
			t.Errorf("HEAD: %+v, %v", res, err)
		}
		first.leave()
		until(t, func() bool { return l.s.events.Streams.Used() <= 1 }, func() string { return "the stream that was left is still open" })
		l.stream(viewer, "")
	})
}

func TestStreamsRefuseBadInput(t *testing.T) {
	t.Parallel()
	contract(t, func(t *testing.T, l *live) {
		viewer := l.control(roleViewer)
		get := func(query string, headers ...string) *answer {
			return l.do("GET", "/v1/events?"+query, viewer, "", append(headers, "Accept", "text/event-stream")...)
		}
		if r := get("", "Last-Event-ID", "x").refused(400, v1.CodeInvalidCursor); r.Field != "Last-Event-ID" {
			t.Errorf("%+v", r)
		}
		get("after=x").refused(400, v1.CodeInvalidCursor)
		get("after=").refused(400, v1.CodeInvalidRequest)
		get("order=asc").refused(400, v1.CodeInvalidRequest)
		get("type=nosuch").refused(400, v1.CodeInvalidRequest)
		if n := l.s.events.Streams.Used(); n != 0 {
			t.Errorf("%d places are taken by streams that did not come to be", n)
		}
	})
}

// Connections that are cut without notice leave nothing behind: no slot, no goroutine, no reader.
func TestClientsThatAreCutOffLeaveNothing(t *testing.T) {
	const clients = 1000
	before := goleak.IgnoreCurrent()
	t.Run("cut off", func(t *testing.T) {
		s := redistest.Miniredis(t)
		o := tracker.Options{RedisURL: s.URL, Scripts: s.Scripts, Shards: 2, Logger: slog.New(slog.DiscardHandler), RedisTimeout: time.Minute}
		tr, err := tracker.Open(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = tr.Close(context.Background()) })
		e := newEnv(t, func(c *Config) {
			// No stream may be cut for a write that its client does not read before all have begun.
			c.Services, c.Now, c.WriteTimeout, c.MaxStreams = ServicesOf(tr), s.Clock.Now, time.Minute, 2*clients
		})
		e.readClock = s.Clock.Now
		e.s.events.KeepAlive = 50 * time.Millisecond
		viewer := e.control(roleViewer)
		var conns []net.Conn
		hangUp := func() {
			for _, c := range conns {
				_ = c.Close()
			}
		}
		t.Cleanup(hangUp) // also after a failure: a pipe that is not read would hold up the server's shutdown
		for range clients {
			c, err := e.ln.Dial()
			if err != nil {
				t.Fatal(err)
			}
			conns = append(conns, c)
			if _, err := fmt.Fprintf(c, "GET /v1/events HTTP/1.1\r\nHost: x\r\nAccept: text/event-stream\r\nAuthorization: Bearer %s\r\n\r\n",
				viewer); err != nil {
				t.Fatal(err)
			}
			// One after the other: more requests at once than the server admits would be refused.
			if status, err := bufio.NewReader(c).ReadString('\n'); err != nil || !strings.Contains(status, " 200 ") {
				t.Fatalf("a stream was answered %q, %v", status, err)
			}
		}
		if n := e.s.events.Streams.Used(); n != clients {
			t.Fatalf("%d of %d streams are open", n, clients)
		}
		hangUp()
		until(t, func() bool { return e.s.events.Streams.Used() == 0 }, func() string {
			return fmt.Sprintf("%d streams are still open", e.s.events.Streams.Used())
		})
	})
	if err := goleak.Find(before, goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.(*workerPool).Start.func2"),
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.updateServerDate.func1")); err != nil {
		t.Error(err)
	}
}
