package bench

import (
	"context"
	"fmt"
	"time"

	"github.com/lubdub-io/lubdub/bench/load"
	"github.com/lubdub-io/lubdub/bench/report"
)

// claimers are how many workers claim at the same time.
var claimers = []int{1, ten, hundred}

const ten, hundred = 10, 100

// A queue is to last as long as the load: that is more than one worker, and all of them, claim one by one in a second.
const (
	claimsOfOne = 3000
	claimsOfAll = 6000
)

// claiming is how long workers claim in a round. It is short, since the queue must be filled before.
func (b *bench) claiming() time.Duration { return max(b.For/4, 100*time.Millisecond) }

// runClaims has workers claim one task a request from a queue that was filled before.
func runClaims(ctx context.Context, b *bench, s *report.Scenario) error {
	site, err := b.workers(ctx)
	if err != nil {
		return err
	}
	for _, workers := range claimers {
		c := &claimed{latency: load.NewHistogram()}
		for range b.Rounds {
			if err := c.round(ctx, b, site, workers); err != nil {
				return err
			}
		}
		c.tell(b, s, workers)
	}
	return nil
}

// claimed gathers the rounds of as many workers.
type claimed struct {
	latency              load.Histogram
	rates, server, redis []float64
}

func (c *claimed) round(ctx context.Context, b *bench, site *workerSite, n int) error {
	j := newJobs(max(n, int(float64(min(claimsOfAll, claimsOfOne*n))*b.claiming().Seconds())))
	if err := site.enqueue(ctx, b, j); err != nil {
		return err
	}
	workers, err := site.hire(ctx, b, j.queue, n)
	if err != nil {
		return err
	}
	on, err := site.wide(ctx, n)
	if err != nil {
		return err
	}
	defer on.pool.Close()
	r, res, err := b.drive(ctx, on, report.Run{Variant: fmt.Sprintf("claims of %d workers", n)},
		load.Load{Source: func(i, _ int) load.Source { return newClaims(j.queue, workers[i], 1, nil) }, For: b.claiming()})
	if err == nil && len(res.NotOK) > 0 {
		err = fmt.Errorf("claims were refused: %s", refusals(res.NotOK))
	}
	if err != nil {
		return err
	}
	c.latency.Merge(res.Latency.Histogram)
	c.rates = append(c.rates, r.BeatsPerSecond)
	if r.ServerMicros != nil && r.RedisMicros != nil {
		c.server, c.redis = append(c.server, *r.ServerMicros), append(c.redis, *r.RedisMicros)
	}
	switch n {
	case ten:
		b.give("claim-latency-p99", &r.Latency.P99Ms)
	case hundred:
		b.give("claim-rate", &r.BeatsPerSecond)
	}
	return nil
}

func (c *claimed) tell(b *bench, s *report.Scenario, workers int) {
	who := fmt.Sprintf("%d workers", workers)
	if workers == 1 {
		who = "1 worker"
	}
	figure := func(name, what string, values []float64, unit string) {
		if len(values) > 0 {
			s.Figures = append(s.Figures, report.Figure{Name: fmt.Sprintf("%s-%d", name, workers), What: what,
				Value: report.Median(values), Unit: unit})
		}
	}
	figure("claim-rate", "claims of "+who, c.rates, "tasks/s")
	figure("claim-server-cpu", "CPU of the server for a claim of "+who, c.server, "µs")
	figure("claim-redis-cpu", "CPU of Redis for a claim of "+who, c.redis, "µs")
	if q := quantiles(c.latency); q != nil {
		s.Distributions = append(s.Distributions, report.Distribution{
			Name: fmt.Sprintf("claim-latency-%d", workers), What: "claim latency with " + who, Quantiles: *q,
		})
	}
}
