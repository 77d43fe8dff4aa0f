package api

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/api/httpapi"
	"github.com/lubdub-io/lubdub/internal/testenv"
	"github.com/lubdub-io/lubdub/tracker/beats"
	"github.com/lubdub-io/lubdub/tracker/model"
)

// streams are what clients may send on a connection. Where the loop answers, all is beats.
func (w *twins) streams(t *testing.T) map[string]string {
	ok := w.beat("task_1", seedHeartbeat)
	s := map[string]string{
		"a beat":         ok,
		"beats in a row": ok + w.beat("cancelled", `{"attempt":1}`) + w.beat("delivered", `{"attempt":1}`) + ok,
		"every result":   "",
		"ids of requests": w.beat("task_1", `{"attempt":1}`, "X-Request-ID: mine-1") +
			w.beat("expired", `{"attempt":1}`, "X-Request-ID: \"odd\""),
		"a beat and a list":  ok + "GET /v1/tasks HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + w.tokens["admin"] + "\r\n\r\n" + ok,
		"a beat that closes": ok + strings.Replace(ok, "Host:", "Connection: close\r\nHost:", 1) + ok,
		"part of a beat":     ok + ok[:len(ok)-5],
		"part of a head":     ok[:100],
		"nothing":            "",
		"garbage":            "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
		"garbage later":      ok + "\r\n\r\n\x00\x01\x02" + ok,
		"another's token":    strings.Replace(ok, "/task_1/", "/delivered/", 1) + ok,
		"another attempt's":  w.beat("task_1", `{"attempt":2}`) + ok,
		"a worker's token":   w.post("/v1/tasks/task_1/heartbeat", w.tokens["worker"], `{"attempt":1}`) + ok,
		"not its worker's":   w.post("/v1/tasks/delivered/heartbeat", w.tokens["worker"], `{"attempt":1}`) + ok,
		"an admin's token":   w.post("/v1/tasks/task_1/heartbeat", w.tokens["admin"], `{"attempt":1}`) + ok,
		"no token":           "POST /v1/tasks/task_1/heartbeat HTTP/1.1\r\nHost: x\r\nContent-Length: 13\r\n\r\n{\"attempt\":1}" + ok,
		"a broken token":     strings.Replace(ok, "Bearer ey", "Bearer eY", 1) + ok,
		"a worker's beats": w.post("/v1/workers/"+fakeWorkerID+"/heartbeat", w.tokens["worker"], `{"activeCount":3,"tasks":[{"taskId":"t",`+
			`"attempt":1,"progressPct":10}]}`) + ok + w.post("/v1/workers/other/heartbeat", w.tokens["worker"], `{}`),
		"a batch":        w.post("/v1/heartbeats", w.tokens["worker"], w.batch(3)) + ok,
		"chunks":         ok + w.chunked(`{"attempt":1}`) + ok,
		"an expectation": strings.Replace(ok, "Host:", "Expect: 100-continue\r\nHost:", 1),
		"an odd type":    strings.Replace(ok, "application/json", "text/plain", 1) + ok,
		"encoded":        strings.Replace(ok, "/task_1/", "/task%5f1/", 1) + ok,
		"no body":        w.beat("task_1", "") + ok,
		"too large":      strings.Replace(ok, "Content-Length: ", "Content-Length: 99", 1),
	}
	for task := range results {
		s["every result"] += w.beat(task, `{"attempt":1,"heartbeatAt":"2025-01-15T10:05:00Z","message":"<&\u00fc \ud83d\ude00"}`)
	}
	for i, body := range []string{
		`{}`, `[]`, `{"attempt":1`, `{"attempt":0}`, `{"attempt":1,"attempt":1}`, `{"attempt":1,"workerId":"-"}`, "\xff",
		`{"attempt":1,"progressPct":101}`, `{"attempt":1,"other":[{"x":null}]} `, `{"attempt":1}x`, strings.Repeat("[", 500),
	} {
		s[fmt.Sprintf("body %d", i)] = w.beat("task_1", body) + ok
	}
	e := &env{t: t, keys: w.loop.s.cfg.Keys, clock: fakeTime, fake: &fakeTracker{}}
	for _, c := range traps {
		if !strings.Contains(c.trap, "timeouts") && !strings.Contains(c.trap, "panic") {
			s["trap: "+c.trap] = strings.ReplaceAll(c.request(e), "\n", "\r\n")
		}
	}
	return s
}

// batch returns the body of a batch of n beats with every result.
func (w *twins) batch(n int) string {
	tasks := []string{"task_1", "cancelled", "expired", "delivered", "away", "older"}
	items := make([]string, n)
	for i := range items {
		task := tasks[i%len(tasks)]
		items[i] = fmt.Sprintf(`{"taskId":%q,"attempt":%d,"taskToken":%q,"message":"number %d"}`, task, 1+i/100%2, w.tokens[task], i)
	}
	return `{"heartbeats":[` + strings.Join(items, ",") + `]}`
}

func (w *twins) chunked(body string) string {
	return fmt.Sprintf("POST /v1/tasks/task_1/heartbeat HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nTransfer-Encoding: chunked\r\n\r\n"+
		"%x\r\n%s\r\n0\r\n\r\n", w.tokens["task_1"], len(body), body)
}

// For any bytes, split anywhere, the loop answers byte for byte as fasthttp does, with the same effects.
func TestTheLoopAnswersAsFasthttpDoes(t *testing.T) {
	t.Parallel()
	w := newTwins(t)
	for name, s := range w.streams(t) {
		t.Run(name, func(t *testing.T) {
			w.exchange(t, s)
			cuts := 150
			if testenv.Race { // fifteen times slower; `make test` has the other cuts
				cuts = 30
			}
			step := 1 + len(s)/cuts
			for cut := 1; cut < len(s) && !t.Failed(); cut += step {
				w.exchange(t, s[:cut], s[cut:])
			}
		})
	}
	t.Run("what is counted", func(t *testing.T) { w.counted(t) })
	t.Run("a batch of 1,000", func(t *testing.T) {
		s := w.post("/v1/heartbeats", w.tokens["worker"], w.batch(1000)) + w.beat("task_1", seedHeartbeat)
		w.exchange(t, s)
		for cut := 1; cut < len(s) && !t.Failed(); cut += len(s) / 7 {
			w.exchange(t, s[:cut], s[cut:])
		}
	})
}

// counted compares what both have counted.
func (w *twins) counted(t *testing.T) {
	got, want := w.loop.counters(t), w.plain.counters(t)
	for name, n := range want {
		if got[name] != n {
			t.Errorf("%s is %v with the loop and %v without it", name, got[name], n)
		}
	}
	if accepted, underWay := want["lubdub_http_beats_accepted_total task"], w.loop.s.api.InFlight(); accepted == 0 || underWay != 0 {
		t.Errorf("%v heartbeats were accepted, %d are in flight", accepted, underWay)
	}
}

func (w *twin) counters(t *testing.T) map[string]float64 {
	t.Helper()
	families, err := w.reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]float64{}
	for _, f := range families {
		for _, m := range f.Metric {
			name := f.GetName()
			for _, l := range m.Label {
				name += " " + l.GetValue()
			}
			if m.Counter != nil {
				all[name] = m.Counter.GetValue()
			}
			if m.Histogram != nil {
				all[name] = float64(m.Histogram.GetSampleCount())
			}
		}
	}
	return all
}

// A client that sends far ahead before it reads receives all its answers, in order; each cancel is delivered once, and no other
// client waits.
func TestAClientThatReadsLateReceivesAllAnswersInOrder(t *testing.T) {
	t.Parallel()
	w := newTwins(t)
	const n = 20000
	c := dialTo(t, w.loop.addr)
	if err := c.SetReadBuffer(256 << 10); err != nil { // much less stalls TCP on loopback, whose segments are large
		t.Fatal(err)
	}
	go func() {
		for i := range n {
			task := []string{"task_1", "cancelled"}[i%2]
			if _, err := io.WriteString(c, w.beat(task, `{"attempt":1}`, fmt.Sprintf("X-Request-ID: r%d", i))); err != nil {
				t.Error(err)
				return
			}
		}
	}()
	until(t, func() bool { return w.loop.s.api.Metrics.AcceptedBeats() > 1000 }, func() string { return "it is not read at all" })
	w.loop.ping(t)
	in := bufio.NewReader(c)
	for i := range n {
		res, err := http.ReadResponse(in, nil)
		if err != nil {
			t.Fatalf("answer %d: %v", i, err)
		}
		_, _ = io.Copy(io.Discard, res.Body)
		if id := res.Header.Get("X-Request-Id"); res.StatusCode != 200 || id != fmt.Sprintf("r%d", i) {
			t.Fatalf("answer %d: %s of %s", i, res.Status, id)
		}
	}
	delivered := 0 // each is reported after its answer has been sent
	until(t, func() bool {
		for _, act := range w.loop.seen.take() {
			if act == "delivered cancelled" {
				delivered++
			}
		}
		return delivered >= n/2
	}, func() string { return fmt.Sprintf("%d deliveries", delivered) })
	if delivered != n/2 {
		t.Errorf("%d deliveries", delivered)
	}
}

// breaking panics while it takes beats in, when some may have been taken and the slice has been worked in.
type breaking struct{ *recorder }

func (b breaking) Submit(beats []*beats.Beat, done func([]*beats.Beat)) {
	if beats[0].Attempt.TaskID == "broken" {
		clear(beats)
		panic("on purpose")
	}
	b.recorder.Submit(beats, done)
}

// If the tracker panics, only its beats are answered with an error, and the connection continues.
func TestAPanicWhileBeatsAreSubmittedIsAnswered(t *testing.T) {
	t.Parallel()
	w := newTwins(t, func(c *Config) {
		c.Services.Beats = breaking{c.Services.Beats.(*recorder)}
	})
	broken := testAttempt()
	broken.TaskID = "broken"
	text, _, err := httpapi.MintTask(w.loop.s.cfg.Keys, broken, time.Hour, true)
	if err != nil {
		t.Fatal(err)
	}
	w.loop.s.api.Bearer([]byte(text), fakeTime) // a loop takes tokens that are known
	c := dialTo(t, w.loop.addr)
	_ = c.SetDeadline(time.Now().Add(patience))
	in := bufio.NewReader(c)
	for i := range 3 {
		for beat, want := range map[string]int{
			w.post("/v1/tasks/broken/heartbeat", text, `{"attempt":1}`): 500, w.beat("task_1", `{"attempt":1}`): 200,
		} {
			if _, err := io.WriteString(c, beat); err != nil {
				t.Fatal(err)
			}
			res, err := http.ReadResponse(in, nil)
			if err != nil {
				t.Fatal(err)
			}
			if body, err := io.ReadAll(res.Body); res.StatusCode != want || err != nil {
				t.Errorf("round %d: %s %s, want %d", i, res.Status, body, want)
			}
		}
	}
	until(t, func() bool { return w.loop.s.api.InFlight() == 0 }, func() string { return "beats are in flight" })
}

// countingBeats counts how often a loop has stored beats.
type countingBeats struct {
	*recorder
	n *atomic.Int64
}

func (l countingBeats) Submit(beats []*beats.Beat, done func([]*beats.Beat)) {
	l.n.Add(1)
	l.recorder.Submit(beats, done)
}

// A loop verifies unknown tokens itself, some in each turn, once each. Answers and counts are the same as without it, also for clients
// that it refuses or has no time for.
func TestUnknownTokensOnTheLoop(t *testing.T) {
	t.Parallel()
	var submits atomic.Int64
	w := newTwins(t, func(c *Config) { c.Services.Beats = countingBeats{c.Services.Beats.(*recorder), &submits} })
	fresh := 0
	unknown := func(change func(*model.Attempt)) string {
		a := testAttempt()
		fresh++
		a.IssuedAt = fakeTime.Add(time.Duration(fresh) * time.Second)
		change(a)
		text, _, err := httpapi.MintTask(w.loop.s.cfg.Keys, a, time.Hour, true)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	same := func(*model.Attempt) {}
	ok := func(text string) string { return w.post("/v1/tasks/task_1/heartbeat", text, `{"attempt":1}`) }
	const n = 2 * 16 // in two turns at least
	verified, remembered, submitted := w.loop.s.cfg.Keys.Verifications(), w.loop.s.api.CachedTokens(), submits.Load()
	for range n {
		w.exchange(t, ok(unknown(same)))
	}
	verified, remembered = w.loop.s.cfg.Keys.Verifications()-verified, w.loop.s.api.CachedTokens()-remembered
	if submitted = submits.Load() - submitted; verified != n || remembered != n || submitted < n {
		t.Errorf("of %d tokens %d were verified, %d are remembered, and the loop submitted %d beats", n, verified, remembered, submitted)
	}
	for name, s := range map[string]string{
		"many at once":      strings.Repeat(ok(unknown(same)), 3) + ok(unknown(same)) + ok(unknown(same)),
		"another's":         w.post("/v1/tasks/delivered/heartbeat", unknown(same), `{"attempt":1}`) + ok(unknown(same)),
		"another attempt's": w.post("/v1/tasks/task_1/heartbeat", unknown(same), `{"attempt":7}`),
		"a bad body":        w.post("/v1/tasks/task_1/heartbeat", unknown(same), `{"attempt":"1"}`) + ok(unknown(same)),
		"expired":           ok(unknown(func(a *model.Attempt) { a.IssuedAt = fakeTime.Add(-3 * time.Hour) })),
		"broken":            ok(unknown(same) + "x"),
		"no one's":          ok(strings.Repeat("a", 200)),
	} {
		t.Run(name, func(t *testing.T) { w.exchange(t, s) })
	}
	t.Run("what is counted", func(t *testing.T) { w.counted(t) })
}

// FuzzLoop: the same of any bytes, cut anywhere.
func FuzzLoop(f *testing.F) {
	w := newTwins(f)
	for _, s := range []string{
		w.beat("task_1", seedHeartbeat) + w.beat("cancelled", `{"attempt":1}`) + w.beat("expired", `{"attempt":1}`),
		w.beat("task_1", `{"attempt":1}`, "User-Agent: x", "Accept: */*", "Connection: keep-alive", "X-Request-ID: r"),
		w.post("/v1/heartbeats", w.tokens["worker"], w.batch(2)),
		w.post("/v1/workers/"+fakeWorkerID+"/heartbeat", w.tokens["worker"], `{"activeCount":3}`),
		w.chunked(`{"attempt":1}`) + "GET /livez HTTP/1.1\r\nHost: x\r\n\r\n",
	} {
		f.Add(s, uint(len(s)/3))
	}
	f.Fuzz(func(t *testing.T, s string, cut uint) {
		if slow.MatchString(s) {
			return
		}
		at := int(cut % uint(len(s)+1))
		w.exchange(t, s[:at], s[at:])
	})
}

// slow are requests that wait for something.
var slow = regexp.MustCompile(`(?i)claim|events|100-continue`)

// A beat through the loop allocates nothing, from its first byte to its answer's last.
func TestABeatOnTheLoopAllocatesNothing(t *testing.T) {
	if testenv.Race {
		t.Skip("the race detector allocates, and lets pools forget")
	}
	w := newTwin(t, func(c *Config) { c.Services = quietServices(&fakeTracker{}) })
	text, _, err := httpapi.MintTask(w.s.cfg.Keys, testAttempt(), time.Hour, true)
	if err != nil {
		t.Fatal(err)
	}
	of := &twins{tokens: map[string]string{"task_1": text}}
	beat, answer, c := []byte(of.beat("task_1", seedHeartbeat)), make([]byte, 4096), dialTo(t, w.addr)
	once := func() {
		if _, err := c.Write(beat); err != nil {
			t.Fatal(err)
		}
		if n, err := c.Read(answer); err != nil || !bytes.HasPrefix(answer[:n], []byte("HTTP/1.1 200 OK\r\n")) {
			t.Fatalf("%v %s", err, answer[:n])
		}
	}
	for range 10 { // the first opens the token
		once()
	}
	if n := testing.AllocsPerRun(1000, once); n != 0 {
		t.Errorf("%v allocations for a beat, want 0", n)
	}
	if w.s.api.Metrics.AcceptedBeats() < 1000 {
		t.Errorf("%v beats", w.s.api.Metrics.AcceptedBeats())
	}
}
