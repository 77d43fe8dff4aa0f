package lane

import (
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
)

// Lane is group commit: while one flush is under way the next one collects, so a batch is as large as the load
// makes it and an idle lane adds no wait. It is bounded; what does not fit is refused at once. Where very much waits, another flush
// may begin before the one that is under way has ended.
//
// What waits is spread over stripes, so that cores which put at the same time do not wait for one lock. Each
// stripe has its share of the limit.
type Lane[T any] struct {
	flush   func([]T) // gives every item its fate; the slice is the lane's again when it returns
	stripes []stripe[T]
	least   int          // items that must wait for a flush to begin beside another one
	running atomic.Int32 // flushes, and those that are about to begin
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

// minStripe is the least that a stripe's share of the limit may be: many times what is put at once, so that a lane is not full
// in one stripe while there is room in the others.
const minStripe = 8192

// New makes a lane in which limit items may wait, and flushers flushes may be under way at a time. Close it.
func New[T any](limit, stripes, flushers int, flush func([]T)) *Lane[T] {
	return NewOverlapping(limit, stripes, flushers, 1, flush)
}

// NewOverlapping is New for a lane whose flushes are worth more together: another one begins beside one that is under way only
// where least items wait.
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

// Refusal says what became of what was put.
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

// Put hands one item over; the flush decides its fate unless Put refuses it.
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

// PutAll hands over as many of the items as fit, together and in order, so that one flush takes them all.
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
			// Let the goroutines that are about to put run first: the batch doubles and both CPUs fall.
			runtime.Gosched()
			if !l.begin() {
				break // whoever flushes takes what waits
			}
			batch = l.drain(batch[:0])
			if len(batch) > 0 {
				l.flush(batch)
				clear(batch) // the batch must not keep what it carried alive
			}
			more, closed := l.end()
			if closed {
				l.signal() // the next flusher of this lane
				return
			}
			if !more {
				break
			}
		}
	}
}

// begin reports whether a flush may begin: there is no other, or enough waits for one beside it.
func (l *Lane[T]) begin() bool {
	for {
		if l.running.Add(1) == 1 || l.waiting() >= l.least {
			return true
		}
		if l.running.Add(-1) > 0 {
			return false
		}
		// All others have ended, or have seen this one and left what waits to it.
	}
}

// end is the end of what begin began. It reports whether anything waits, and else whether the lane is closed: whoever was woken for
// either meanwhile, and found a flush under way, has left it to that.
func (l *Lane[T]) end() (more, closed bool) {
	l.running.Add(-1)
	closed = l.closed.Load() // read before what waits: nothing is put after it
	more = l.waiting() > 0
	return more, closed && !more
}

// waiting returns how much waits.
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

// Close refuses new items, flushes what waits and returns when every item has its fate.
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

// Waiter is woken once, when the last of the things that it waits for has its fate.
type Waiter struct {
	left atomic.Int32
	ch   chan struct{}
}

var waiters = sync.Pool{New: func() any { return NewOwnWaiter() }}

// NewOwnWaiter returns a waiter that its owner keeps: Expect says how much is to be waited for, Await waits.
func NewOwnWaiter() *Waiter { return &Waiter{ch: make(chan struct{}, 1)} }

// NewWaiter takes a waiter for n things from a pool; Wait returns it there.
func NewWaiter(n int) *Waiter {
	w := waiters.Get().(*Waiter)
	w.Expect(n)
	return w
}

// Expect has the waiter wait until Done was called n times.
func (w *Waiter) Expect(n int) { w.left.Store(int32(n)) }

// Await returns when Done was called as often as expected.
func (w *Waiter) Await() { <-w.ch }

// Done says that one of the things has its fate.
func (w *Waiter) Done() {
	if w.left.Add(-1) == 0 {
		w.ch <- struct{}{}
	}
}

// Wait returns when Done was called as often as NewWaiter was told, and puts the waiter back into its pool.
func (w *Waiter) Wait() {
	w.Await()
	waiters.Put(w)
}
