package webhooks

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"net/http"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/lubdub-io/lubdub/tracker/schema"
	"github.com/lubdub-io/lubdub/tracker/store"
)

// parallel is how many deliveries of one webhook are under way at a time; while it only fails, one is.
const parallel = 32

// delivering is one turn of serving a webhook. Messages about one subject are sent one after the other.
type delivering struct {
	courier *Courier
	hookRef
	posting  context.Context // ends when the webhook is switched off or deleted
	who      string          // this very turn: what another has left under way goes back into the queue
	url      string
	secrets  []aSecret
	width    int // how many may be under way
	underWay int // that were claimed and are not settled, also those that wait for one about the same subject
	off      bool
	chains   map[string][]claimed
	results  chan outcome
}

// deliver posts what a webhook is to be sent until nothing is due, or the shard is not this courier's any more.
func (c *Courier) deliver(ctx, posting context.Context, r hookRef) {
	d := &delivering{courier: c, hookRef: r, posting: posting, who: c.who + "." + ulid.Make().String(), width: parallel,
		chains: map[string][]claimed{}, results: make(chan outcome, parallel)}
	wanted := true
	for {
		if wanted && ctx.Err() == nil && c.shards[r.shard].mine.Load() && d.underWay <= d.width/2 {
			wanted = d.claim(ctx)
		}
		if d.underWay == 0 {
			return
		}
		if !d.settle(ctx, d.gather()) {
			wanted = false // what was not recorded goes back when the next turn begins
		}
	}
}

// claim takes what is due. False: no more is to be taken in this turn.
func (d *delivering) claim(ctx context.Context) bool {
	s := d.courier.service
	re, err := s.store.Do(ctx, "webhooks", s.claimCall(d.hookRef, d.who, d.width-d.underWay))
	if err != nil {
		return false
	}
	reply := readClaim(re, d.hookRef)
	if reply.code == schema.CodeRefused && d.underWay == 0 {
		d.bury(ctx)
	}
	if reply.code != schema.CodeOK {
		return false
	}
	d.url, d.secrets = reply.url, holding(reply.secrets, reply.now)
	for _, one := range reply.all {
		d.underWay++
		chain := one.Subject
		if chain == "" {
			chain = one.number
		}
		if d.chains[chain] = append(d.chains[chain], one); len(d.chains[chain]) == 1 {
			d.start(chain)
		}
	}
	return true
}

// start posts the first of a chain.
func (d *delivering) start(chain string) {
	one, url, secrets := d.chains[chain][0], d.url, d.secrets
	st := d.courier.service.store
	go st.Guard("a delivery to a webhook", func() { d.results <- d.post(d.posting, one, url, secrets) })()
}

// post tries once. An outcome without a fate was not tried to its end, since the process stops or the webhook was switched off.
func (d *delivering) post(ctx context.Context, one claimed, url string, secrets []aSecret) outcome {
	c := d.courier
	if !c.slots.take(ctx, d.scope.Tenant, d.name) {
		return outcome{claimed: one}
	}
	defer c.slots.give(d.scope.Tenant, d.name)
	m := c.service.metrics
	m.underWay.Inc()
	defer m.underWay.Dec()
	began := time.Now()
	status, excerpt, err := c.service.opts.Poster.Post(ctx, url, sign(secrets, one.MessageID, began, one.body), one.body)
	if ctx.Err() != nil && err != nil {
		return outcome{claimed: one}
	}
	took := time.Since(began)
	m.took.Observe(took.Seconds())
	answer := Answer{Code: status, Body: shown(string(excerpt)), TookMs: took.Milliseconds()}
	if err != nil {
		answer.Error = shown(err.Error())
	}
	text, _ := json.Marshal(answer) // texts and numbers: cannot fail
	o := outcome{claimed: one, answer: string(text)}
	switch {
	case status/100 == 2:
		o.fate = received
	case status == http.StatusGone:
		o.fate = isGone
	case one.Tries >= len(waits):
		o.fate = givenUp
	default:
		o.fate, o.wait = retried, waits[one.Tries]+rand.N(waits[one.Tries]/10)
	}
	m.tries.WithLabelValues(map[fate]string{received: "delivered", retried: "retry", givenUp: "dead", isGone: "dead"}[o.fate]).Inc()
	return o
}

// maxShown bounds what is kept of an answer: its sender has chosen it, also where an error quotes it.
const maxShown = 1 << 10

func shown(text string) string {
	return strings.ToValidUTF8(text[:min(len(text), maxShown)], "\uFFFD")
}

// gather waits for one outcome, and takes those that have come meanwhile.
func (d *delivering) gather() []outcome {
	all := []outcome{<-d.results}
	for {
		select {
		case o := <-d.results:
			all = append(all, o)
		default:
			return all
		}
	}
}

// settle records outcomes, and sends what waited for them. False: they were not recorded.
func (d *delivering) settle(ctx context.Context, all []outcome) bool {
	s, tried, ok := d.courier.service, all[:0:0], true
	for _, o := range all {
		if o.fate != "" {
			tried = append(tried, o)
		}
	}
	if len(tried) > 0 {
		// What was received is recorded though the process stops: else it would be sent again.
		re, err := s.store.Do(context.WithoutCancel(ctx), "webhooks", s.settleCall(d.hookRef, d.who, tried))
		if ok = err == nil; ok {
			d.learn(readSettle(re), tried)
		}
	}
	for _, o := range all {
		d.underWay--
		chain := o.Subject
		if chain == "" {
			chain = o.number
		}
		rest := d.chains[chain][1:]
		if len(rest) > 0 && !d.off {
			d.chains[chain] = rest
			d.start(chain)
			continue
		}
		d.underWay -= len(rest) // given up with all that waits
		delete(d.chains, chain)
	}
	return ok && len(tried) > 0
}

// learn takes notice of what was recorded.
func (d *delivering) learn(reply settleReply, tried []outcome) {
	s := d.courier.service
	s.metrics.dropped.Add(float64(reply.dropped))
	d.width = 1
	for _, o := range tried {
		if o.fate == received {
			d.width = parallel
		}
	}
	if reply.off != "" {
		d.off = true
		s.metrics.disabled.Inc()
		s.log.Warn("a webhook was switched off", d.scope.LogAttr(), "webhookId", d.id, "reason", reply.off)
	}
}

// bury gives up what waits for a webhook that is off.
func (d *delivering) bury(ctx context.Context) {
	s := d.courier.service
	for left := int64(1); left > 0 && ctx.Err() == nil; {
		c := s.buryCall(d.hookRef)
		if s.store.DoBulk(ctx, "webhooks", []*store.Call{c}); c.Err != nil {
			return
		}
		left = readBury(c.Reply)
	}
}
