package clock

import (
	"slices"
	"sync"
	"time"
)

// Hand is a clock that goes only when it is told to. Its zero value is not of use; NewHand makes one.
type Hand struct {
	mu      sync.Mutex
	changed *sync.Cond // what waits has changed
	now     time.Time
	waiting []*waiting // the earliest first
	fired   []chan time.Time
	calls   int // of AfterFunc that have not returned
}

type waiting struct {
	at  time.Time
	run func(time.Time)
}

// NewHand makes a clock that stands at a time.
func NewHand(at time.Time) *Hand {
	h := &Hand{now: at.Round(0)}
	h.changed = sync.NewCond(&h.mu)
	return h
}

// Now is the time at which the clock stands.
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

// Unread is how many timers have fired that nobody has looked at yet, and functions that have not returned.
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

// Stop takes what nobody has read out of account.
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
		return -1 // those of the same time in the order in which they came
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

// Advance lets d pass. Whatever comes due is woken in its order, each at its own time.
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

// Jump lets d pass as while the machine sleeps: nothing is woken on the way, and all that is due at the end.
func (h *Hand) Jump(d time.Duration) {
	h.mu.Lock()
	h.now = h.now.Add(d)
	h.mu.Unlock()
	h.Advance(0)
}

// Await waits until at least n wait for the clock.
func (h *Hand) Await(n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for len(h.waiting) < n {
		h.changed.Wait()
	}
}

// Next is how long it takes until the next one is woken; false: nobody waits.
func (h *Hand) Next() (time.Duration, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.waiting) == 0 {
		return 0, false
	}
	return h.waiting[0].at.Sub(h.now), true
}
