package api

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/valyala/fasthttp"

	"github.com/lubdub-io/lubdub/api/httpapi"
	"github.com/lubdub-io/lubdub/internal/testenv"
	"github.com/lubdub-io/lubdub/tracker/beats"
	"github.com/lubdub-io/lubdub/tracker/holdings"
	"github.com/lubdub-io/lubdub/tracker/model"
)

// hot is a request that is parsed as the server parses it and handled, repeatedly.
type hot struct {
	s   *Server
	raw []byte
	r   bytes.Reader
	br  *bufio.Reader
	ctx fasthttp.RequestCtx
}

func newHot(t testing.TB, path, authorization, body string, configure ...func(*Config)) *hot {
	t.Helper()
	fake := &fakeTracker{}
	cfg := Config{Services: quietServices(fake), Keys: testKeys(t), PublicURL: "http://x", Logger: slog.New(slog.DiscardHandler),
		Registerer: prometheus.NewRegistry(), TokenCacheSize: 1 << 18, MaxConns: 1 << 14, Now: func() time.Time { return fakeTime }}
	for _, f := range configure {
		f(&cfg)
	}
	s, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	h := &hot{s: s}
	h.raw = fmt.Appendf(nil, "POST %s HTTP/1.1\r\nHost: lubdub.test\r\nUser-Agent: worker/1.0\r\n%sContent-Type: "+
		"application/json\r\nContent-Length: %d\r\n\r\n%s", path, authorization, len(body), body)
	h.br = bufio.NewReaderSize(&h.r, 1<<20)
	return h
}

// quietServices are those of a quietTracker.
func quietServices(f *fakeTracker) Services {
	q := quietTracker{f}
	s := q.services()
	s.Beats, s.Holdings = q, q
	return s
}

// quietTracker is a fakeTracker whose beats take no lock.
type quietTracker struct{ *fakeTracker }

func (quietTracker) Beat(b *beats.Beat) { b.At = fakeTime }
func (q quietTracker) Owned(context.Context, model.Scope, string, []holdings.OwnedAttempt) ([]*model.Attempt, error) {
	return quietOwned, nil
}

var quietOwned = []*model.Attempt{testAttempt()}

func (q quietTracker) BeatMany(batch []*beats.Beat) {
	for _, b := range batch {
		q.Beat(b)
	}
}

func (q quietTracker) Submit(beats []*beats.Beat, done func([]*beats.Beat)) {
	q.BeatMany(beats)
	done(beats)
}

func (h *hot) once(t testing.TB) {
	h.r.Reset(h.raw)
	h.br.Reset(&h.r)
	h.ctx.Request.Reset()
	h.ctx.Response.Reset()
	if err := h.ctx.Request.Read(h.br); err != nil {
		t.Fatal(err)
	}
	h.s.Handler(&h.ctx)
	if h.ctx.Response.StatusCode() != 200 {
		t.Fatalf("%d %s", h.ctx.Response.StatusCode(), h.ctx.Response.Body())
	}
}

func singleBeat(t testing.TB, configure ...func(*Config)) *hot {
	token, _, err := httpapi.MintTask(testKeys(t), testAttempt(), model.DefaultTokenTTL, true)
	if err != nil {
		t.Fatal(err)
	}
	return newHot(t, "/v1/tasks/task_1/heartbeat", "Authorization: Bearer "+token+"\r\n", seedHeartbeat, configure...)
}

func manyBeats(t testing.TB, n int) *hot {
	var body strings.Builder
	body.WriteString(`{"heartbeats":[`)
	for i := range n {
		if i > 0 {
			body.WriteByte(',')
		}
		a := testAttempt()
		a.TaskID = fmt.Sprintf("task_%d", i)
		token, _, err := httpapi.MintTask(testKeys(t), a, model.DefaultTokenTTL, true)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&body, `{"taskId":%q,"taskToken":%q,%s`, a.TaskID, token, strings.TrimSpace(seedHeartbeat)[1:])
	}
	body.WriteString(`]}`)
	return newHot(t, "/v1/heartbeats", "", body.String())
}

func TestABeatAllocatesNothing(t *testing.T) {
	if testenv.Race {
		t.Skip("the race detector allocates, and lets pools forget")
	}
	h := singleBeat(t)
	h.once(t)
	if n := testing.AllocsPerRun(1000, func() { h.once(t) }); n != 0 {
		t.Errorf("%v allocations for a beat, want 0", n)
	}
}

// What a batch itself costs must not grow with its beats.
func TestABeatInABatchAllocatesNothing(t *testing.T) {
	if testenv.Race {
		t.Skip("the race detector allocates, and lets pools forget")
	}
	allocs := func(n int) float64 {
		h := manyBeats(t, n)
		h.once(t)
		return testing.AllocsPerRun(100, func() { h.once(t) })
	}
	few, many := allocs(1), allocs(500)
	if many > few {
		t.Errorf("%v allocations for 500 beats, %v for one", many, few)
	}
	if few > 20 {
		t.Errorf("%v allocations for a batch of one", few)
	}
}

func (h *hot) bench(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		h.once(b)
	}
}

func BenchmarkBeat(b *testing.B) { singleBeat(b).bench(b) }

func BenchmarkBeatsOf100(b *testing.B) { manyBeats(b, 100).bench(b) }

// BenchmarkEmpty is what parsing the request and writing the same answer cost without any of ours.
func BenchmarkEmpty(b *testing.B) {
	h := singleBeat(b)
	h.once(b)
	answer := bytes.Clone(h.ctx.Response.Body())
	b.ReportAllocs()
	for b.Loop() {
		h.r.Reset(h.raw)
		h.br.Reset(&h.r)
		h.ctx.Request.Reset()
		h.ctx.Response.Reset()
		if err := h.ctx.Request.Read(h.br); err != nil {
			b.Fatal(err)
		}
		h.ctx.Response.Header.SetContentTypeBytes(httpapi.ContentTypeJSON)
		h.ctx.Response.SetBody(answer)
	}
}
