package redistest

import "time"

// OwnDelay measures how late this process is by itself; most ends the measurement and returns the longest such delay.
func OwnDelay() (most func() time.Duration) {
	end := lateness()
	return func() time.Duration {
		most, _ := end()
		return most
	}
}

// OwnDelays is OwnDelay for what takes many steps, each of which may be late: the result tells all delays together.
func OwnDelays() (all func() time.Duration) {
	end := lateness()
	return func() time.Duration {
		_, all := end()
		return all
	}
}

// lateness takes short naps until the result is called, which tells by how much they were too long: the worst, and all.
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
