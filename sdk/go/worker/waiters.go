package worker

import "slices"

// waiters are the goroutines that wait for conditions of a worker's state. The worker's mutex guards them.
type waiters []*waiter

// waiter waits for a condition.
type waiter struct {
	holds func() bool
	met   chan struct{} // closed once the condition holds
}

func (w *waiters) add(holds func() bool) *waiter {
	one := &waiter{holds, make(chan struct{})}
	*w = append(*w, one)
	return one
}

// remove removes a waiter, and reports whether it was still waiting.
func (w *waiters) remove(one *waiter) bool {
	at := slices.Index(*w, one)
	if at < 0 {
		return false
	}
	*w = slices.Delete(*w, at, at+1)
	return true
}

// wake wakes the goroutines whose conditions hold now.
func (w *waiters) wake() {
	*w = slices.DeleteFunc(*w, func(one *waiter) bool {
		met := one.holds()
		if met {
			close(one.met)
		}
		return met
	})
}
