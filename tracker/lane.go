package tracker

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// lane is group commit: while one flush is under way the next one collects, so a batch is as large as the load
// makes it and an idle lane adds no wait. It is bounded; what does not fit is refused at once.
type lane[T any] struct {
	limit int       // items that may wait
	flush func([]T) // gives every item its fate; the slice is the lane's again when it returns

	mu      sync.Mutex
	pending []T
	closed  bool
	wake    chan struct{}
	done    sync.WaitGroup
}

func newLane[T any](limit, flushers int, flush func([]T)) *lane[T] {
	l := &lane[T]{limit: limit, flush: flush, wake: make(chan struct{}, 1)}
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

// put hands one item over; the flush decides its fate unless put refuses it.
func (l *lane[T]) put(item T) laneRefusal {
	l.mu.Lock()
	switch {
	case l.closed:
		l.mu.Unlock()
		return laneClosed
	case len(l.pending) >= l.limit:
		l.mu.Unlock()
		return laneFull
	}
	l.pending = append(l.pending, item)
	first := len(l.pending) == 1
	l.mu.Unlock()
	if first {
		l.signal()
	}
	return admitted
}

// putAll hands over what fits of items, together and in order, so that one flush takes them all.
func (l *lane[T]) putAll(items []T) (fit int, rest laneRefusal) {
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return 0, laneClosed
	}
	fit = min(len(items), l.limit-len(l.pending))
	first := len(l.pending) == 0 && fit > 0
	l.pending = append(l.pending, items[:fit]...)
	l.mu.Unlock()
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
	var spare []T
	for range l.wake {
		for {
			// Let the goroutines that are about to put run first: the batch doubles and both CPUs fall.
			runtime.Gosched()
			l.mu.Lock()
			batch, closed := l.pending, l.closed
			l.pending, spare = spare, nil
			l.mu.Unlock()
			if len(batch) > 0 {
				l.flush(batch)
				clear(batch) // the batch must not keep what it carried alive
				spare = batch[:0]
				continue
			}
			spare = batch
			if closed {
				l.signal() // the next flusher of this lane
				return
			}
			break
		}
	}
}

// close refuses new items, flushes what waits and returns when every item has its fate.
func (l *lane[T]) close() {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
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
