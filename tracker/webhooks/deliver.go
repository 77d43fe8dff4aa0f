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

// parallel is how many deliveries of one webhook run concurrently; while it only fails, one does.
const parallel = 32

// delivering is one turn of serving a webhook. Messages about the same subject are sent in sequence.
type delivering struct {
	courier *Courier
	hookRef
	posting  context.Context // ends when the webhook is disabled or deleted
	who      string          // identifies this turn: what another turn has left in progress returns to the queue
	url      string
	secrets  []aSecret
	width    int // how many may be in progress
	underWay int // claimed and not settled, including those that wait for another about the same subject
	off      bool
	chains   map[string][]claimed
	results  chan outcome
}

// deliver posts a webhook's messages until none is due, or the shard does not belong to this courier any more.
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
			wanted = false // the next turn requeues what was not recorded
		}
	}
}

// claim claims due deliveries; false: no more can be claimed in this turn.
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

// start posts the first delivery of a chain.
func (d *delivering) start(chain string) {
	one, url, secrets := d.chains[chain][0], d.url, d.secrets
	st := d.courier.service.store
	go st.Guard("a delivery to a webhook", func() { d.results <- d.post(d.posting, one, url, secrets) })()
}

// post tries a delivery once. An outcome without a result was not finished, because the process stops or the webhook was disabled.
func (d *delivering) post(ctx context.Context, one claimed, url string, secrets []aSecret) outcome {
	c := d.courier
	if !c.slots.take(ctx, d.scope.Tenant, d.name) {
		return outcome{claimed: one}
	}
	defer c.slots.release(d.scope.Tenant, d.name)
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
	text, _ := json.Marshal(answer) // strings and numbers: cannot fail
	o := outcome{claimed: one, answer: string(text)}
	switch {
	case status/100 == 2:
		o.result = received
	case status == http.StatusGone:
		o.result = webhookDeleted
	case one.Tries >= len(waits):
		o.result = givenUp
	default:
		o.result, o.wait = retried, waits[one.Tries]+rand.N(waits[one.Tries]/10)
	}
	label := map[tryResult]string{received: "delivered", retried: "retry", givenUp: "dead", webhookDeleted: "dead"}[o.result]
	m.tries.WithLabelValues(label).Inc()
	return o
}

// maxShown limits what is stored of a response. Its sender controls it, also where an error quotes it.
const maxShown = 1 << 10

func shown(text string) string {
	return strings.ToValidUTF8(text[:min(len(text), maxShown)], "\uFFFD")
}

// gather waits for one outcome, and returns it with all others that have arrived.
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

// settle records outcomes, and starts deliveries that waited for them; false: the outcomes were not recorded.
func (d *delivering) settle(ctx context.Context, all []outcome) bool {
	s, tried, ok := d.courier.service, all[:0:0], true
	for _, o := range all {
		if o.result != "" {
			tried = append(tried, o)
		}
	}
	if len(tried) > 0 {
		// A successful delivery is recorded even if the process stops: otherwise it would be sent again.
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
		d.underWay -= len(rest) // the deliveries that wait are given up too
		delete(d.chains, chain)
	}
	return ok && len(tried) > 0
}

// learn updates the turn from the reply to recording outcomes.
func (d *delivering) learn(reply settleReply, tried []outcome) {
	s := d.courier.service
	s.metrics.dropped.Add(float64(reply.dropped))
	d.width = 1
	for _, o := range tried {
		if o.result == received {
			d.width = parallel
		}
	}
	if reply.off != "" {
		d.off = true
		s.metrics.disabled.Inc()
		s.log.Warn("a webhook was switched off", d.scope.LogAttr(), "webhookId", d.id, "reason", reply.off)
	}
}

// bury gives up the deliveries that wait for a disabled webhook.
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
