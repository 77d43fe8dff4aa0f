package lane

import (
	"sync"
	"time"
)

// Turns is a lane for work that leaves most of the time to other work. It flushes a few items at a time, and rests after a flush if other
// work ran meanwhile. Submitters take turns: one with many items delays another by one flush only.
type Turns[T any] struct {
	flush    func([]T) (alone bool) // handles every item; the lane reuses the slice afterwards
	limit    int                    // maximum number of waiting items
	maxBatch int                    // maximum number of items of a flush
	rests    Rests

	mu      sync.Mutex
	pending map[string][]T // by submitter
	order   []string       // the submitters, the next one first
	waiting int            // number of pending items
	closed  bool
	wake    chan struct{} // an item waits, or the lane is closed
	closing chan struct{}
	done    sync.WaitGroup
}

// Rests is how long a lane rests after a flush that was not alone: Times the duration of the flush, at most Longest, since a busy machine
// makes flushes longer too. The rest is shorter the more items wait, so that none waits too long; with UntilWaiting items or more there is
// none.
type Rests struct {
	Times, UntilWaiting int
	Longest             time.Duration
}

// after returns the rest after a flush of that duration, with that many waiting items.
func (r Rests) after(took time.Duration, waiting int) time.Duration {
	if waiting >= r.UntilWaiting {
		return 0
	}
	return min(took*time.Duration(r.Times), r.Longest) * time.Duration(r.UntilWaiting-waiting) / time.Duration(r.UntilWaiting)
}

// NewTurns returns a lane in which at most `limit` items wait. It flushes at most maxBatch items at a time; a flush reports whether it was
// alone, that is, whether no other work ran meanwhile. Call Close at the end.
func NewTurns[T any](limit, maxBatch int, rests Rests, flush func([]T) (alone bool)) *Turns[T] {
	l := &Turns[T]{
		flush: flush, limit: limit, maxBatch: maxBatch, rests: rests,
		pending: map[string][]T{}, wake: make(chan struct{}, 1), closing: make(chan struct{}),
	}
	l.done.Go(l.run)
	return l
}

// PutAll adds as many of a submitter's items as fit, in order. It returns how many fit, and why the others were refused.
func (l *Turns[T]) PutAll(who string, items []T) (fit int, why Refusal) {
	if len(items) == 0 {
		return 0, Admitted
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return 0, Closed
	}
	if fit = min(len(items), l.limit-l.waiting); fit > 0 {
		if len(l.pending[who]) == 0 {
			l.order = append(l.order, who)
		}
		l.pending[who] = append(l.pending[who], items[:fit]...)
		l.waiting += fit
		l.signal()
	}
	if fit < len(items) {
		return fit, Full
	}
	return fit, Admitted
}

func (l *Turns[T]) signal() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

func (l *Turns[T]) run() {
	batch := make([]T, 0, l.maxBatch)
	for {
		var closed bool
		if batch, closed = l.next(batch[:0]); len(batch) == 0 {
			if closed {
				return
			}
			<-l.wake
			continue
		}
		start := time.Now()
		alone := l.flush(batch)
		clear(batch) // the batch must not keep its items alive
		if !alone {
			l.rest(l.rests.after(time.Since(start), l.countWaiting()))
		}
	}
}

func (l *Turns[T]) countWaiting() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.waiting
}

// next takes the items of the next flush: those of the next submitter and, if there is room, of the submitters after it.
func (l *Turns[T]) next(batch []T) (_ []T, closed bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for len(batch) < l.maxBatch && len(l.order) > 0 {
		who := l.order[0]
		l.order = l.order[1:]
		items := l.pending[who]
		n := min(l.maxBatch-len(batch), len(items))
		batch = append(batch, items[:n]...)
		clear(items[:n])
		if n < len(items) {
			l.pending[who] = items[n:]
			l.order = append(l.order, who)
		} else {
			delete(l.pending, who)
		}
	}
	l.waiting -= len(batch)
	return batch, l.closed
}

// rest waits, unless the lane is closed: its last items are not delayed.
func (l *Turns[T]) rest(d time.Duration) {
	if d <= 0 {
		return
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-l.closing:
	}
}

// Close refuses new items, flushes the waiting ones, and returns once every item has been handled.
func (l *Turns[T]) Close() {
	l.mu.Lock()
	if !l.closed {
		l.closed = true
		close(l.closing)
		l.signal()
	}
	l.mu.Unlock()
	l.done.Wait()
}
