package conn

import (
	"cmp"
	"slices"
	"time"

	"github.com/lubdub-io/lubdub/internal/shares"
)

// When all places are taken, connections give way to new ones: first strangers, the one that has waited longest first, whether it
// waits for bytes or for its client to take an answer. Connections that have shown a valid token give way to those of holders with
// fewer: of the tenant with the most connections, and of its token with the most, the one that has waited longest goes. A connection
// with a request under way keeps its place.

// Candidate is a connection that may have to give way. Its methods may be called from any goroutine.
type Candidate interface {
	State() State
	Since() int64    // when it last had an answer, or came, in ns since the epoch
	Came() int64     // when it came, in ns since the epoch, to the ms
	Member() *Member // to whom it belongs; nil: to a stranger
	Cut(*Cut) bool   // ends it, once: false if that was done before, or it has gone
}

// candidate is a connection as it was found.
type candidate struct {
	Candidate
	since   int64
	order   int64 // those that have waited longest come first
	token   *Member
	ofToken int // it is the connection of its token that goes when so many are left, the last at 1
	tenant  int // the same of its tenant
}

const (
	// candidates are how many connections one walk over all of them finds.
	candidates = 256
	// walkPause is the least time between two walks that find no stranger.
	walkPause = 20 * time.Millisecond
	// shareAge is for how long the holders' shares are taken to be as they were found: a walk that sorts all connections takes some ms.
	shareAge = 100 * time.Millisecond
	// stall is how long an answer must have been written for its client to count as one that does not read.
	stall = time.Second
	// strangerTime is how long a stranger keeps its place before it gives way: long enough for a client on a slow network to send its
	// token, or to take an answer. It also bounds what strangers cost that come again as soon as they are cut.
	strangerTime = 500 * time.Millisecond
	// writersFirst is how much longer a stranger counts as waiting to whom an answer is being written.
	writersFirst = 24 * time.Hour
)

// still reports whether the connection has done nothing since it was found.
func (c *candidate) still() bool { return c.State() != Busy && c.Since() == c.since }

// cutStranger cuts the stranger that has waited longest, and reports whether there was one.
func (w *Watch) cutStranger() bool {
	w.walkMu.Lock()
	defer w.walkMu.Unlock()
	for {
		for len(w.strangers) > 0 {
			s := w.strangers[0]
			w.strangers = w.strangers[1:]
			if s.still() && s.Cut(MadeRoom) {
				return true
			}
		}
		if time.Since(w.walked) < walkPause || !w.findStrangers() {
			return false
		}
	}
}

// findStrangers lists those that may give way, the one that has waited longest first, and reports whether there are any.
func (w *Watch) findStrangers() bool {
	now := time.Now()
	found := w.find(func(m *Member) bool { return m == nil || m == surplus })
	found = slices.DeleteFunc(found, func(c candidate) bool { return now.UnixNano()-c.Came() < int64(strangerTime) })
	if len(found) == 0 {
		w.walked = now
		return false
	}
	for i := range found {
		if found[i].State() == Writing { // before those that may be sending a token just now
			found[i].order -= int64(writersFirst)
		}
	}
	slices.SortFunc(found, byOrder)
	w.strangers = slices.Clone(found[:min(candidates, len(found))])
	return true
}

func byOrder(a, b candidate) int { return cmp.Compare(a.order, b.order) }

// find returns the connections that wait, of those members that are asked for.
func (w *Watch) find(of func(*Member) bool) (found []candidate) {
	look := func(c Candidate) {
		if m := c.Member(); of(m) && c.State() != Busy {
			found = append(found, candidate{Candidate: c, since: c.Since(), order: c.Since(), token: m})
		}
	}
	w.mu.Lock()
	for c := range w.conns {
		look(c)
	}
	others := w.others
	w.mu.Unlock()
	for _, o := range others {
		o.Each(look)
	}
	return found
}

// Enter counts a connection for a holder whose valid token it has shown, and returns to whom it belongs, until Leave. Where all
// places are taken, another one gives way whose holder has more; if there is none, the new one is the next to go.
func (w *Watch) Enter(h shares.Holder) *Member {
	token := w.members.join(h)
	if w.members.count() <= int(w.most.Load()) || w.cutMember(token) {
		return token
	}
	w.members.leave(token)
	return surplus
}

// Leave ends what Enter began.
func (w *Watch) Leave(m *Member) { w.members.leave(m) }

// cutMember cuts a connection for the newest one of a token, and reports whether there was one: of a tenant with more connections than
// the token's, or of another token of its tenant with more connections.
func (w *Watch) cutMember(token *Member) bool {
	w.walkMu.Lock()
	defer w.walkMu.Unlock()
	if now := time.Now(); now.Sub(w.sharesFound) > shareAge {
		w.over, w.sharesFound = w.findOver(now), now
	}
	for {
		i := slices.IndexFunc(w.over, func(c candidate) bool { return w.yields(c, token) })
		if i < 0 {
			return false
		}
		c := w.over[i]
		w.over = slices.Delete(w.over, i, i+1)
		if c.still() && c.Cut(OverShare) {
			return true
		}
	}
}

// yields reports whether a connection gives way to the newest one of a token.
func (w *Watch) yields(c candidate, to *Member) bool {
	token, tenant := w.members.of(to)
	return c.tenant > tenant || c.token.tenant == to.tenant && c.ofToken > token
}

// findOver lists the connections of members in the order in which they give way.
func (w *Watch) findOver(now time.Time) []candidate {
	found := w.find(func(m *Member) bool { return m != nil && m != surplus })
	found = slices.DeleteFunc(found, func(c candidate) bool {
		return c.State() == Writing && now.UnixNano()-c.since < int64(stall)
	})
	for i := range found {
		if found[i].State() == Streaming { // after those that do nothing
			found[i].order = now.UnixNano()
		}
	}
	slices.SortFunc(found, byOrder)
	w.members.mu.Lock()
	taken := map[*Member]int{}
	for i := range found {
		c := &found[i]
		c.ofToken = c.token.open - taken[c.token]
		taken[c.token]++
	}
	slices.SortStableFunc(found, func(a, b candidate) int { return cmp.Compare(b.ofToken, a.ofToken) })
	for i := range found {
		c := &found[i]
		c.tenant = c.token.tenant.open - taken[c.token.tenant]
		taken[c.token.tenant]++
	}
	w.members.mu.Unlock()
	slices.SortStableFunc(found, func(a, b candidate) int { return cmp.Compare(b.tenant, a.tenant) })
	return slices.Clone(found[:min(candidates, len(found))])
}
