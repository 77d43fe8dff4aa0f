//go:build go1.25

package client_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lubdub-io/lubdub/sdk/go/client"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

const crowdSize = 10_000

// crowd is a client that tracks many attempts, of a server that accepts everything.
type crowd struct {
	client   *client.Client
	attempts []*client.Attempt
	requests atomic.Int64
	beats    atomic.Int64
}

func newCrowd(tb testing.TB, n int) *crowd {
	tb.Helper()
	c := &crowd{}
	made, err := client.New("https://lubdub.example", client.Transport(carrier(func(r *http.Request) (*http.Response, error) {
		if r.URL.Path != "/v1/heartbeats" {
			return reply(200, `{"acknowledged":true,"finalState":"SUCCEEDED"}`), nil
		}
		size := 0
		body := make([]byte, r.ContentLength)
		for read := 0; read < len(body); {
			m, err := r.Body.Read(body[read:])
			if read += m; err != nil {
				break
			}
		}
		var out strings.Builder
		out.WriteString(`{"results":[`)
		for rest := string(body); ; size++ {
			_, after, ok := strings.Cut(rest, `{"taskId":"`)
			if !ok {
				break
			}
			id, more, _ := strings.Cut(after, `"`)
			rest = more
			if size > 0 {
				out.WriteByte(',')
			}
			out.WriteString(`{"taskId":"`)
			out.WriteString(id)
			out.WriteString(`","status":200,"acknowledged":true,"shouldCancel":false,"serverTime":"2026-01-01T00:00:00.000Z",` +
				`"nextHeartbeatMs":10000}`)
		}
		out.WriteString(`],"serverTime":"2026-01-01T00:00:00.000Z"}`)
		c.requests.Add(1)
		c.beats.Add(int64(size))
		return reply(200, out.String()), nil
	})))
	if err != nil {
		tb.Fatal(err)
	}
	c.client = made
	tb.Cleanup(made.Close)
	token := strings.Repeat("x", 400)
	for i := range n {
		_, a, err := made.Track(tb.Context(), &v1.TaskEnvelope{
			TaskID: fmt.Sprintf("task_%d", i), Attempt: 1, TaskToken: token, HeartbeatIntervalMs: 10_000,
			HeartbeatTimeoutMs: ms(30 * time.Second),
		})
		if err != nil {
			tb.Fatal(err)
		}
		c.attempts = append(c.attempts, a)
	}
	return c
}

// However many attempts a process tracks, it sends one request a tick for each thousand of them.
func TestManyShareTheirBeats(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		c := newCrowd(t, crowdSize)
		time.Sleep(15 * time.Second) // all have beaten, and come together
		c.requests.Store(0)
		c.beats.Store(0)
		time.Sleep(20 * time.Second)
		requests, beats := c.requests.Load(), c.beats.Load()
		if ticks := beats / crowdSize; beats%crowdSize != 0 || ticks < 2 || requests != 10*ticks {
			t.Errorf("%d beats in %d requests within 20 s", beats, requests)
		}
		for _, a := range c.attempts {
			if err := a.Progress(50, "halfway"); err != nil {
				t.Fatal(err)
			}
		}
		for _, a := range c.attempts {
			a.Abandon()
		}
		synctest.Wait()
	})
}

// What a tracked attempt costs: memory that stays, the token that the caller has given left out.
func TestAnAttemptIsSmall(t *testing.T) {
	memory := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	inBubble(t, func(t *testing.T) {
		newCrowd(t, 10).client.Close() // what is made once
		before := memory()
		c := newCrowd(t, crowdSize)
		time.Sleep(25 * time.Second)
		if each := (memory() - before) / crowdSize; each > 1024 {
			t.Errorf("an attempt takes %d bytes", each)
		} else {
			t.Logf("an attempt takes %d bytes", each)
		}
		runtime.KeepAlive(c)
	})
}

// Beats are written and answers read without allocating for each of them.
func TestATickAllocatesNothingPerAttempt(t *testing.T) {
	if testing.CoverMode() != "" {
		t.Skip("coverage allocates")
	}
	inBubble(t, func(t *testing.T) {
		count := func(n int) uint64 {
			c := newCrowd(t, n)
			time.Sleep(25 * time.Second)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			client.BeatNow(c.client)
			runtime.ReadMemStats(&after)
			for _, a := range c.attempts {
				a.Abandon()
			}
			return after.Mallocs - before.Mallocs
		}
		few, many := count(10), count(1000)
		if many > few+500 {
			t.Errorf("10 beats make %d allocations, 1,000 make %d", few, many)
		}
	})
}

func TestAnswersAreReadAsEncodingJSONReadsThem(t *testing.T) {
	for _, answer := range []string{
		`{"results":[{"taskId":"a","status":200,"nextHeartbeatMs":5,"shouldCancel":false}],"serverTime":"x"}`,
		` { "serverTime" : null , "results" : [ { "status" : 410 , "error" : "task_expired", "taskId" : "\u0061" } , {"taskId":"b","status":200,"shouldCancel":true} ] } `,
		`{"results":[]}`, `{}`, `{"x":{"y":[1,2,{"z":"]}"}]},"results":[{"taskId":"a","status":503,"retryAfterMs":10}]}`,
	} {
		checkAnswer(t, []byte(answer))
	}
}

func checkAnswer(t *testing.T, answer []byte) {
	t.Helper()
	got, err := client.ReadResults(answer)
	if err != nil {
		return // such a request is sent again
	}
	var want v1.HeartbeatsResponse
	if err := json.Unmarshal(answer, &want); err != nil {
		if json.Valid(answer) {
			return // of other types in places that are not looked at
		}
		t.Fatalf("%q was read though it is not JSON: %v", answer, err)
	}
	if len(got) != len(want.Results) {
		t.Fatalf("%q: %d results, want %d", answer, len(got), len(want.Results))
	}
}

func FuzzAnswers(f *testing.F) {
	f.Add([]byte(`{"results":[{"taskId":"a","status":200,"nextHeartbeatMs":5,"shouldCancel":false}],"serverTime":"x"}`))
	f.Add([]byte(`{"results":[{"taskId":"\u00e9","status":503,"retryAfterMs":10,"error":"x"}]}`))
	f.Fuzz(func(t *testing.T, answer []byte) { checkAnswer(t, answer) })
}

func BenchmarkProgress(b *testing.B) {
	c := newCrowd(b, 1)
	b.ReportAllocs()
	for b.Loop() {
		_ = c.attempts[0].Progress(50, "halfway")
	}
}

// One request of a thousand beats, written, answered and read; the server's share, which makes the answer, is in it.
func BenchmarkTickOfAThousand(b *testing.B) {
	c := newCrowd(b, 1000)
	b.ReportAllocs()
	for b.Loop() {
		client.BeatNow(c.client)
	}
}
