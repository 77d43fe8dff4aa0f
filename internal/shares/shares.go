// Package shares divides a bounded resource among its users, so that no tenant, and no token of a tenant, can take all of it. It
// needs no configuration and wastes little: a principal may hold a multiple of what is still free. While no other principal needs the
// resource, one tenant can hold most of it; the more is in use, the less each may add, and something is always left for a
// principal that holds nothing.
package shares

import "sync"

// Level is the limit at which a request for the resource was refused.
type Level int

// The levels, in the order in which they are checked.
const (
	Granted   Level = iota // not refused
	Token                  // the token has used its share
	Tenant                 // the tenant has used its share
	Strangers              // clients without a valid token have used their share
	Total                  // everything is in use
)

// String returns the level's name in metrics and messages.
func (l Level) String() string {
	return [...]string{"granted", "token", "tenant", "strangers", "total"}[l]
}

// The limit of a principal's share, as a multiple of what is free. A principal with the multiple k can alone take k/(k+1) of the
// resource.
const (
	perToken     = 1     // half
	perTenant    = 4     // four fifths
	perStrangers = 0.125 // a ninth
)

// Holder identifies the user of a part of the resource. The zero Holder represents all clients without a valid token.
type Holder struct {
	Tenant string
	Token  string // identifies the token within its tenant; "": the tenant is not subdivided
}

// Pool is a resource of a fixed size. It is safe for concurrent use.
type Pool struct {
	limit int64

	mu      sync.Mutex
	used    int64
	holders map[Holder]int64 // by token, by tenant (Token is empty), and of strangers; holders without units are removed
}

// NewPool returns a pool of limit units.
func NewPool(limit int64) *Pool { return &Pool{limit: limit, holders: map[Holder]int64{}} }

// Limit returns the size of the pool.
func (p *Pool) Limit() int64 { return p.limit }

// Used returns how much is in use.
func (p *Pool) Used() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.used
}

// Take gives n units to h and returns Granted, or changes nothing and returns the level that refused. Granted units must be returned with
// Release.
func (p *Pool) Take(h Holder, n int64) Level {
	p.mu.Lock()
	defer p.mu.Unlock()
	free := p.limit - p.used
	for _, part := range h.parts() {
		if float64(p.holders[part.holder]+n) > part.multiple*float64(free) {
			return part.level
		}
	}
	if n > free {
		return Total
	}
	p.add(h, n)
	return Granted
}

// Release returns n units of h to the pool.
func (p *Pool) Release(h Holder, n int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.add(h, -n)
}

// Move transfers n units from one holder to another regardless of shares: for a stranger that has shown a token.
func (p *Pool) Move(from, to Holder, n int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.add(from, -n)
	p.add(to, n)
}

func (p *Pool) add(h Holder, n int64) {
	p.used += n
	for _, part := range h.parts() {
		if p.holders[part.holder] += n; p.holders[part.holder] == 0 {
			delete(p.holders, part.holder)
		}
	}
}

// part is a holder whose use is limited.
type part struct {
	holder   Holder
	level    Level
	multiple float64
}

// parts returns h and the holders that it is a part of.
func (h Holder) parts() []part {
	switch {
	case h == Holder{}:
		return []part{{h, Strangers, perStrangers}}
	case h.Token == "":
		return []part{{h, Tenant, perTenant}}
	}
	return []part{{h, Token, perToken}, {Holder{Tenant: h.Tenant}, Tenant, perTenant}}
}
