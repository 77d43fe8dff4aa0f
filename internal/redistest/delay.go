package redistest

import "time"

// OwnDelay measures how late this process runs by its own fault; most ends the measurement and returns the longest delay.
func OwnDelay() (most func() time.Duration) {
	end := lateness()
	return func() time.Duration {
		most, _ := end()
		return most
	}
}

// OwnDelays is OwnDelay for an operation with many steps, each of which may be late: it returns the sum of all delays.
func OwnDelays() (all func() time.Duration) {
	end := lateness()
	return func() time.Duration {
		_, all := end()
		return all
	}
}

// lateness sleeps for short times until end is called, which returns by how much they were too long: the longest, and the sum.
func lateness() (end func() (worst, all time.Duration)) {
	var worst, all time.Duration
	over, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		const nap = 5 * time.Millisecond
		for {
			start := time.Now()
			select {
			case <-over:
				return
			case <-time.After(nap):
				late := time.Since(start) - nap
				worst, all = max(worst, late), all+late
			}
		}
	}()
	return func() (time.Duration, time.Duration) {
		close(over)
		<-ended
		return worst, all
	}
}
