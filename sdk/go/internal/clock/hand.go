package clock

import (
	"slices"
	"sync"
	"time"
)

// Hand is a clock that moves only when a test moves it. Its zero value cannot be used; NewHand returns one.
type Hand struct {
	mu      sync.Mutex
	changed *sync.Cond // the waiters have changed
	now     time.Time
	waiting []*waiting // the earliest first
	fired   []chan time.Time
	calls   int // of AfterFunc that have not returned
}

type waiting struct {
	at  time.Time
	run func(time.Time)
}

// NewHand returns a clock that shows a time.
func NewHand(at time.Time) *Hand {
	h := &Hand{now: at.Round(0)}
	h.changed = sync.NewCond(&h.mu)
	return h
}

// Now is the time that the clock shows.
func (h *Hand) Now() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.now
}

// AfterFunc implements Clock.
func (h *Hand) AfterFunc(d time.Duration, f func()) func() bool {
	return h.add(d, func(time.Time) {
		h.calls++
		go func() {
			defer func() {
				h.mu.Lock()
				defer h.mu.Unlock()
				h.calls--
			}()
			f()
		}()
	})
}

// NewTimer implements Clock.
func (h *Hand) NewTimer(d time.Duration) Timer {
	c := make(chan time.Time, 1)
	return handTimer{c, h.add(d, func(at time.Time) {
		c <- at
		h.fired = append(h.fired, c)
	}), h}
}

// Unread is the number of timers that have fired and were not read yet, and of functions that have not returned.
func (h *Hand) Unread() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.fired = slices.DeleteFunc(h.fired, func(c chan time.Time) bool { return len(c) == 0 })
	return len(h.fired) + h.calls
}

type handTimer struct {
	c    chan time.Time
	stop func() bool
	hand *Hand
}

func (t handTimer) C() <-chan time.Time { return t.c }

// Stop no longer counts a value that was not read.
func (t handTimer) Stop() bool {
	stopped := t.stop()
	t.hand.mu.Lock()
	defer t.hand.mu.Unlock()
	t.hand.fired = slices.DeleteFunc(t.hand.fired, func(c chan time.Time) bool { return c == t.c })
	return stopped
}

func (h *Hand) add(d time.Duration, run func(time.Time)) (stop func() bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	w := &waiting{h.now.Add(d), run}
	if d <= 0 {
		run(h.now)
		return func() bool { return false }
	}
	i, _ := slices.BinarySearchFunc(h.waiting, w, func(a, b *waiting) int {
		if a.at.After(b.at) {
			return 1
		}
		return -1 // those with the same time in order of creation
	})
	h.waiting = slices.Insert(h.waiting, i, w)
	h.changed.Broadcast()
	return func() bool {
		h.mu.Lock()
		defer h.mu.Unlock()
		i := slices.Index(h.waiting, w)
		if i >= 0 {
			h.waiting = slices.Delete(h.waiting, i, i+1)
		}
		return i >= 0
	}
}

// Advance moves the clock by d. Waiters are woken in order, each at its own time.
func (h *Hand) Advance(d time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	until := h.now.Add(d)
	for len(h.waiting) > 0 && !h.waiting[0].at.After(until) {
		w := h.waiting[0]
		h.waiting = h.waiting[1:]
		h.now = w.at
		w.run(h.now)
	}
	h.now = until
	h.changed.Broadcast()
}

// Jump moves the clock by d as if the host had slept: no waiter is woken on the way, and all that are due at the end.
func (h *Hand) Jump(d time.Duration) {
	h.mu.Lock()
	h.now = h.now.Add(d)
	h.mu.Unlock()
	h.Advance(0)
}

// Await waits until at least n waiters wait for the clock.
func (h *Hand) Await(n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for len(h.waiting) < n {
		h.changed.Wait()
	}
}

// Next is how long until the next waiter is due, or false without a waiter.
func (h *Hand) Next() (time.Duration, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.waiting) == 0 {
		return 0, false
	}
	return h.waiting[0].at.Sub(h.now), true
}
