package logs

import (
	"sync"
	"time"
)

// Limiter allows some lines per second, and counts the others: thousands of tasks may die of one cause at once. The zero Limiter allows
// one.
type Limiter struct {
	Lines int // per second; 0: one

	mu         sync.Mutex
	second     int64
	logged     int
	suppressed int64
}

// Allow reports whether to log now, and returns how many lines were suppressed since the last one.
func (l *Limiter) Allow(now time.Time) (suppressed int64, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if second := now.Unix(); second != l.second {
		l.second, l.logged = second, 0
	}
	if l.logged >= max(l.Lines, 1) {
		l.suppressed++
		return 0, false
	}
	l.logged++
	suppressed, l.suppressed = l.suppressed, 0
	return suppressed, true
}
