package bench

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"time"

	"github.com/lubdub-io/lubdub/bench/report"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

const (
	deliveries = 20_000 // that one webhook is sent in a round
	aBatch     = 1000   // creations of one call
)

// sink is where webhooks are posted to: it counts, and says when the first and the last have come.
type sink struct {
	*httptest.Server
	count       atomic.Int64
	first, last atomic.Int64 // ns since the epoch
}

func newSink() *sink {
	s := &sink{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		now := time.Now().UnixNano()
		s.first.CompareAndSwap(0, now)
		s.last.Store(now)
		s.count.Add(1)
	}))
	return s
}

// runWebhooks has tasks be created of which a webhook is told, and measures how fast the one sweeper that there is delivers.
func runWebhooks(ctx context.Context, b *bench, s *report.Scenario) error {
	f, err := b.newFixture(ctx, b.Connections, "--webhook-allow-cidrs", "127.0.0.0/8",
		"--events-per-shard", "20000")
	if err != nil {
		return err
	}
	defer f.stop()
	n := deliveries
	if b.Quick {
		n /= 10
	}
	for round := range b.Rounds {
		rate, err := f.deliver(ctx, round, n)
		if err != nil {
			return err
		}
		b.give("webhooks", &rate)
	}
	if b.Quick {
		b.because("webhooks", fmt.Sprintf("%s deliveries", grouped(int64(n))))
	}
	s.Notes = append(s.Notes, fmt.Sprintf("%s tasks are created meanwhile, and the process that delivers takes their creations too.",
		grouped(int64(n))))
	return nil
}

// deliver returns how many deliveries a second there were of n.
func (f *fixture) deliver(ctx context.Context, round, n int) (float64, error) {
	to := newSink()
	defer to.Close()
	path, queue := fmt.Sprint("/v1/webhooks/bench-", round), fmt.Sprint("hooked-", round)
	if err := f.call(ctx, http.MethodPost, "/v1/webhooks", fmt.Sprintf(`{"webhookId":"bench-%d","url":%q,"events":["task.created"],"queue":%q}`,
		round, to.URL, queue), nil); err != nil {
		return 0, err
	}
	one := fmt.Sprintf(`{"queue":%q},`, queue)
	for created := 0; created < n; {
		var answer v1.CreateTasksResponse
		body := `{"tasks":[` + strings.TrimSuffix(strings.Repeat(one, min(aBatch, n-created)), ",") + `]}`
		if err := f.call(ctx, http.MethodPost, "/v1/tasks:batch", body, &answer); err != nil {
			return 0, err
		}
		for _, result := range answer.Results { // a busy server refuses some of them
			if bytes.HasPrefix(result, []byte(`{"status":201,`)) {
				created++
			}
		}
	}
	for limit := time.Now().Add(2 * time.Minute); to.count.Load() < int64(n); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(limit) || ctx.Err() != nil {
			return 0, fmt.Errorf("%d of %d deliveries came within two minutes", to.count.Load(), n)
		}
	}
	took := time.Duration(to.last.Load() - to.first.Load())
	return float64(n) / took.Seconds(), f.call(ctx, http.MethodDelete, path, "", nil)
}
