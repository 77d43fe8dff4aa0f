package fleet

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"
)

// delays measures how long this process itself is kept from running: other processes on the machine delay both the show and a server in
// the same process. It is measured in two ways, and the larger result counts. A goroutine that wants to run every few
// milliseconds records how late it runs; and if the system reports how long threads were ready without running, their share of that
// is taken for everything that was done meanwhile.
type delays struct {
	threads func() (ran, waited time.Duration, ok bool) // of all threads since the process began; nil: unknown

	mu      sync.Mutex
	holds   []hold  // in order of time
	shares  []share // in order of time
	longest time.Duration
	total   time.Duration
}

// hold is a time in which something was ready to run, and nothing ran.
type hold struct{ from, until time.Time }

// share is how long the threads had run and waited up to a moment.
type share struct {
	at          time.Time
	ran, waited time.Duration
}

const (
	delayStep = 5 * time.Millisecond
	delayFine = 2 * time.Millisecond // the precision with which a system wakes a sleeper; shorter delays do not count
	shareStep = 100 * time.Millisecond
	keepHolds = 20_000
)

// measure records delays until the context ends.
func (d *delays) measure(ctx context.Context) {
	shared := time.Time{}
	for due := time.Now(); pause(ctx, time.Until(due)); due = time.Now().Add(delayStep) {
		now := time.Now()
		d.note(due, now)
		if d.threads != nil && now.Sub(shared) >= shareStep {
			shared = now
			d.noteShare(now)
		}
	}
}

func (d *delays) noteShare(now time.Time) {
	ran, waited, ok := d.threads()
	if !ok {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.shares) >= keepHolds {
		d.shares = slices.Delete(d.shares, 0, keepHolds/2)
	}
	d.shares = append(d.shares, share{now, ran, waited})
}

func (d *delays) note(due, ran time.Time) {
	if ran.Sub(due) < delayFine {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.holds) >= keepHolds { // a show may run for days
		d.holds = slices.Delete(d.holds, 0, keepHolds/2)
	}
	d.holds = append(d.holds, hold{due, ran})
	d.longest, d.total = max(d.longest, ran.Sub(due)), d.total+ran.Sub(due)
}

// within returns for how long of a period the process was held up.
func (d *delays) within(from, until time.Time) time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	return max(d.held(from, until), d.starved(from, until))
}

func (d *delays) held(from, until time.Time) (sum time.Duration) {
	first, _ := slices.BinarySearchFunc(d.holds, from, func(h hold, t time.Time) int { return h.until.Compare(t) })
	for _, h := range d.holds[first:] {
		if !h.from.Before(until) {
			break
		}
		sum += earlier(h.until, until).Sub(later(h.from, from))
	}
	return sum
}

func (d *delays) starved(from, until time.Time) time.Duration {
	byTime := func(s share, t time.Time) int { return s.at.Compare(t) }
	last, _ := slices.BinarySearchFunc(d.shares, until, byTime)
	first, exact := slices.BinarySearchFunc(d.shares, from, byTime)
	if !exact {
		first--
	}
	if first, last = max(first, 0), min(last, len(d.shares)-1); first >= last || !from.Before(until) {
		return 0
	}
	a, b := d.shares[first], d.shares[last]
	ran, waited := b.ran-a.ran, b.waited-a.waited
	if ran < 0 || waited <= 0 { // a thread has ended, and its counts are gone
		return 0
	}
	return time.Duration(float64(until.Sub(from)) * float64(waited) / float64(ran+waited))
}

// threadTimes reads from Linux, for all threads, how long they ran and how long they were ready, in nanoseconds. Other systems do not
// report it.
func threadTimes() (ran, waited time.Duration, ok bool) {
	files, err := filepath.Glob("/proc/self/task/*/schedstat")
	if err != nil {
		return 0, 0, false
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // the thread has just ended
		}
		var r, w int64
		if _, err := fmt.Sscan(string(text), &r, &w); err != nil {
			return 0, 0, false
		}
		ran, waited, ok = ran+time.Duration(r), waited+time.Duration(w), true
	}
	return ran, waited, ok
}

// sum returns the longest hold, and the total time for which the process was held up.
func (d *delays) sum() (longest, total time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.shares) > 0 {
		total = d.starved(d.shares[0].at, d.shares[len(d.shares)-1].at)
	}
	return d.longest, max(total, d.total)
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
