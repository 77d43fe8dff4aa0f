package lane

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// TestTurnsGiveEachItemOneResult puts from many goroutines while the lane closes: admitted items are flushed once and in the order of
// those who put them, refused ones never.
func TestTurnsGiveEachItemOneResult(t *testing.T) {
	const putters, each = 8, 2000
	flushed := make([][]int, putters)
	l := NewTurns(putters*each, 4, Rests{}, func(batch [][2]int) (alone bool) {
		for _, item := range batch {
			flushed[item[0]] = append(flushed[item[0]], item[1]) // a single flusher needs no lock
		}
		return false
	})
	admitted := make([][]int, putters)
	var wg sync.WaitGroup
	for p := range putters {
		wg.Go(func() {
			for i := 0; i < each; i += 2 {
				fit, _ := l.PutAll(fmt.Sprint(p%3), [][2]int{{p, i}, {p, i + 1}})
				for j := range fit {
					admitted[p] = append(admitted[p], i+j)
				}
				if p == 0 && i == each/2 {
					go l.Close()
				}
			}
		})
	}
	wg.Wait()
	l.Close()
	for p := range putters {
		if !slices.Equal(admitted[p], flushed[p]) {
			t.Errorf("putter %d: %d items were admitted and %d flushed, or in another order", p, len(admitted[p]), len(flushed[p]))
		}
	}
	if _, r := l.PutAll("late", [][2]int{{0, 0}}); r != Closed {
		t.Errorf("a closed lane answers %v", r)
	}
}

// TestTurnsPassFromOneToTheNext: who puts many items delays others by one flush, and a flush that is not full takes items of the next.
func TestTurnsPassFromOneToTheNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var flushes []string
		l := NewTurns(12, 3, Rests{}, func(batch []string) (alone bool) {
			flushes = append(flushes, fmt.Sprint(batch))
			time.Sleep(time.Millisecond)
			return false
		})
		l.PutAll("a", []string{"a1"})
		synctest.Wait() // its flush runs, and the others wait
		l.PutAll("a", []string{"a2", "a3", "a4", "a5", "a6", "a7", "a8"})
		l.PutAll("b", []string{"b1"})
		l.PutAll("c", []string{"c1", "c2", "c3"})
		if fit, r := l.PutAll("d", []string{"d1", "d2"}); fit != 1 || r != Full {
			t.Errorf("%d of 2 items fit into the rest of 1: %v", fit, r)
		}
		l.Close()
		want := []string{"[a1]", "[a2 a3 a4]", "[b1 c1 c2]", "[d1 a5 a6]", "[c3 a7 a8]"}
		if !slices.Equal(flushes, want) {
			t.Errorf("flushes %v, want %v", flushes, want)
		}
	})
}

// TestTurnsRest: a flush that takes longer is followed by a longer rest, up to the longest. A lane in which much waits does not rest, nor
// one whose flushes are alone.
func TestTurnsRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		took := time.Millisecond
		var started []time.Duration
		begin := time.Now()
		alone := false
		l := NewTurns(100, 1, Rests{Times: 3, Longest: 9 * time.Millisecond, UntilWaiting: 6}, func([]int) bool {
			started = append(started, time.Since(begin))
			time.Sleep(took)
			took *= 2
			return alone
		})
		l.PutAll("a", []int{1, 2, 3, 4})
		time.Sleep(time.Second)
		synctest.Wait()
		// Rests are 3, 6 and 9 ms, times (6 - the number of waiting items) / 6.
		if want := []time.Duration{0, 2500e3, 8500e3, 20e6}; !slices.Equal(started, want) {
			t.Errorf("flushes started after %v, want %v", started, want)
		}
		took, started, begin, alone = time.Millisecond, nil, time.Now(), true
		l.PutAll("a", make([]int, 3))
		time.Sleep(time.Second)
		synctest.Wait()
		if want := []time.Duration{0, 1e6, 3e6}; !slices.Equal(started, want) {
			t.Errorf("flushes that were alone started after %v, want %v", started, want)
		}
		took, started, begin, alone = time.Millisecond, nil, time.Now(), false
		l.PutAll("a", make([]int, 8))
		synctest.Wait()
		l.Close()
		if want := []time.Duration{0, 1e6}; !slices.Equal(started[:2], want) {
			t.Errorf("with many waiting items, flushes started after %v, want %v", started[:2], want)
		}
	})
}

// TestTurnsThatCloseDoNotRest: what waits when the lane closes is not delayed.
func TestTurnsThatCloseDoNotRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := NewTurns(100, 1, Rests{Times: 1000, Longest: time.Hour, UntilWaiting: 100}, func([]int) bool {
			time.Sleep(time.Millisecond)
			return false
		})
		l.PutAll("a", []int{1, 2, 3})
		time.Sleep(2 * time.Millisecond) // the first is flushed, and the lane rests
		begin := time.Now()
		if l.Close(); time.Since(begin) != 2*time.Millisecond {
			t.Errorf("two flushes of 1 ms took %v", time.Since(begin))
		}
	})
}
