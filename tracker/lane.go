package tracker

import (
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
)

// lane is group commit: while one flush is under way the next one collects, so a batch is as large as the load
// makes it and an idle lane adds no wait. It is bounded; what does not fit is refused at once.
//
// What waits is spread over stripes, so that cores which put at the same time do not wait for one lock. Each
// stripe has its share of the limit.
type lane[T any] struct {
	flush   func([]T) // gives every item its fate; the slice is the lane's again when it returns
	stripes []stripe[T]
	closed  atomic.Bool
	wake    chan struct{}
	done    sync.WaitGroup
}

type stripe[T any] struct {
	limit int

	mu      sync.Mutex
	pending []T
	closed  bool

	_ [64]byte // the next stripe begins on a cache line of its own
}

// minStripe is the least that a stripe's share of the limit may be: many times what is put in one go, so that a
// lane is not full in one stripe while there is room in the others.
const minStripe = 8192

func newLane[T any](limit, stripes, flushers int, flush func([]T)) *lane[T] {
	n := max(1, min(stripes, limit/minStripe))
	l := &lane[T]{flush: flush, stripes: make([]stripe[T], n), wake: make(chan struct{}, 1)}
	for i := range l.stripes {
		l.stripes[i].limit = limit / n
	}
	for range flushers {
		l.done.Go(l.run)
	}
	return l
}

type laneRefusal int

const (
	admitted laneRefusal = iota
	laneFull
	laneClosed
)

func (l *lane[T]) stripe() *stripe[T] {
	if len(l.stripes) == 1 {
		return &l.stripes[0]
	}
	return &l.stripes[rand.IntN(len(l.stripes))]
}

// put hands one item over; the flush decides its fate unless put refuses it.
func (l *lane[T]) put(item T) laneRefusal {
	s := l.stripe()
	s.mu.Lock()
	switch {
	case s.closed:
		s.mu.Unlock()
		return laneClosed
	case len(s.pending) >= s.limit:
		s.mu.Unlock()
		return laneFull
	}
	s.pending = append(s.pending, item)
	first := len(s.pending) == 1
	s.mu.Unlock()
	if first {
		l.signal()
	}
	return admitted
}

// putAll hands over what fits of items, together and in order, so that one flush takes them all.
func (l *lane[T]) putAll(items []T) (fit int, rest laneRefusal) {
	s := l.stripe()
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return 0, laneClosed
	}
	fit = min(len(items), s.limit-len(s.pending))
	first := len(s.pending) == 0 && fit > 0
	s.pending = append(s.pending, items[:fit]...)
	s.mu.Unlock()
	if first {
		l.signal()
	}
	if fit < len(items) {
		return fit, laneFull
	}
	return fit, admitted
}

func (l *lane[T]) signal() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

func (l *lane[T]) run() {
	var batch []T
	for range l.wake {
		for {
			// Let the goroutines that are about to put run first: the batch doubles and both CPUs fall.
			runtime.Gosched()
			closed := l.closed.Load() // before the look at what waits: nothing is put after it
			batch = l.drain(batch[:0])
			if len(batch) > 0 {
				l.flush(batch)
				clear(batch) // the batch must not keep what it carried alive
				continue
			}
			if closed {
				l.signal() // the next flusher of this lane
				return
			}
			break
		}
	}
}

func (l *lane[T]) drain(batch []T) []T {
	for i := range l.stripes {
		s := &l.stripes[i]
		s.mu.Lock()
		batch = append(batch, s.pending...)
		clear(s.pending)
		s.pending = s.pending[:0]
		s.mu.Unlock()
	}
	return batch
}

// close refuses new items, flushes what waits and returns when every item has its fate.
func (l *lane[T]) close() {
	for i := range l.stripes {
		s := &l.stripes[i]
		s.mu.Lock()
		s.closed = true
		s.mu.Unlock()
	}
	l.closed.Store(true)
	l.signal()
	l.done.Wait()
}

// waiter is woken once, when the last of the things that it waits for has its fate.
type waiter struct {
	left atomic.Int32
	ch   chan struct{}
}

var waiters = sync.Pool{New: func() any { return &waiter{ch: make(chan struct{}, 1)} }}

func newWaiter(n int) *waiter {
	w := waiters.Get().(*waiter)
	w.left.Store(int32(n))
	return w
}

func (w *waiter) done() {
	if w.left.Add(-1) == 0 {
		w.ch <- struct{}{}
	}
}

// wait returns when done was called as often as newWaiter was told, and gives the waiter back.
func (w *waiter) wait() {
	<-w.ch
	waiters.Put(w)
}
