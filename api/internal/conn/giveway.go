package conn

import (
	"cmp"
	"slices"
	"time"

	"github.com/lubdub-io/lubdub/internal/shares"
)

// When the connection limit is reached, existing connections give way to new ones. Strangers, which have shown no valid token, go first:
// the one that has waited longest, whether it waits for bytes or for its client to read an answer. Connections with a valid token
// give way to those of holders with fewer: of the tenant with the most connections, and of its token with the most, the one that has
// waited longest goes. A connection with a request under way stays.

// Candidate is a connection that may have to give way. Its methods may be called from any goroutine.
type Candidate interface {
	State() State
	Since() int64    // when it was last answered, or accepted, in ns since the epoch
	Came() int64     // when it was accepted, in ns since the epoch, to the ms
	Member() *Member // the member that it belongs to; nil: a stranger
	Cut(*Cut) bool   // ends it once; false if it was cut before or has gone
}

// candidate is a snapshot of a connection.
type candidate struct {
	Candidate
	since   int64
	order   int64 // ascending by how long they have waited, longest first
	token   *Member
	ofToken int // it is the one to go when its token has this many connections left; the last one has 1
	tenant  int // the same for its tenant
}

const (
	// candidates is how many connections one walk over all of them selects.
	candidates = 256
	// walkPause is the minimum time between two walks that find no stranger.
	walkPause = 20 * time.Millisecond
	// shareAge is how long the holders' shares are cached: a walk that sorts all connections takes some ms.
	shareAge = 100 * time.Millisecond
	// stall is how long an answer must have been in writing for its client to count as not reading.
	stall = time.Second
	// strangerTime is how long a stranger keeps its place before it gives way: long enough for a client on a slow network to send its
	// token or read an answer. It also bounds the cost of strangers that reconnect as soon as they are cut.
	strangerTime = 500 * time.Millisecond
	// writersFirst is added to the waiting time of a stranger to which an answer is being written.
	writersFirst = 24 * time.Hour
)

// still reports whether the connection has done nothing since the snapshot.
func (c *candidate) still() bool { return c.State() != Busy && c.Since() == c.since }

// cutStranger cuts the stranger that has waited longest, and reports whether there was one.
func (w *Watch) cutStranger() bool {
	w.walkMu.Lock()
	defer w.walkMu.Unlock()
	for {
		for len(w.strangers) > 0 {
			s := w.strangers[0]
			w.strangers = w.strangers[1:]
			if s.still() && s.Cut(Displaced) {
				return true
			}
		}
		if time.Since(w.walked) < walkPause || !w.findStrangers() {
			return false
		}
	}
}

// findStrangers lists the strangers that may give way, longest waiting first, and reports whether there are any.
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

// find returns the waiting connections of the members for which `of` returns true.
func (w *Watch) find(of func(*Member) bool) (found []candidate) {
	consider := func(c Candidate) {
		if m := c.Member(); of(m) && c.State() != Busy {
			found = append(found, candidate{Candidate: c, since: c.Since(), order: c.Since(), token: m})
		}
	}
	w.mu.Lock()
	for c := range w.conns {
		consider(c)
	}
	others := w.others
	w.mu.Unlock()
	for _, o := range others {
		o.Each(consider)
	}
	return found
}

// Enter counts a connection for a holder whose valid token it has shown, until Leave, and returns its member. If the limit is
// reached, a connection of a holder with more is cut; if there is none, the new one is the next to go.
func (w *Watch) Enter(h shares.Holder) *Member {
	token := w.members.join(h)
	if w.members.count() <= int(w.most.Load()) || w.cutMember(token) {
		return token
	}
	w.members.leave(token)
	return surplus
}

// Leave undoes Enter.
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
