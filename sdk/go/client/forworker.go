package client

import (
	"context"
	"net/http"
	"time"

	"github.com/lubdub-io/lubdub/sdk/go/internal/beats"
	"github.com/lubdub-io/lubdub/sdk/go/internal/clock"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

func init() {
	hooks := &beats.Client
	hooks.Clock = func(c any) clock.Clock { return c.(*Client).set.clock }
	hooks.WithClock = func(c clock.Clock) any {
		return Option(func(s *settings) error {
			s.clock = c
			return nil
		})
	}
	hooks.HeldBy = func(h beats.Holder) any { return TrackOption(func(a *Attempt) { a.holder = h }) }
	hooks.FirstAnswer = func(a any) time.Time {
		attempt := a.(*Attempt)
		attempt.mu.Lock()
		defer attempt.mu.Unlock()
		return attempt.firstAnswer
	}
	hooks.Over = func(a any) bool { return held{a.(*Attempt)}.Over() }
	hooks.Heartbeat = func(ctx context.Context, c any, all []beats.Attempt) error {
		return c.(*Client).heartbeatHeld(ctx, all)
	}
}

// heartbeatHeld implements beats.Client.Heartbeat.
func (c *Client) heartbeatHeld(ctx context.Context, all []beats.Attempt) (err error) {
	for _, b := range c.batches(all) {
		if failed := b.beatOnce(ctx); err == nil {
			err = failed
		}
	}
	return err
}

// batches groups attempts by the endpoints of their callbacks, at most maxBatch each. Ended attempts are left out.
func (c *Client) batches(all []beats.Attempt) (batches []*beater) {
	open := map[*endpoints]*beater{}
	for _, one := range all {
		a := one.(held).Attempt
		if _, ours := a.heartbeatInterval(); !ours {
			continue
		}
		b := open[a.beater.base]
		if b == nil || len(b.batch) == maxBatch {
			b = &beater{client: c, base: a.beater.base, stretch: 1}
			open[b.base] = b
			batches = append(batches, b)
		}
		b.batch = append(b.batch, a)
	}
	return batches
}

// beatOnce sends the batch and applies the answer. A result that requests a retry is an error, as if the whole request had failed.
func (b *beater) beatOnce(ctx context.Context) error {
	sent := b.client.set.clock.Now()
	b.write()
	k := b.request()
	if err := b.client.do(ctx, k); err != nil {
		return err
	}
	pause, err := b.take(sent)
	if err == nil && pause > 0 {
		err = &Error{Status: http.StatusServiceUnavailable, Code: v1.CodeStoreUnavailable, Operation: k.operation(),
			Message: "some heartbeats could not be stored", RetryAfter: pause}
	}
	return err
}
