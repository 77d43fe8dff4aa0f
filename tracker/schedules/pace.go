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
	perFire float64 // what one fire is of a second's share; 0: any number may come

	mu sync.Mutex // guards all paces
	of *lru.Cache[string, *pace]
}

// pace is what a tenant has had of a second's share: 1 is all of it. It wears off as time passes.
type pace struct {
	at           time.Time
	fires, bytes float64 // bytes come to more than 1 by as much as the last fire brought
}

func newPaces(perSecond int) *paces {
	cache, _ := lru.New[string, *pace](pacedTenants) // fails for a size of 0 only
	p := &paces{of: cache}
	if perSecond > 0 {
		p.perFire = 1 / float64(perSecond)
	}
	return p
}

// take returns how many of some fires, each of so many bytes, a tenant may have now, and counts these. Where fewer bytes are left
// than the next one brings it is let through all the same, and the others wait for so much longer.
func (p *paces) take(tenant string, now time.Time, fires, bytes int) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	of := p.now(tenant, now)
	n := 0
	for ; n < fires && p.over(of) <= 0; n++ {
		of.fires, of.bytes = of.fires+p.perFire, of.bytes+float64(bytes)/paceBytes
	}
	return n
}

// rest returns how long a tenant may have no more fires; 0: it may have some now.
func (p *paces) rest(tenant string, now time.Time) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	of := p.now(tenant, now)
	if over := p.over(of); over > 0 {
		return time.Duration(over*float64(time.Second)) + time.Millisecond
	}
	return 0
}

// over returns by how much of a second's share a tenant has had too much for one more fire.
func (p *paces) over(of *pace) float64 {
	const rounding = 1e-9
	return max(of.fires+p.perFire-1, of.bytes-1) - rounding
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
