package workers

import (
	"context"
	"time"

	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/schema"
	"github.com/lubdub-io/lubdub/tracker/store"
)

// registration is what the server chooses for a worker.
type registration struct {
	id       string
	interval time.Duration // between its beats
	told     time.Duration // the same, spread out, as the answer has it
	timeout  time.Duration
	until    string // wall ms until which a registration with a key may take place; "": it has none
}

// registrationLife is how long the key of a registration is kept. A worker's record stays for at least as long after its
// end: where the key is known and the record is not, the worker was never registered.
func (t *Service) registrationLife() time.Duration {
	return min(model.IdempotencyRetention, t.opts.OfflineRetention)
}

// reserveRegistration settles which worker the registration's key stands for, if it has one. Whatever is cut off after
// that is completed by the repeat, or by the first call when it goes on: both register the same worker.
// With a refusal nothing is reserved, and only who comes again is let through.
func (t *Service) reserveRegistration(ctx context.Context, n *model.NewWorker, g *registration, refusal error) error {
	if n.IdempotencyKey == "" {
		return refusal
	}
	life := t.registrationLife()
	if refusal != nil {
		life = 0
	}
	shard := t.store.ShardOf(n.Scope, n.IdempotencyKey)
	reply, err := t.store.Do(ctx, "register", store.NewCall(shard, t.store.Scripts.Get("registration"),
		[]string{t.store.Keys[shard].Registration(n.Scope, n.IdempotencyKey)},
		n.IdempotencyHash, g.id, model.Millis(g.interval), model.Millis(g.told), model.Millis(g.timeout), model.Millis(life)))
	if err != nil {
		return err
	}
	if reply.Int(0) != 1 {
		return &model.Error{Code: model.IdempotencyMismatch, Op: "register",
			Message: "this registration id was used with another body before; draw a new one for each registration, or repeat the first body"}
	}
	if reply.Str(1) == "" {
		return refusal
	}
	g.id, g.interval, g.told, g.timeout = reply.Str(1), schema.Duration(reply.Str(2), 0), schema.Duration(reply.Str(3), 0), schema.Duration(reply.Str(4), 0)
	g.until = reply.Str(5)
	return nil
}
