package schedules

import (
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
)

const (
	// paceBytes bounds the size of the tasks that one process creates per second for one tenant's fires. It equals the limit of
	// one request: a batch creation.
	paceBytes = 4 << 20

	// maxPendingBytes bounds the size of the tasks of one schedule's waiting fires when fires are requested.
	maxPendingBytes = 64 << 20

	pacedTenants = 10_000 // that are cached
)

// paces limit each tenant's fires as its requests are limited: creations and bytes per second. The share of a second may be used
// at once. Time is Redis's.
type paces struct {
	perFire float64 // the part of a second's share that one fire takes; 0: unlimited

	mu sync.Mutex // protects all paces
	of *lru.Cache[string, *pace]
}

// pace is the part of a second's share that a tenant has used: 1 is all of it. It falls as time passes.
type pace struct {
	at           time.Time
	fires, bytes float64 // the last fire may take bytes above 1
}

func newPaces(perSecond int) *paces {
	cache, _ := lru.New[string, *pace](pacedTenants) // fails only for a size of 0
	p := &paces{of: cache}
	if perSecond > 0 {
		p.perFire = 1 / float64(perSecond)
	}
	return p
}

// take returns how many of some fires, each of that many bytes, a tenant may have now, and counts them. If fewer bytes are left
// than the next one takes, it is allowed nevertheless, and the others wait longer.
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

// over returns how much of a second's share a tenant lacks for one more fire.
func (p *paces) over(of *pace) float64 {
	const rounding = 1e-9
	return max(of.fires+p.perFire-1, of.bytes-1) - rounding
}

// now returns what a tenant has used as of now. Redis's clock may be set, and the clocks of two servers differ: at most one second
// counts at once, and if the clock was set back by more than that the pace follows it.
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
	elapsed := min(max(passed, 0), time.Second).Seconds()
	of.fires, of.bytes = max(of.fires-elapsed, 0), max(of.bytes-elapsed, 0)
	return of
}
