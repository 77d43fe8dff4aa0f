package bench

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/lubdub-io/lubdub/bench/load"
	"github.com/lubdub-io/lubdub/bench/report"
)

const (
	streamClients = 10_000 // that listen beside the beats
	listeners     = 10     // of which the time that events take is told
	transitions   = 5000   // a second, beside these

	// maxStreams is how many the benchmark's servers take: one token may have half of them. They are half of max-connections.
	maxStreams = 2*streamClients + 64
)

// runStreams measures how long events take to listeners while tasks come and go, and then beats at half of the top rate without
// and beside clients of streams.
func runStreams(ctx context.Context, b *bench, s *report.Scenario) error {
	f, err := b.fewTasks(ctx)
	if err != nil {
		return err
	}
	rate, err := b.halfOfTop(ctx, f)
	if err != nil {
		return err
	}
	// First, since a server notices only after a while that thousands of clients have gone.
	if err := b.eventLatency(ctx, f, s); err != nil {
		return err
	}
	for round := 1; round <= b.Rounds; round++ {
		alone, err := b.beatsBeside(ctx, f, s, round, rate, 0)
		if err != nil {
			return err
		}
		beside, err := b.beatsBeside(ctx, f, s, round, rate, streamClients)
		if err != nil {
			return err
		}
		if r := ratio(both(beside), both(alone)); r != nil {
			more := (*r - 1) * 100
			b.give("streams", &more)
		}
	}
	return nil
}

// beatsBeside drives beats beside so many clients that hear nothing, since beats are no events.
func (b *bench) beatsBeside(ctx context.Context, f *fixture, s *report.Scenario, round int, rate float64, clients int) (report.Run, error) {
	heard, err := f.hear(ctx, clients)
	if err != nil {
		return report.Run{}, err
	}
	defer heard.end()
	r, _, err := b.drive(ctx, &f.target, report.Run{Round: round, Variant: fmt.Sprintf("beside %s streams", grouped(int64(clients)))},
		load.Load{Source: f.tasks.beatOneByOne, For: b.For, PerSecond: rate})
	s.Runs = append(s.Runs, r)
	return r, err
}

// eventLatency has tasks live at the rate of transitions that was promised, and tells how long events take to listeners.
func (b *bench) eventLatency(ctx context.Context, f *fixture, s *report.Scenario) error {
	heard, err := f.hear(ctx, listeners)
	if err != nil {
		return err
	}
	calls := float64(transitions) / (callsOfALife - beatsOfALife) * callsOfALife
	r, _, err := b.drive(ctx, &f.target, report.Run{Round: 1, Variant: "transitions"}, load.Load{Source: func(i, n int) load.Source {
		return &lives{control: []byte(f.control)}
	}, For: b.For, PerSecond: calls})
	s.Runs = append(s.Runs, r)
	heard.end()
	if err != nil {
		return err
	}
	if heard.took.TotalCount() == 0 {
		return fmt.Errorf("no listener was told anything")
	}
	p99 := float64(heard.took.ValueAtPercentile(99))
	b.give("event-p99", &p99)
	s.Figures = append(s.Figures,
		report.Figure{Name: "events-told", What: fmt.Sprintf("events told to %d listeners", listeners),
			Value: float64(heard.took.TotalCount())},
		report.Figure{Name: "event-p50", What: "from the event to a listener, p50", Value: float64(heard.took.ValueAtPercentile(50)), Unit: "ms"},
		report.Figure{Name: "event-p99", What: "the same, p99", Value: p99, Unit: "ms"})
	return nil
}

// hearing is clients of streams, and how long events took to them, ms.
type hearing struct {
	stop    context.CancelFunc
	running sync.WaitGroup
	mu      sync.Mutex
	took    *hdrhistogram.Histogram
}

func (h *hearing) end() {
	h.stop()
	h.running.Wait()
}

// hear opens streams and waits until all of them have begun.
func (f *fixture) hear(ctx context.Context, clients int) (*hearing, error) {
	inner, stop := context.WithCancel(ctx)
	h := &hearing{stop: stop, took: hdrhistogram.New(1, 60_000, 3)}
	request := fmt.Appendf(nil, "GET /v1/events HTTP/1.1\r\nHost: x\r\nAccept: text/event-stream\r\nAuthorization: Bearer %s\r\n\r\n",
		f.control)
	var begun atomic.Int64
	for range clients {
		h.running.Go(func() {
			shortly() // they know nothing of each other
			for h.listen(inner, f.address(), request, &begun); inner.Err() == nil; {
				shortly() // refused, while many came at once
				h.listen(inner, f.address(), request, &begun)
			}
		})
	}
	for deadline := time.Now().Add(time.Minute); begun.Load() < int64(clients); time.Sleep(20 * time.Millisecond) {
		if there := begun.Load(); time.Now().After(deadline) || ctx.Err() != nil {
			h.end()
			return nil, fmt.Errorf("%d of %d streams began within a minute", there, clients)
		}
	}
	return h, nil
}

var (
	statusLine   = []byte("HTTP/1.1 ")
	statusOK     = []byte(" 200 ")
	streamBegins = []byte(": lubdub")
	streamData   = []byte("data: ")
	streamTime   = []byte(`"time":"`)
)

// listen reads one stream until it ends.
func (h *hearing) listen(ctx context.Context, address string, request []byte, begun *atomic.Int64) {
	c, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
	if err != nil {
		return
	}
	defer context.AfterFunc(ctx, func() { _ = c.Close() })()
	defer c.Close()
	if _, err := c.Write(request); err != nil {
		return
	}
	lines := bufio.NewScanner(c)
	for lines.Scan() {
		line := lines.Bytes()
		if bytes.HasPrefix(line, statusLine) && !bytes.Contains(line, statusOK) {
			return
		}
		if bytes.HasPrefix(line, streamBegins) {
			begun.Add(1)
			defer begun.Add(-1)
		}
		_, rest, ok := bytes.Cut(line, streamTime)
		if !bytes.HasPrefix(line, streamData) || !ok || len(rest) < 24 {
			continue
		}
		if at, err := time.Parse(time.RFC3339, string(rest[:24])); err == nil {
			h.mu.Lock()
			_ = h.took.RecordValue(max(1, time.Since(at).Milliseconds())) // beyond a minute it is not counted
			h.mu.Unlock()
		}
	}
}
