package schedules

import (
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
)

const (
	// paceBytes is what the tasks of one tenant's fires may come to in a second through one process. It is what one request may
	// bring: a batch creation.
	paceBytes = 4 << 20

	// maxPendingBytes bounds what the tasks of the fires of one schedule that wait will come to, where somebody asks for fires.
	maxPendingBytes = 64 << 20

	pacedTenants = 10_000 // that are remembered
)

// paces hold each tenant's fires to what its requests are held to: so many creations a second, and so many bytes. What a second
// allows may come at once. Time is Redis's.
type paces struct {
	perSecond int // fires; 0: any number

	mu sync.Mutex // guards all paces
	of *lru.Cache[string, *pace]
}

// pace is what a tenant has had of a second's share: 1 is all of it. It wears off as time passes.
type pace struct {
	at           time.Time
	fires, bytes float64
}

func newPaces(perSecond int) *paces {
	cache, _ := lru.New[string, *pace](pacedTenants) // fails for a size of 0 only
	return &paces{perSecond: perSecond, of: cache}
}

// take returns how many of some fires, each of so many bytes, a tenant may have now, and counts these. One that is worth more
// than what is left is let through if anything is left, and owed.
func (p *paces) take(tenant string, now time.Time, fires, bytes int) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	of := p.now(tenant, now)
	perFire, ofBytes := 0.0, float64(bytes)/paceBytes
	if p.perSecond > 0 {
		perFire = 1 / float64(p.perSecond)
	}
	n := 0
	for ; n < fires && of.fires < 1 && of.bytes < 1; n++ {
		of.fires, of.bytes = of.fires+perFire, of.bytes+ofBytes
	}
	return n
}

// rest returns how long a tenant may have no more fires; 0: it may have some now.
func (p *paces) rest(tenant string, now time.Time) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	of := p.now(tenant, now)
	if over := max(of.fires, of.bytes) - 1; over >= 0 {
		return time.Duration(over*float64(time.Second)) + time.Millisecond
	}
	return 0
}

// now returns what a tenant has had as of now. Redis's clock may be set, and those of two servers differ: no more than a second
// counts at once, and a clock that was set back by more than that is followed.
func (p *paces) now(tenant string, now time.Time) *pace {
	of, ok := p.of.Get(tenant)
	if !ok {
		of = &pace{at: now}
		p.of.Add(tenant, of)
	}
	passed := now.Sub(of.at)
	if passed > 0 || passed < -time.Second {
		of.at = now
	}
	gone := min(max(passed, 0), time.Second).Seconds()
	of.fires, of.bytes = max(of.fires-gone, 0), max(of.bytes-gone, 0)
	return of
}
