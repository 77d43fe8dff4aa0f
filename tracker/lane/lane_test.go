package lane

import (
	"slices"
	"sync"
	"testing"
)

// TestLaneGivesEachItemOneFate puts from many goroutines while the lane closes under them: what was let in is
// flushed once, what was refused never.
func TestLaneGivesEachItemOneFate(t *testing.T) {
	const putters, each = 8, 5000
	flushed := make([]int, putters*each)
	l := New(4*minStripe, 4, 1, func(batch []int) {
		for _, item := range batch {
			flushed[item]++ // one flusher: no lock
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
		t.Error("some items that were let in were not flushed exactly once, or others were")
	}
	if r := l.Put(0); r != Closed {
		t.Errorf("a closed lane answers %v", r)
	}
}

// TestLaneKeepsAGroupTogether: one flush takes what was put in one go, in its order, and the rest is refused
// when it does not fit.
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
	<-held // the flusher is busy: from here on items wait
	for i, want := range []Refusal{Admitted, Admitted, Full} {
		if got := l.Put(i); got != want {
			t.Errorf("put %d: %v, want %v", i, got, want)
		}
	}
	close(hold)
	<-held
	l.Close()
}
