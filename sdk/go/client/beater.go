package client

import (
	"context"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"
)

// maxBatch is how many beats one request has at most.
const maxBatch = 1000

// beater beats for all attempts of one client whose callbacks go to the same place, in one goroutine that lives while there
// are any. Attempts that are due by the next tick go together, so that after its first beat each is part of the crowd: one
// request a tick for up to maxBatch of them.
type beater struct {
	client *Client
	base   *endpoints
	wake   chan struct{} // something has changed

	mu      sync.Mutex
	free    sync.Cond // some attempts are not busy any more
	all     []*Attempt
	alive   bool // the goroutine runs
	closed  bool
	ticking bool      // some are due that are not new
	sending bool      // a request is under way
	until   time.Time // nothing is sent before: the server does not answer
	failed  int       // in a row
	since   time.Time // when the first of these was sent
	stretch float64   // of intervals, until the next tick; the first time by much, so that a fleet that starts together spreads

	// The sender's, of whom there is one at a time.
	batch  []*Attempt
	body   []byte
	answer []byte
}

func newBeater(c *Client, base *endpoints) *beater {
	b := &beater{client: c, base: base, wake: make(chan struct{}, 1), stretch: 0.5 + rand.Float64()/2}
	b.free.L = &b.mu
	return b
}

// add has an attempt beaten for, the first time at once.
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
	b.rouse()
	return true
}

// remove has nothing more sent for an attempt. It returns once no request is under way that names it.
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
	b.rouse()
}

// rouse has the goroutine look anew.
func (b *beater) rouse() {
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

func (b *beater) close() {
	b.mu.Lock()
	all := b.all
	b.all, b.closed = nil, true
	b.rouse()
	b.mu.Unlock()
	for _, a := range all {
		a.mu.Lock()
		a.close(ErrClosed)
		a.mu.Unlock()
	}
}

// run beats until there is nobody left to beat for. It never waits for a server, since leases end meanwhile.
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

// look ends leases that are over and collects who is due into the batch, which is then the sender's; wait is how long there is
// nothing to look at.
func (b *beater) look(now time.Time) (wait time.Duration, due, alive bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	wait, least, ticks := longest, longest, false
	for i := 0; i < len(b.all); i++ {
		a := b.all[i]
		if left, matters := (held{a}).Look(now); matters {
			wait = min(wait, left, lookEvery)
		}
		interval, ours := a.rhythm()
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
	for _, a := range b.all {
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

// tick begins or ends a tick. At its beginning whoever would be due before the next one is due: so all come together.
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
	// lookEvery is how often strict leases are looked at: timers stand still while a machine sleeps.
	lookEvery = time.Second
)

// rhythm is how often to beat; ours: it is to be beaten for.
func (a *Attempt) rhythm() (interval time.Duration, ours bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.interval, a.phase == running && a.cause == nil
}

// beat sends the beats of the batch and takes the answer in.
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
			set.log.Warn("No answer from Lubdub to heartbeats; trying again until there is one", "attempts", len(b.batch), "error", err)
		}
		pause = backoff(b.failed, b.patience(), err)
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
	b.rouse()
}

// limit is how long an answer is waited for: so long that there is time for another try.
func (b *beater) limit() time.Duration {
	least := b.client.set.timeout
	for _, a := range b.batch {
		a.mu.Lock()
		least = min(least, a.timeout/3)
		a.mu.Unlock()
	}
	return least
}

// patience is the longest pause between two tries: well within the shortest interval. The mutex is held.
func (b *beater) patience() time.Duration {
	least := 4 * maxPause
	for _, a := range b.batch {
		if interval, ours := a.rhythm(); ours {
			least = min(least, interval)
		}
	}
	return least / 4
}

// request is the one with the beats that were written.
func (b *beater) request() *call {
	return &call{method: http.MethodPost, path: "/v1/heartbeats", base: b.base, body: b.body, open: true, buffer: &b.answer, tries: 1,
		limit: b.limit()}
}

// write writes the request.
func (b *beater) write() {
	out := append(b.body[:0], `{"heartbeats":[`...)
	for i, a := range b.batch {
		if i > 0 {
			out = append(out, ',')
		}
		out = a.appendBeat(out)
	}
	b.body = append(out, `]}`...)
}
