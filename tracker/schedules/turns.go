package schedules

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/lubdub-io/lubdub/tracker/schema"
	"github.com/lubdub-io/lubdub/tracker/store"
)

const (
	listAtOnce = 100 // due schedules of one shard that one script lists
	listPages  = 10  // such calls of one listing; the next listing continues after these
)

// Turns is what a sweeper keeps between its looks at one node: the due schedules by tenant. Tenants take turns, so that one with
// thousands of due schedules does not delay another's. The zero value is ready for use.
type Turns struct {
	mu      sync.Mutex // held for a whole look
	tenants map[string]*tenantTurn
	listed  time.Time     // when the schedules were listed; zero: list them before the next look
	now     time.Time     // by Redis's clock, as of the last reply
	next    time.Duration // until something else may be due, as of the listing
	from    map[int]int   // by shard: how many due schedules the next listing passes over; absent: none
}

// tenantTurn is the due schedules of a tenant, longest due first, and how many fires it has had. The tenant with the fewest is
// next.
type tenantTurn struct {
	due []dueRef
	had int
}

type dueRef struct {
	ref
	since time.Time
}

// Relist makes the next look list what is due, no matter how recent the last listing is.
func (t *Turns) Relist() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.listed = time.Time{}
}

// stale reports whether what is due must be listed before the next look.
func (t *Turns) stale() bool {
	return t.listed.IsZero() || time.Since(t.listed) >= minListInterval || !t.more()
}

func (t *Turns) more() bool {
	for _, of := range t.tenants {
		if len(of.due) > 0 {
			return true
		}
	}
	return false
}

// list reads what is due on the node and not left to other sweepers. It reads a bounded part of each shard's set; the next listing
// continues after that part, so that each due schedule is listed in the end.
func (s *Service) list(ctx context.Context, round *Round) error {
	t := round.Turns
	before, fromStart, lag := t.tenants, len(t.from) == 0, time.Duration(0)
	t.tenants, t.listed, t.next = map[string]*tenantTurn{}, time.Now(), minListInterval
	if t.from == nil {
		t.from = map[int]int{}
	}
	shards := round.Shards
	for page := 0; page < listPages && len(shards) > 0; page++ {
		groups := s.store.Together(shards)
		calls := store.CallEach(groups, func(group []int) *store.Call { return s.dueCall(group, listAtOnce, t.from) })
		shards = nil
		err := s.store.ExecEach(ctx, round.Node, calls, groups, func(shard int, now int64, r store.Reply) {
			at, reply := time.UnixMilli(now), readDue(r)
			t.now = at
			if reply.next.After(at) {
				delete(t.from, shard)
				t.next = min(t.next, reply.next.Sub(at))
			} else {
				t.from[shard] += listAtOnce
				shards = append(shards, shard)
			}
			lag = max(lag, t.add(shard, at, round.Grace(shard, reply.sweepers), reply, s.paces))
		})
		if err != nil {
			t.listed = time.Time{}
			return err
		}
	}
	if fromStart {
		s.metrics.lag.Set(lag.Seconds())
	}
	t.resume(before)
	return nil
}

// add adds schedules of one shard except those that have been due for less than the grace. It returns how long the oldest one has
// been due whose tenant may have fires now.
func (t *Turns) add(shard int, now time.Time, grace time.Duration, reply dueReply, p *paces) (lag time.Duration) {
	for i, name := range reply.names {
		late := now.Sub(reply.since[i])
		if late < grace {
			t.next = min(t.next, grace-late)
			continue
		}
		scope, id, ok := schema.SplitName(name)
		if !ok {
			continue
		}
		of := t.tenants[scope.Tenant]
		if of == nil {
			of = &tenantTurn{}
			t.tenants[scope.Tenant] = of
		}
		of.due = append(of.due, dueRef{ref{scope, id, shard}, reply.since[i]})
		if p.rest(scope.Tenant, now) == 0 {
			lag = max(lag, late)
		}
	}
	return lag
}

// resume keeps the fire counts of tenants that were listed before, and gives others the lowest of these: a tenant without due
// schedules has saved up nothing.
func (t *Turns) resume(before map[string]*tenantTurn) {
	least, known := 0, false
	for tenant, of := range t.tenants {
		slices.SortStableFunc(of.due, func(a, b dueRef) int { return a.since.Compare(b.since) })
		if was := before[tenant]; was != nil && (!known || was.had < least) {
			least, known = was.had, true
		}
	}
	for tenant, of := range t.tenants {
		if of.had = least; before[tenant] != nil {
			of.had = before[tenant].had
		}
	}
}

// take takes the schedules of one look from the list, in turn by tenant. rest: until a tenant that has used up its fires for now
// may have more; 0: there is none.
func (t *Turns) take(p *paces) (refs []ref, rest time.Duration) {
	ready := map[string]*tenantTurn{}
	for tenant, of := range t.tenants {
		if len(of.due) == 0 {
			continue
		}
		if wait := p.rest(tenant, t.now); wait == 0 {
			ready[tenant] = of
		} else if rest == 0 || wait < rest {
			rest = wait
		}
	}
	for len(refs) < dueAtOnce && len(ready) > 0 {
		var first string
		for tenant, of := range ready {
			is := ready[first]
			if is == nil || of.had < is.had || of.had == is.had && of.due[0].since.Before(is.due[0].since) {
				first = tenant
			}
		}
		of := ready[first]
		r := of.due[0]
		refs, of.due, of.had = append(refs, r.ref), of.due[1:], of.had+1
		if t.from[r.shard] > 0 { // it will be due later, so those after it move up
			t.from[r.shard]--
		}
		if len(of.due) == 0 {
			delete(ready, first)
		}
	}
	return refs, rest
}

// count corrects the count of take: a schedule has had as many fires as were handled.
func (t *Turns) count(due []ref, jobs []*job) {
	for _, r := range due {
		t.tenants[r.scope.Tenant].had--
	}
	for _, j := range jobs {
		t.tenants[j.scope.Tenant].had += len(j.fires)
	}
}
