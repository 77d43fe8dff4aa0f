package scenarios

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lubdub-io/lubdub/bench/load"
	"github.com/lubdub-io/lubdub/bench/proc"
	"github.com/lubdub-io/lubdub/bench/report"
	"github.com/lubdub-io/lubdub/bench/requests"
	"github.com/lubdub-io/lubdub/bench/testbed"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

const (
	streamClients = 10_000 // that receive events alongside the beats
	listeners     = 10     // whose events are timed
	transitions   = 5000   // per second, alongside these
)

// runStreams measures the delay of events to listeners while tasks come and go, and then beats at half of the top rate without and
// alongside clients of streams.
func runStreams(b *testbed.Bed) {
	f := b.FewTasks()
	rate := b.HalfOfTop(f)
	most := streamClients
	if b.Quick {
		most /= 10
	}
	many := min(most, (proc.FileLimit()-spareFiles)/4) // half of the connections may be streams, and one token may have half of these
	if many < most {
		b.Remark("The limit of open files leaves room for %s of %s streams; raise it with ulimit -n.", testbed.N(many), testbed.N(most))
	}
	// First, since a server notices only after a while that thousands of clients have gone.
	eventLatency(b, f)
	for round := 1; round <= b.Rounds; round++ {
		var cpu [2]float64
		for i, clients := range []int{0, many} { // beats are no events, so these receive nothing
			l := listen(b, f, clients)
			r, _ := b.Drive(&f.Target, report.Run{Round: round, Variant: fmt.Sprintf("beside %s streams", testbed.N(clients))},
				load.Load{Source: f.Tasks.Beats, For: b.For, PerSecond: rate})
			l.end()
			cpu[i] = testbed.Both(r)
		}
		b.AddRound("streams", (cpu[1]/cpu[0]-1)*100)
	}
}

// eventLatency runs lives of tasks at the promised rate of transitions, and reports the delay of events to listeners.
func eventLatency(b *testbed.Bed, f *testbed.Fixture) {
	l := listen(b, f, listeners)
	b.Drive(&f.Target, report.Run{Round: 1, Variant: "transitions"}, load.Load{Source: requests.Lives(f.Control), For: b.For,
		PerSecond: float64(transitions) / (requests.CallsOfALife - requests.BeatsOfALife) * requests.CallsOfALife})
	l.end()
	count, p99 := l.took.TotalCount(), float64(l.took.ValueAtPercentile(99))/1000
	if count == 0 {
		testbed.Check(fmt.Errorf("no listener received an event"))
	}
	b.AddRound("event-p99", p99)
	b.Figure("events-told", fmt.Sprintf("events received by %d listeners", listeners), float64(count), "")
	b.Figure("event-p50", "from the event to a listener, p50", float64(l.took.ValueAtPercentile(50))/1000, "ms")
	b.Figure("event-p99", "the same, p99", p99, "ms")
}

// listening is clients of streams, and the delay of events to them.
type listening struct {
	end   func() // may be called again
	mu    sync.Mutex
	took  load.Histogram
	begun atomic.Int64 // streams
}

// listen opens streams, until the end of the scenario, and waits until all of them have begun.
func listen(b *testbed.Bed, f *testbed.Fixture, clients int) *listening {
	ctx, stop := context.WithCancel(b.Ctx)
	var running sync.WaitGroup
	l := &listening{took: load.NewHistogram(), end: func() { stop(); running.Wait() }}
	b.Cleanup(l.end)
	request := fmt.Appendf(nil, "GET /v1/events HTTP/1.1\r\nHost: x\r\nAccept: text/event-stream\r\nAuthorization: Bearer %s\r\n\r\n",
		f.Control)
	for range clients {
		running.Go(func() {
			for ctx.Err() == nil { // again after a refusal, while many connect at once
				requests.Pause()
				l.read(ctx, f.Address(), request)
			}
		})
	}
	b.Await(time.Minute, 20*time.Millisecond, func() (bool, error) {
		there := l.begun.Load()
		return there >= int64(clients), fmt.Errorf("%d of %d streams began", there, clients)
	})
	return l
}

// read reads one stream until it ends.
func (l *listening) read(ctx context.Context, address string, request []byte) {
	c, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
	if err != nil {
		return
	}
	defer context.AfterFunc(ctx, func() { _ = c.Close() })()
	defer c.Close()
	if _, err := c.Write(request); err != nil {
		return
	}
	for lines := bufio.NewScanner(c); lines.Scan(); {
		switch line := lines.Bytes(); {
		case bytes.HasPrefix(line, []byte("HTTP/1.1 ")) && !bytes.Contains(line, []byte(" 200 ")):
			return
		case bytes.HasPrefix(line, []byte(": lubdub")):
			l.begun.Add(1)
			defer l.begun.Add(-1)
		case bytes.HasPrefix(line, []byte("data: ")):
			_, rest, _ := bytes.Cut(line, []byte(`"time":"`))
			text, _, _ := bytes.Cut(rest, []byte(`"`))
			if at, err := time.Parse(time.RFC3339, string(text)); err == nil {
				l.mu.Lock()
				l.took.Record(time.Since(at))
				l.mu.Unlock()
			}
		}
	}
}

const deliveries = 20_000 // to one webhook in a round

// runWebhooks creates tasks about which a webhook is notified, and measures how fast the only sweeper delivers.
func runWebhooks(b *testbed.Bed) {
	f := b.Deploy(b.Connections, "--webhook-allow-cidrs", "127.0.0.0/8", "--events-per-shard", "20000")
	n := deliveries
	if b.Quick {
		n /= 10
		b.Explain("webhooks", "%s deliveries", testbed.N(n))
	}
	for round := range b.Rounds {
		b.AddRound("webhooks", deliver(b, f, round, n))
	}
	b.Remark("%s tasks are created meanwhile, and the process that delivers takes their creations too.", testbed.N(n))
}

// deliver returns the rate of n deliveries per second.
func deliver(b *testbed.Bed, f *testbed.Fixture, round, n int) float64 {
	var count, first, last atomic.Int64 // the latter two in ns since the epoch
	sink := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		now := time.Now().UnixNano()
		first.CompareAndSwap(0, now)
		last.Store(now)
		count.Add(1)
	}))
	defer sink.Close()
	hook := v1.CreateWebhookRequest{WebhookID: fmt.Sprint("bench-", round)}
	hook.URL, hook.Events, hook.Queue = sink.URL, []string{"task.created"}, fmt.Sprint("hooked-", round)
	testbed.Must(f.API.CreateWebhook(b.Ctx, hook))
	for created := 0; created < n; {
		tasks := make([]v1.CreateTasksItem, min(requests.BatchSize, n-created))
		for i := range tasks {
			tasks[i].Queue = hook.Queue
		}
		for _, task := range testbed.Must(f.API.CreateTasks(b.Ctx, tasks)) { // a busy server refuses some of them
			if task.Err == nil {
				created++
			}
		}
	}
	b.Await(2*time.Minute, 10*time.Millisecond, func() (bool, error) {
		return count.Load() >= int64(n), fmt.Errorf("%d of %d deliveries came", count.Load(), n)
	})
	took := time.Duration(last.Load() - first.Load())
	testbed.Must(f.API.DeleteWebhook(b.Ctx, hook.WebhookID))
	return testbed.PerSecond(int64(n), took)
}
