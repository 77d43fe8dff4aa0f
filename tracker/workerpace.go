package tracker

import (
	"math/rand/v2"
	"sync/atomic"
	"time"
)

// pace chooses the interval between workers' beats. Where the deployment has a ceiling on beats per second, more
// workers beat less often, and not in step.
type pace struct {
	base    time.Duration
	ceiling float64 // beats per second of all workers; 0: none
	workers atomic.Int64
}

// interval is what a worker is to keep to now, before jitter.
func (p *pace) interval() time.Duration {
	if p.ceiling <= 0 {
		return p.base
	}
	needed := time.Duration(float64(p.workers.Load()) / p.ceiling * float64(time.Second))
	if needed <= p.base {
		return p.base
	}
	return RoundTimeout(needed) // two digits, so that one worker more or less changes nothing
}

// jitter spreads a stretched interval over 0.9 to 1 of itself; the timeout is a multiple of the whole.
func (p *pace) jitter(interval time.Duration) time.Duration {
	if interval <= p.base {
		return interval
	}
	return (interval - time.Duration(rand.Int64N(int64(interval/10)+1))).Truncate(time.Millisecond)
}
