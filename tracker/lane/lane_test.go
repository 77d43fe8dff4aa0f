package lane

import (
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"
)

// TestLaneGivesEachItemOneResult puts from many goroutines while the lane closes: admitted items are flushed once, refused ones never.
func TestLaneGivesEachItemOneResult(t *testing.T) {
	const putters, each = 8, 5000
	flushed := make([]int, putters*each)
	l := New(4*minStripe, 4, 1, func(batch []int) {
		for _, item := range batch {
			flushed[item]++ // a single flusher needs no lock
		}
	})
	if len(l.stripes) != 4 {
		t.Fatalf("%d stripes, want 4", len(l.stripes))
	}
	let := make([]int, putters*each)
	var wg sync.WaitGroup
	for p := range putters {
		wg.Go(func() {
			for i := range each {
				item := p*each + i
				if l.Put(item) == Admitted {
					let[item] = 1
				}
				if p == 0 && i == each/2 {
					go l.Close()
				}
			}
		})
	}
	wg.Wait()
	l.Close()
	if !slices.Equal(let, flushed) {
		t.Error("some accepted items were not flushed exactly once, or refused ones were")
	}
	if r := l.Put(0); r != Closed {
		t.Errorf("a closed lane answers %v", r)
	}
}

// TestLaneKeepsAGroupTogether: one flush gets the items of one put, in order, and those that do not fit are refused.
func TestLaneKeepsAGroupTogether(t *testing.T) {
	const limit = 2 * minStripe
	flushes := make(chan []int, 100)
	l := New(limit, 2, 1, func(batch []int) { flushes <- slices.Clone(batch) })
	group := make([]int, limit/2+10)
	for i := range group {
		group[i] = i
	}
	fit, r := l.PutAll(group)
	if fit != limit/2 || r != Full {
		t.Errorf("%d fit (%v), want a stripe's share of %d", fit, r, limit/2)
	}
	if got := <-flushes; !slices.Equal(got, group[:fit]) {
		t.Errorf("the first flush took %d items, want the %d that fit, in order", len(got), fit)
	}
	l.Close()
}

func TestSmallLaneIsExact(t *testing.T) {
	hold, held := make(chan struct{}), make(chan struct{})
	l := New(2, 8, 1, func([]int) { held <- struct{}{}; <-hold })
	l.Put(0)
	<-held // the flusher is busy: items wait from here on
	for i, want := range []Refusal{Admitted, Admitted, Full} {
		if got := l.Put(i); got != want {
			t.Errorf("put %d: %v, want %v", i, got, want)
		}
	}
	close(hold)
	<-held
	l.Close()
}

// TestASecondFlushBeginsWhereEnoughWaits: few items wait for the running flush, and go together; many start a second one.
func TestASecondFlushBeginsWhereEnoughWaits(t *testing.T) {
	const least = 3
	hold, flushes := make(chan struct{}), make(chan []int, 10)
	l := NewOverlapping(100, 1, 2, least, func(batch []int) {
		flushes <- slices.Clone(batch)
		<-hold
	})
	l.Put(0)
	if got := <-flushes; len(got) != 1 {
		t.Fatalf("%v", got)
	}
	l.Put(1)
	l.Put(2)
	if l.begin() {
		t.Error("a second flush begins though few items wait")
	}
	l.Put(3)
	if got := <-flushes; !slices.Equal(got, []int{1, 2, 3}) {
		t.Errorf("the second flush took %v", got)
	}
	l.PutAll([]int{4, 5})
	l.PutAll([]int{6, 7, 8})
	hold <- struct{}{} // either one
	if got := <-flushes; !slices.Equal(got, []int{4, 5, 6, 7, 8}) {
		t.Errorf("what was put meanwhile was flushed as %v", got)
	}
	close(hold)
	l.Close()
	if l.running.Load() != 0 {
		t.Errorf("%d flushes run", l.running.Load())
	}
}

// TestWhatWaitsWakesAFlusher: the first item wakes one, and so does the item that makes enough for a concurrent flush.
func TestWhatWaitsWakesAFlusher(t *testing.T) {
	l := NewOverlapping[int](100, 1, 0, 3, nil)
	woken := func() bool {
		select {
		case <-l.wake:
			return true
		default:
			return false
		}
	}
	put := map[string]func(int){"Put": func(int) { l.Put(0) }, "PutAll": func(n int) { l.PutAll(make([]int, n)) }}
	for name, put := range put {
		for i, want := range []bool{true, false, true, false} {
			if put(1); woken() != want {
				t.Errorf("%s: item %d: woken %v, want %v", name, i, !want, want)
			}
		}
		l.drain(nil)
	}
	l.PutAll([]int{1})
	woken()
	if l.PutAll([]int{2, 3, 4, 5}); !woken() {
		t.Error("many items woke no flush")
	}
}

// TestAFlusherDoesNotRelyOnOneThatHasEnded: the running flush that it found has ended meanwhile.
func TestAFlusherDoesNotRelyOnOneThatHasEnded(t *testing.T) {
	l := NewOverlapping[int](100, 1, 0, 3, nil)
	l.Put(1)
	l.running.Store(1)
	s := &l.stripes[0]
	s.mu.Lock() // so that it stops while it counts the waiting items
	began := make(chan bool)
	go func() { began <- l.begin() }()
	for until := time.Now().Add(time.Minute); l.running.Load() != 2; runtime.Gosched() {
		if time.Now().After(until) {
			t.Fatal("the second flusher has not begun within a minute")
		}
	}
	l.running.Add(-1)
	s.mu.Unlock()
	if !<-began {
		t.Error("no flush takes the waiting items")
	}
}

// TestAnItemPutAfterTheDrainIsTaken: a flusher that has found no items, but has not ended, must take the item for which another one was
// woken meanwhile.
func TestAnItemPutAfterTheDrainIsTaken(t *testing.T) {
	l := NewOverlapping[int](minStripe, 1, 0, 2, nil)
	if !l.begin() || len(l.drain(nil)) != 0 {
		t.Fatal("the first does not begin, or finds something")
	}
	l.Put(1)
	if l.begin() {
		t.Fatal("a second flush begins for one item")
	}
	if more, _ := l.end(); !more {
		t.Error("the first leaves what the other has left to it")
	}
	if !l.begin() || len(l.drain(nil)) != 1 {
		t.Error("what waits is not taken by the first")
	}
	if more, closed := l.end(); more || closed {
		t.Errorf("something else waits %v, the lane is closed %v", more, closed)
	}
}

// TestACloseAfterTheDrainIsNoticed: a flusher that started before the lane was closed must notice what another one was woken for.
func TestACloseAfterTheDrainIsNoticed(t *testing.T) {
	l := NewOverlapping[int](minStripe, 1, 0, 2, nil)
	if !l.begin() || len(l.drain(nil)) != 0 {
		t.Fatal("the first does not begin, or finds something")
	}
	l.Close()
	if l.begin() {
		t.Fatal("a second flush begins without items")
	}
	if more, closed := l.end(); more || !closed {
		t.Errorf("something waits %v, the lane is closed %v", more, closed)
	}
}

// TestOverlappingLanesClose closes lanes at any moment of their flushers.
func TestOverlappingLanesClose(t *testing.T) {
	for i := range 20_000 {
		l := NewOverlapping(minStripe, 1, 1+i%3, 3, func([]int) {})
		if i%2 == 0 {
			l.Put(i)
		}
		l.Close()
	}
}

// TestFewItemsAreNeverLeftBehind: however concurrent flushes start and end, waiting items are handled.
func TestFewItemsAreNeverLeftBehind(t *testing.T) {
	t.Run("of one", func(t *testing.T) { fewItems(t, 1, 100_000) })
	t.Run("of some", func(t *testing.T) { fewItems(t, 4, 20_000) })
}

func fewItems(t *testing.T, putters, each int) {
	l := NewOverlapping(minStripe, 1, 3, 3, func(batch []*sync.WaitGroup) {
		for _, item := range batch {
			item.Done()
		}
	})
	var all sync.WaitGroup
	for p := range putters {
		all.Go(func() {
			var results sync.WaitGroup
			for i := range each {
				results.Add(1)
				if l.Put(&results) != Admitted {
					t.Error("refused")
					results.Done()
				}
				if i%(p+1) == 0 {
					results.Wait() // perhaps no later put would wake a flusher
				}
			}
		})
	}
	all.Wait()
	l.Close()
}
