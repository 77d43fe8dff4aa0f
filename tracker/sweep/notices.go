package sweep

import (
	"context"
	"errors"
	"sync"
	"time"
)

// outbox is a shard with notices that are to go to the shards of their workers.
type outbox struct {
	shard int
	grace time.Duration // left to sweepers of a better rank
}

// outboxes empties those that a sweeper's rounds find.
type outboxes struct {
	service *Service
	beside  *beside
	busy    sync.Map // shard → true: those that this sweeper is at
}

func newOutboxes(s *Service, aside *beside) *outboxes { return &outboxes{service: s, beside: aside} }

// empty takes the notices where they belong. A ranked sweeper does it beside its rounds: the workers' shards may lie on a node
// that does not answer, and no verdict must wait for that.
func (o *outboxes) empty(ctx context.Context, r *round, todo []outbox) error {
	var failed error
	for _, box := range todo {
		if _, busy := o.busy.LoadOrStore(box.shard, true); busy {
			continue
		}
		if r.ranked {
			o.beside.run("carrying notices", func() { _ = o.emptyOne(ctx, box) }) // what fails is found again
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
