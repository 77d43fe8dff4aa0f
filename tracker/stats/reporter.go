package stats

import (
	"context"
	"encoding/json"
	"time"

	"github.com/lubdub-io/lubdub/tracker/model"
)

const (
	stepMillis = 10_000
	// StepLength is the length of a step of the series.
	StepLength = stepMillis * time.Millisecond
)

// reporter is what a replica has reported so far. Only one goroutine uses it.
type reporter struct {
	before  map[string]int64 // counters at the last confirmed report
	pending *pending         // a report that is not confirmed
	warned  bool
}

type pending struct {
	step   int64
	since  *counted
	before map[string]int64 // where the next report starts counting once this one is confirmed
}

// Keep stores this replica's counters every ten seconds until ctx ends. A failed report is repeated with the next step; a step
// counts each report of a replica once.
func (s *Service) Keep(ctx context.Context) error {
	for {
		now, err := s.Leave(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			now = time.Now()
		}
		// A moment after the step by the store's clock, so that all replicas report to the same one.
		wait := StepLength - time.Duration(now.UnixMilli()%stepMillis)*time.Millisecond + 200*time.Millisecond
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(wait):
		}
	}
}

// Leave stores what this replica has counted in the previous step, and returns the store's time. The first replica to report also
// stores the levels, and one replica shows them in its metrics.
func (s *Service) Leave(ctx context.Context) (time.Time, error) {
	ctx = s.store.Within(ctx, 0)
	facts, _ := json.Marshal(s.opts.Facts) // plain values
	hello, err := s.report(ctx, string(facts), 0, nil)
	if err != nil {
		return time.Time{}, err
	}
	step := hello.now.UnixMilli()/stepMillis - 1
	r := &s.reporter
	if p := r.pending; p != nil {
		if _, err := s.report(ctx, string(facts), p.step, p.since); err != nil {
			return hello.now, err
		}
		r.before, r.pending = p.before, nil
	}
	is, err := gather(s.opts.Gatherer)
	if err != nil {
		return hello.now, &model.Error{Code: model.Unavailable, Op: "stats", Cause: err, Message: "this replica's counters cannot be read"}
	}
	r.pending = &pending{step, is.since(r.before), is.counts}
	sent := time.Now() // the lease starts before the request for it
	reply, err := s.report(ctx, string(facts), step, r.pending.since)
	if err != nil {
		return hello.now, err
	}
	r.before, r.pending = is.counts, nil
	if !reply.wanted && !reply.publishes {
		return hello.now, nil
	}
	counts, err := s.countAll(ctx, "")
	if err != nil {
		return hello.now, err
	}
	if reply.publishes {
		deepest, err := s.queues.Deepest(ctx, maxQueuesPublished)
		if err != nil {
			return hello.now, err
		}
		fleet, err := s.fleet(ctx, maxQueuesPublished)
		if err != nil {
			return hello.now, err
		}
		s.published.publish(counts, deepest, fleet, sent)
	}
	if reply.wanted {
		_, err = s.store.Do(ctx, "stats", s.levelsCall(step, counts.levels(), counts.Only))
	}
	return hello.now, err
}

func (s *Service) report(ctx context.Context, facts string, step int64, c *counted) (reportReply, error) {
	re, err := s.store.Do(ctx, "stats", s.reportCall(s.opts.ReplicaID, facts, step, c))
	if err != nil {
		return reportReply{}, err
	}
	reply := readReport(re)
	if reply.refused && !s.reporter.warned {
		s.reporter.warned = true
		s.opts.Logger.Warn("there are more than 1,000 replicas: this one is shown nowhere, and what it counts is left out")
	}
	return reply, nil
}

// maxScopes bounds the scopes whose tasks and workers are counted for the series.
const maxScopes = 1000
