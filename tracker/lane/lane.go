package lane

import (
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
)

// Lane is group commit: while one flush runs, the next batch collects, so that a batch is as large as the load makes it and an idle lane
// adds no wait. It is bounded, and refuses what does not fit at once. When enough items wait, another flush may start before the running
// one ends.
//
// Waiting items are spread over stripes, so that cores which put at the same time do not wait for one lock. Each stripe has its share of
// the limit.
type Lane[T any] struct {
	flush   func([]T) // handles every item; the lane reuses the slice when it returns
	stripes []stripe[T]
	least   int          // items that must wait to start a concurrent flush
	running atomic.Int32 // flushes that run or are about to start
	closed  atomic.Bool
	wake    chan struct{}
	done    sync.WaitGroup
}

type stripe[T any] struct {
	limit int

	mu      sync.Mutex
	pending []T
	closed  bool

	_ [64]byte // so that the next stripe starts on another cache line
}

// minStripe is the smallest share of the limit that a stripe may have: many times the size of one put, so that no stripe is full while
// there is space in the others.
const minStripe = 8192

// New returns a lane in which `limit` items may wait and `flushers` flushes may run concurrently. Close it at the end.
func New[T any](limit, stripes, flushers int, flush func([]T)) *Lane[T] {
	return NewOverlapping(limit, stripes, flushers, 1, flush)
}

// NewOverlapping is New for a lane whose flushes are more efficient when they are large: a concurrent flush starts only when `least`
// items wait.
func NewOverlapping[T any](limit, stripes, flushers, least int, flush func([]T)) *Lane[T] {
	n := max(1, min(stripes, limit/minStripe))
	l := &Lane[T]{flush: flush, stripes: make([]stripe[T], n), least: least, wake: make(chan struct{}, 1)}
	for i := range l.stripes {
		l.stripes[i].limit = limit / n
	}
	for range flushers {
		l.done.Go(l.run)
	}
	return l
}

// Refusal is the result of a put.
type Refusal int

const (
	Admitted Refusal = iota
	Full
	Closed
)

func (l *Lane[T]) stripe() *stripe[T] {
	if len(l.stripes) == 1 {
		return &l.stripes[0]
	}
	return &l.stripes[rand.IntN(len(l.stripes))]
}

// Put adds one item, and returns why if it refuses it. An admitted item is passed to a flush.
func (l *Lane[T]) Put(item T) Refusal {
	s := l.stripe()
	s.mu.Lock()
	switch {
	case s.closed:
		s.mu.Unlock()
		return Closed
	case len(s.pending) >= s.limit:
		s.mu.Unlock()
		return Full
	}
	s.pending = append(s.pending, item)
	worth := len(s.pending) == 1 || len(s.pending) == l.least
	s.mu.Unlock()
	if worth {
		l.signal()
	}
	return Admitted
}

// PutAll adds as many of the items as fit, together and in order, so that one flush handles them all. It returns how many fit, and why
// the rest was refused.
func (l *Lane[T]) PutAll(items []T) (fit int, rest Refusal) {
	s := l.stripe()
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return 0, Closed
	}
	before := len(s.pending)
	fit = min(len(items), s.limit-before)
	s.pending = append(s.pending, items[:fit]...)
	worth := before == 0 && fit > 0 || before < l.least && before+fit >= l.least
	s.mu.Unlock()
	if worth {
		l.signal()
	}
	if fit < len(items) {
		return fit, Full
	}
	return fit, Admitted
}

func (l *Lane[T]) signal() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

func (l *Lane[T]) run() {
	var batch []T
	for range l.wake {
		for {
			// Let goroutines that are about to put run first: the batch doubles, and client and Redis use less CPU.
			runtime.Gosched()
			if !l.begin() {
				break // a running flush takes what waits
			}
			batch = l.drain(batch[:0])
			if len(batch) > 0 {
				l.flush(batch)
				clear(batch) // the batch must not keep its items alive
			}
			more, closed := l.end()
			if closed {
				l.signal() // wake the next flusher of this lane
				return
			}
			if !more {
				break
			}
		}
	}
}

// begin reports whether a flush may start: no other one runs, or enough items wait for a concurrent one.
func (l *Lane[T]) begin() bool {
	for {
		if l.running.Add(1) == 1 || l.waiting() >= l.least {
			return true
		}
		if l.running.Add(-1) > 0 {
			return false
		}
		// All others have ended, or have seen this one and rely on it for the waiting items.
	}
}

// end ends a flush that begin has started. It reports whether items wait, and if none does, whether the lane is closed: a flusher that
// was woken for either meanwhile, and found a running flush, relied on that flush.
func (l *Lane[T]) end() (more, closed bool) {
	l.running.Add(-1)
	closed = l.closed.Load() // read before the waiting items: none is added after it
	more = l.waiting() > 0
	return more, closed && !more
}

// waiting returns the number of waiting items.
func (l *Lane[T]) waiting() (n int) {
	for i := range l.stripes {
		s := &l.stripes[i]
		s.mu.Lock()
		n += len(s.pending)
		s.mu.Unlock()
	}
	return n
}

func (l *Lane[T]) drain(batch []T) []T {
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

// Close refuses new items, flushes the waiting ones, and returns when every item was handled.
func (l *Lane[T]) Close() {
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

// Waiter is woken once, by the last of the calls of Done that it waits for.
type Waiter struct {
	left atomic.Int32
	ch   chan struct{}
}

var waiters = sync.Pool{New: func() any { return NewOwnWaiter() }}

// NewOwnWaiter returns a waiter outside the pool: call Expect, then Await.
func NewOwnWaiter() *Waiter { return &Waiter{ch: make(chan struct{}, 1)} }

// NewWaiter returns a waiter for n calls of Done from a pool; Wait returns it there.
func NewWaiter(n int) *Waiter {
	w := waiters.Get().(*Waiter)
	w.Expect(n)
	return w
}

// Expect sets how many calls of Done the waiter waits for.
func (w *Waiter) Expect(n int) { w.left.Store(int32(n)) }

// Await waits until Done was called as often as expected.
func (w *Waiter) Await() { <-w.ch }

// Done counts one finished item.
func (w *Waiter) Done() {
	if w.left.Add(-1) == 0 {
		w.ch <- struct{}{}
	}
}

// Wait waits until Done was called n times, and returns the waiter to its pool.
func (w *Waiter) Wait() {
	w.Await()
	waiters.Put(w)
}
