package lane

import (
	"fmt"
	"testing"
)

// The steps of a flusher, between which others may run (run, begin, end), and those of goroutines that put and close.
const (
	sleeps        = iota // until it is woken
	enters               // begin: increments the count
	weighs               // begin: another one runs; do enough items wait?
	leaves               // begin: not enough
	drains               // and handles the items
	ends                 // end: decrements the count
	checksClosed         // end: is the lane closed?
	checksWaiting        // end: do items wait?
	passesOn             // wakes the next flusher, since the lane is closed
	returned
)

const (
	puts = iota
	wakes
	hasPut
)

const (
	shuts   = iota // refuses new items
	closes         // sets closed
	signals        // wakes a flusher
	hasClosed
)

// laneState is the state of a lane with up to three flushers, and three goroutines that put an item each.
type laneState struct {
	wake, closed, shut bool
	pending, running   int
	flushers           [3]struct {
		at     int
		closed bool // as the flusher has read it
	}
	putters [3]struct {
		at    int
		worth bool
	}
	closer int
}

// step returns the possible next states.
func (s laneState) step(flushers, least int) (next []laneState) {
	for i := range flushers {
		n := s
		f := &n.flushers[i]
		switch f.at {
		case sleeps:
			if !s.wake {
				continue
			}
			n.wake, f.at = false, enters
		case enters:
			n.running++
			if f.at = weighs; n.running == 1 {
				f.at = drains
			}
		case weighs:
			if f.at = leaves; s.pending >= least {
				f.at = drains
			}
		case leaves:
			n.running--
			if f.at = enters; n.running > 0 {
				f.at = sleeps
			}
		case drains:
			n.pending, f.at = 0, ends
		case ends:
			n.running--
			f.at = checksClosed
		case checksClosed:
			f.closed, f.at = s.closed, checksWaiting
		case checksWaiting:
			switch {
			case s.pending > 0:
				f.at = enters
			case f.closed:
				f.at = passesOn
			default:
				f.at = sleeps
			}
		case passesOn:
			n.wake, f.at = true, returned
		default:
			continue
		}
		next = append(next, n)
	}
	for i := range s.putters {
		n := s
		p := &n.putters[i]
		switch {
		case p.at == puts && s.shut:
			p.at = hasPut
		case p.at == puts:
			n.pending++
			p.at, p.worth = wakes, n.pending == 1 || n.pending == least
		case p.at == wakes:
			n.wake, p.at = s.wake || p.worth, hasPut
		default:
			continue
		}
		next = append(next, n)
	}
	if n := s; s.closer < hasClosed {
		n.shut, n.closed, n.wake = true, s.closed || s.closer == closes, s.wake || s.closer == signals
		n.closer++
		next = append(next, n)
	}
	return next
}

// TestNothingIsLeftBehindHoweverStepsInterleave checks every order of the steps: all items are handled, and closing ends.
func TestNothingIsLeftBehindHoweverStepsInterleave(t *testing.T) {
	for _, closed := range []bool{false, true} {
		for flushers := 1; flushers <= 3; flushers++ {
			for least := 1; least <= 3; least++ {
				t.Run(fmt.Sprintf("%d flushers, %d items for another, closed %v", flushers, least, closed), func(t *testing.T) {
					walk(t, closed, flushers, least)
				})
			}
		}
	}
}

func walk(t *testing.T, closed bool, flushers, least int) {
	var first laneState
	at := returned
	if !closed {
		first.closer, at = hasClosed, sleeps
	}
	seen, todo := map[laneState]bool{first: true}, []laneState{first}
	for len(todo) > 0 {
		s := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		next := s.step(flushers, least)
		for _, n := range next {
			if !seen[n] {
				seen[n] = true
				todo = append(todo, n)
			}
		}
		if len(next) > 0 {
			continue
		}
		done := s.pending == 0 && s.running == 0
		for i := range flushers {
			done = done && s.flushers[i].at == at
		}
		if !done {
			t.Fatalf("it ends, of %d moments that were seen, with %+v", len(seen), s)
		}
	}
}
