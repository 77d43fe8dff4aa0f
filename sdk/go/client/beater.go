package client

import (
	"context"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"
)

// maxBatch is the number of heartbeats per request.
const maxBatch = 1000

// beater sends heartbeats for all attempts of one client whose callbacks go to the same endpoints, in one goroutine that runs while there
// are any. Attempts due by the next tick share a request, so after its first heartbeat each attempt is part of the batch: one request per
// tick for up to maxBatch attempts.
type beater struct {
	client *Client
	base   *endpoints
	wake   chan struct{} // signals a change

	exchanger exchanger

	mu      sync.Mutex
	free    sync.Cond // some attempts are no longer busy
	all     []*Attempt
	alive   bool // the goroutine runs
	closed  bool
	ticking bool      // some attempts that are due are not new
	sending bool      // a request is in flight
	until   time.Time // nothing is sent before this time, since the server requested a pause
	failed  int       // in a row
	since   time.Time // when the first of these was sent
	stretch float64   // the share of an interval until the next tick; the first varies widely, to spread a fleet that starts at the same time

	// For the sender, of which there is one at a time.
	batch  []*Attempt
	body   []byte
	answer []byte
	first  *Attempt // the first one that the last request had no room to report on, with which the next begins; nil: none
}

func newBeater(c *Client, base *endpoints) *beater {
	b := &beater{client: c, base: base, wake: make(chan struct{}, 1), stretch: 0.5 + rand.Float64()/2}
	b.free.L = &b.mu
	b.exchanger = exchanger{client: c, base: base}
	return b
}

// add starts heartbeats for an attempt, the first one at once.
func (b *beater) add(a *Attempt) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return false
	}
	a.at, a.fresh, a.due = len(b.all), true, b.client.set.clock.Now()
	b.all = append(b.all, a)
	if !b.alive {
		b.alive = true
		go b.run()
	}
	b.wakeLoop()
	return true
}

// remove stops heartbeats for an attempt, and returns when no request in flight includes it.
func (b *beater) remove(a *Attempt) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.drop(a)
	for a.busy {
		b.free.Wait()
	}
}

func (b *beater) drop(a *Attempt) {
	if a.at < 0 || a.at >= len(b.all) || b.all[a.at] != a {
		return
	}
	last := len(b.all) - 1
	b.all[a.at], b.all[last].at = b.all[last], a.at
	b.all[last] = nil
	b.all, a.at = b.all[:last], -1
	if last == 0 {
		b.all = nil
	}
	b.wakeLoop()
}

// wakeLoop wakes the goroutine.
func (b *beater) wakeLoop() {
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

func (b *beater) close() {
	b.mu.Lock()
	all := b.all
	b.all, b.closed = nil, true
	b.wakeLoop()
	b.mu.Unlock()
	for _, a := range all {
		a.mu.Lock()
		a.close(ErrClosed)
		a.mu.Unlock()
	}
}

// run sends heartbeats until there are no attempts left. It never waits for a server, since leases may expire meanwhile.
func (b *beater) run() {
	c := b.client.set.clock
	for {
		wait, due, alive := b.look(c.Now())
		if !alive {
			return
		}
		if due {
			go b.beat()
		}
		t := c.NewTimer(wait)
		select {
		case <-t.C():
		case <-b.wake:
		}
		t.Stop()
	}
}

// look ends expired leases and collects the attempts that are due into the batch, which then belongs to the sender; wait is how long there
// is nothing to do.
func (b *beater) look(now time.Time) (wait time.Duration, due, alive bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	wait, least, ticks := longest, longest, false
	for i := 0; i < len(b.all); i++ {
		a := b.all[i]
		if left, matters := (held{a}).Look(now); matters {
			wait = min(wait, left, lookEvery)
		}
		interval, ours := a.heartbeatInterval()
		if !ours {
			b.drop(a)
			i--
			continue
		}
		least = min(least, interval)
		ticks = ticks || (!a.fresh && !a.due.After(now))
	}
	if len(b.all) == 0 && !b.sending {
		b.alive = false
		return 0, false, false
	}
	if b.sending {
		return max(0, wait), false, true
	}
	if b.until.After(now) {
		return max(0, min(wait, b.until.Sub(now))), false, true
	}
	b.tick(now, least, ticks)
	from := 0
	if b.first != nil {
		from = max(0, b.first.at)
	}
	for i := range b.all {
		a := b.all[(from+i)%len(b.all)]
		switch {
		case a.due.After(now):
			wait = min(wait, a.due.Sub(now))
		case len(b.batch) < maxBatch:
			a.busy = true
			b.batch = append(b.batch, a)
		}
	}
	b.sending = len(b.batch) > 0
	return max(0, wait), b.sending, true
}

// tick starts or ends a tick. At its start, attempts that would be due before the next one become due, so that they share a request.
func (b *beater) tick(now time.Time, least time.Duration, ticks bool) {
	if ticks && !b.ticking {
		b.stretch = 0.9 + rand.Float64()/10
		for _, a := range b.all {
			if a.due.Before(now.Add(least)) {
				a.due = now
			}
		}
	}
	b.ticking = ticks
}

const (
	longest = time.Hour
	// lookEvery is the pause between two checks of strict leases: timers stop while the host sleeps.
	lookEvery = time.Second
)

// heartbeatInterval returns the heartbeat interval; ours: the attempt needs heartbeats.
func (a *Attempt) heartbeatInterval() (interval time.Duration, ours bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.interval, a.phase == running && a.cause == nil
}

// beat sends the batch and applies the answer.
func (b *beater) beat() {
	set := b.client.set
	sent := set.clock.Now()
	b.write()
	err := b.client.do(context.Background(), b.request())
	took := set.clock.Now().Sub(sent)
	pause := time.Duration(0)
	if err == nil {
		pause, err = b.take(sent)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	result := "ok"
	if err != nil {
		result = "unanswered"
		if !again(err) && causeOfError(err) == nil {
			result = "refused"
		}
		if b.failed == 0 {
			b.since = sent
			set.log.Warn("No answer from Lubdub to heartbeats; they are retried", "attempts", len(b.batch), "error", err)
		}
		pause = backoff(b.failed, b.longestPause(), err)
		b.failed++
	} else {
		if b.failed > 0 {
			set.log.Info("Lubdub answers again", "after", set.clock.Now().Sub(b.since).Round(time.Millisecond))
		}
		b.failed = 0
	}
	set.metrics.Beat(result, len(b.batch), took)
	if pause > 0 {
		b.until = set.clock.Now().Add(pause)
	}
	for i, a := range b.batch {
		a.busy = false
		b.batch[i] = nil
	}
	b.batch, b.sending = b.batch[:0], false
	b.free.Broadcast()
	b.wakeLoop()
}

// limit is how long to wait for an answer: short enough to leave time for another try.
func (b *beater) limit() time.Duration {
	least := b.client.set.timeout
	for _, a := range b.batch {
		a.mu.Lock()
		least = min(least, a.timeout/3)
		a.mu.Unlock()
	}
	return least
}

// longestPause is the longest pause between two tries: well within the shortest interval. The mutex is held.
func (b *beater) longestPause() time.Duration {
	least := 4 * maxPause
	for _, a := range b.batch {
		if interval, ours := a.heartbeatInterval(); ours {
			least = min(least, interval)
		}
	}
	return least / 4
}

// request returns the call with the written heartbeats.
func (b *beater) request() *call {
	return &call{method: http.MethodPost, path: "/v1/heartbeats", base: b.base, body: b.body, open: true, buffer: &b.answer, tries: 1,
		limit: b.limit()}
}

// write encodes the request.
func (b *beater) write() {
	out := append(b.body[:0], `{"heartbeats":[`...)
	b.first = nil
	for i, a := range b.batch {
		if i > 0 {
			out = append(out, ',')
		}
		var whole bool
		if out, whole = a.appendBeat(out); !whole && b.first == nil {
			b.first = a
		}
	}
	b.body = append(out, `]}`...)
}
