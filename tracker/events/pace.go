package events

import (
	"sync"
	"time"
)

// pace limits what one tenant's readers of stored events (pages, and streams from an old cursor) cost Redis. Each entry that they read is
// charged to the tenant of the request, whether it passes the filter or not. Streams and pages are charged separately, so that a tenant's
// streams do not delay its pages.
type pace struct {
	rate  int           // entries per second
	ahead time.Duration // how much a reader may read at once after a rest

	mu   sync.Mutex
	paid map[reader]time.Time // until when the rate is used up
}

// reader is the account that is charged.
type reader struct {
	tenant  string // "": a token for all tenants, in a request that names none
	streams bool
}

func newPace() *pace {
	return &pace{rate: readsPerSecond, ahead: readAhead, paid: map[reader]time.Time{}}
}

const (
	// readsPerSecond is the number of entries for each reader on a replica; Redis takes some 5 to 9 µs for one. The streams of a tenant
	// that continue from a cursor share it, and catch up only while all of them together read faster than events arrive.
	readsPerSecond = 20_000
	readAhead      = time.Second

	// pageWait is the longest that a page waits before it reads on. One that would wait longer ends, or is refused.
	pageWait = 250 * time.Millisecond
	// mostReaders is how many readers are kept before idle ones are forgotten.
	mostReaders = 1000
)

func (p *pace) timeFor(entries int) time.Duration {
	return time.Duration(entries) * time.Second / time.Duration(p.rate)
}

// reserve charges a reader for entries, and returns how long it must wait before it reads them. When that is longer than atMost, it
// charges nothing and ok is false.
func (p *pace) reserve(who reader, entries int, atMost time.Duration, now time.Time) (wait time.Duration, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	paid := p.paid[who]
	if paid.Before(now) {
		paid = now
	}
	if wait = max(0, paid.Sub(now)-p.ahead); wait > atMost {
		return wait, false
	}
	if len(p.paid) >= mostReaders {
		for other, until := range p.paid {
			if until.Before(now) {
				delete(p.paid, other)
			}
		}
	}
	p.paid[who] = paid.Add(p.timeFor(entries))
	return wait, true
}

// refund returns a part of a charge.
func (p *pace) refund(who reader, entries int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.paid[who] = p.paid[who].Add(-p.timeFor(entries))
}
