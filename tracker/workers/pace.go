package workers

import (
	"context"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/lubdub-io/lubdub/tracker/model"
)

// pace chooses the interval between workers' beats. Where the deployment has a ceiling on beats per second, more
// workers beat less often, and not in step.
type pace struct {
	base    time.Duration
	ceiling float64 // beats per second of all workers; 0: none

	workers atomic.Int64 // at the last count
	counted atomic.Int64 // when that began, unix ns by this process's clock: whoever moves it on counts
}

// recount is how often a replica counts the workers again.
const recount = 5 * time.Second

// interval returns what a worker is to keep to now, before jitter.
func (p *pace) interval() time.Duration {
	if p.ceiling <= 0 {
		return p.base
	}
	needed := time.Duration(float64(p.workers.Load()) / p.ceiling * float64(time.Second))
	if needed <= p.base {
		return p.base
	}
	return model.RoundTimeout(needed) // two digits, so that one worker more or less changes nothing
}

// jitter spreads a stretched interval over 0.9 to 1 of itself; the timeout is a multiple of the whole.
func (p *pace) jitter(interval time.Duration) time.Duration {
	if interval <= p.base {
		return interval
	}
	return (interval - time.Duration(rand.Int64N(int64(interval/10)+1))).Truncate(time.Millisecond)
}

// due reports whether to count the workers now; it says so to one caller at a time.
func (p *pace) due(now time.Time) bool {
	last := p.counted.Load()
	return p.ceiling > 0 && now.UnixNano()-last >= int64(recount) && p.counted.CompareAndSwap(last, now.UnixNano())
}

// countWorkers counts the workers of the deployment that are not OFFLINE. When it fails the old count stands.
func (s *Service) countWorkers() {
	calls, err := s.store.EachShard(context.Background(), "count", s.countCall)
	if err != nil {
		return
	}
	var n int64
	for _, c := range calls {
		n += readCount(c.Reply)
	}
	s.pace.workers.Store(n)
}
