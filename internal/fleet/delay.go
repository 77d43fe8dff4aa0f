package fleet

import (
	"context"
	"slices"
	"sync"
	"time"
)

// delays measures how long this process itself is kept from running: a goroutine that wants to run every few
// milliseconds notes how much later than that it does. What shares the machine with the show, or with a server in the
// same process, delays everything in it likewise.
type delays struct {
	mu      sync.Mutex
	holds   []hold // in order of time
	longest time.Duration
	total   time.Duration
}

// hold is a time in which something was ready to run, and nothing ran.
type hold struct{ from, until time.Time }

const (
	delayStep = 5 * time.Millisecond
	delayFine = 2 * time.Millisecond // how exactly a system wakes anyone who sleeps; below it nothing was held up
	keepHolds = 20_000
)

// measure notes delays until the context ends.
func (d *delays) measure(ctx context.Context) {
	for due := time.Now().Add(delayStep); pause(ctx, time.Until(due)); due = time.Now().Add(delayStep) {
		d.note(due, time.Now())
	}
}

func (d *delays) note(due, ran time.Time) {
	if ran.Sub(due) < delayFine {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.holds) >= keepHolds { // a show may go on for days
		d.holds = slices.Delete(d.holds, 0, keepHolds/2)
	}
	d.holds = append(d.holds, hold{due, ran})
	d.longest, d.total = max(d.longest, ran.Sub(due)), d.total+ran.Sub(due)
}

// within tells for how long of a time the process was held up.
func (d *delays) within(from, until time.Time) (sum time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	first, _ := slices.BinarySearchFunc(d.holds, from, func(h hold, t time.Time) int { return h.until.Compare(t) })
	for _, h := range d.holds[first:] {
		if !h.from.Before(until) {
			break
		}
		sum += earlier(h.until, until).Sub(later(h.from, from))
	}
	return sum
}

// sum gives the longest hold and all of them together.
func (d *delays) sum() (longest, total time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.longest, d.total
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
