package redistest

import "time"

// OwnDelay measures how late this process is by itself; most ends the measurement and returns the longest such delay.
func OwnDelay() (most func() time.Duration) {
	var worst time.Duration
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
				worst = max(worst, time.Since(start)-nap)
			}
		}
	}()
	return func() time.Duration {
		close(over)
		<-ended
		return worst
	}
}
