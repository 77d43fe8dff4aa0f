package sweep

import (
	"context"
	"errors"
	"sync"
	"time"
)

// outbox names a shard with notices for the shards of their workers.
type outbox struct {
	shard int
	grace time.Duration // left to sweepers with a better rank
}

// outboxes delivers the notices that the rounds of a sweeper find.
type outboxes struct {
	service    *Service
	background *background
	busy       sync.Map // shard → true: the outboxes that this sweeper is emptying
}

func newOutboxes(s *Service, bg *background) *outboxes { return &outboxes{service: s, background: bg} }

// empty delivers the notices. A ranked sweeper does so in the background: the workers' shards may be on a node that does not
// respond, and verdicts must not wait for it.
func (o *outboxes) empty(ctx context.Context, r *round, todo []outbox) error {
	var failed error
	for _, box := range todo {
		if _, busy := o.busy.LoadOrStore(box.shard, true); busy {
			continue
		}
		if r.ranked {
			o.background.run("carrying notices", func() { _ = o.emptyOne(ctx, box) }) // the next round finds what failed
		} else {
			failed = errors.Join(failed, o.emptyOne(ctx, box))
		}
	}
	return failed
}

func (o *outboxes) emptyOne(ctx context.Context, box outbox) error {
	defer o.busy.Delete(box.shard)
	for more := true; more; {
		var err error
		if more, err = o.service.holdings.SendNotices(ctx, box.shard, box.grace); err != nil {
			return err
		}
	}
	return nil
}
