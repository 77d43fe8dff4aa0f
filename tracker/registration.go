package tracker

import (
	"time"
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
func (t *Tracker) registrationLife() time.Duration {
	return min(IdempotencyRetention, t.opts.OfflineRetention)
}

// reserveRegistration settles which worker the registration's key stands for, if it has one. Whatever is cut off after
// that is completed by the repeat, or by the first call when it goes on: both register the same worker.
// With a refusal nothing is reserved, and only who comes again is let through.
func (t *Tracker) reserveRegistration(n *NewWorker, g *registration, refusal error) error {
	if n.IdempotencyKey == "" {
		return refusal
	}
	life := t.registrationLife()
	if refusal != nil {
		life = 0
	}
	shard := t.store.shardOf(n.Scope, n.IdempotencyKey)
	reply, err := t.store.do("register", newCall(shard, t.store.scripts.Get("registration"),
		[]string{t.store.keys[shard].registration(n.Scope, n.IdempotencyKey)},
		n.IdempotencyHash, g.id, ms(g.interval), ms(g.told), ms(g.timeout), ms(life)))
	if err != nil {
		return err
	}
	if reply.int(0) != 1 {
		return &Error{Code: IdempotencyMismatch, Op: "register",
			Message: "this registration id was used with another body before; draw a new one for each registration, or repeat the first body"}
	}
	if reply.str(1) == "" {
		return refusal
	}
	g.id, g.interval, g.told, g.timeout = reply.str(1), duration(reply.str(2), 0), duration(reply.str(3), 0), duration(reply.str(4), 0)
	g.until = reply.str(5)
	return nil
}
