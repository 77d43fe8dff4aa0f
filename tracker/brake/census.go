package brake

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/store"
	"github.com/lubdub-io/lubdub/tracker/workers"
)

const (
	censusPage = 1000 // members that one script counts
	censusHeld = 250  // held members that one script counts: each is looked up in its set as well
)

// census counts the live members of some scopes over all shards, and how many of these are silent. Tasks without their own timeout are
// not counted as silent; their workers are.
type census struct {
	service   *Service
	timeouts  Timeouts
	requested []model.Scope
	scopes    map[model.Scope]*scopeCensus // of all in requested
}

type scopeCensus struct {
	tasks, workers headcount
	workerShards   []int // with workers of this scope
}

type headcount struct{ live, silent int }

// mass reports whether enough members are silent for the brake to engage.
func (h headcount) mass() bool {
	return h.live >= floor && h.silent >= max(floor, (h.live*Share+99)/100)
}

// mass accepts either kind as a sign for both: a front end that its workers cannot reach does not receive heartbeats of tasks
// either.
func (c *scopeCensus) mass() bool { return c.tasks.mass() || c.workers.mass() }

func (c *scopeCensus) String() string {
	return fmt.Sprintf("%d of %d tasks and %d of %d workers are silent", c.tasks.silent, c.tasks.live, c.workers.silent, c.workers.live)
}

func (b *Brake) takeCensus(ctx context.Context, scopes []model.Scope) (map[model.Scope]*scopeCensus, error) {
	c := &census{service: b.service, timeouts: b.timeouts, requested: scopes, scopes: map[model.Scope]*scopeCensus{}}
	for _, scope := range scopes {
		c.scopes[scope] = &scopeCensus{}
	}
	silent, held, err := c.sizes(ctx)
	if err != nil {
		return nil, err
	}
	total := 0
	for _, st := range silent {
		total += st.members
	}
	for _, n := range held {
		total += n
	}
	if total >= floor && c.undecided() {
		if err := c.countSilent(ctx, silent); err != nil {
			return nil, err
		}
		if err := c.countHeld(ctx, held); err != nil {
			return nil, err
		}
	}
	return c.scopes, c.countSilentWorkers(ctx)
}

// undecided reports whether counting more of the silent tasks may yet engage the brake somewhere.
func (c *census) undecided() bool {
	return slices.ContainsFunc(c.requested, func(scope model.Scope) bool {
		tasks := c.scopes[scope].tasks
		return tasks.live >= floor && !tasks.mass()
	})
}

// execAll runs calls on their nodes concurrently, in one round trip to each. A node that does not respond leaves its errors in its
// calls.
func (c *census) execAll(ctx context.Context, calls []*store.Call) {
	st := c.service.store
	groups := map[*store.Node][]*store.Call{}
	for _, call := range calls {
		n := st.Node(call.Shard)
		groups[n] = append(groups[n], call)
	}
	var running sync.WaitGroup
	for n, group := range groups {
		running.Go(st.Guard("the census", func() { st.Exec(ctx, n, group) }))
	}
	running.Wait()
}

// execEvery does the same and fails unless every call succeeded.
func (c *census) execEvery(ctx context.Context, calls []*store.Call) error {
	c.execAll(ctx, calls)
	return store.FirstError(calls)
}

// answered drops the calls of nodes that did not respond, and of shards that are moving between two: their members cannot be
// counted, as live or as silent. It fails if no node responded, or if a part of a node that did is missing: without that part the
// count would let live members expire.
func (c *census) answered(calls []*store.Call) (left []*store.Call, err error) {
	st := c.service.store
	by := map[*store.Node]bool{}
	for _, call := range calls {
		if call.Err == nil {
			left = append(left, call)
			by[st.Node(call.Shard)] = true
		}
	}
	for _, call := range calls {
		if call.Err != nil && (len(left) == 0 || by[st.Node(call.Shard)] && !store.IsRedirect(call.Err)) {
			return nil, call.Err
		}
	}
	return left, nil
}

// stretch is the possibly silent part of one beats set.
type stretch struct {
	beatsSet
	members int
}

// sizes counts what is live and how much there is to examine: the silent members of each set, and how many the brake holds in each
// shard.
func (c *census) sizes(ctx context.Context) (silent []stretch, held map[int]int, err error) {
	calls, timeouts := c.querySizes(ctx)
	ok, err := c.answered(calls)
	if err != nil {
		return nil, nil, err
	}
	own, held := 0, map[int]int{} // own: attempts with their own timeout
	for _, call := range ok {
		is := readCensus(call.Reply)
		if is.braked > 0 {
			held[call.Shard] = is.braked
		}
		for i, attempts := range is.attempts {
			own += attempts.live
			if attempts.silent > 0 {
				silent = append(silent, stretch{beatsSet{call.Shard, timeouts[call.Shard][i]}, attempts.silent})
			}
		}
		for i, live := range is.scopes {
			sc := c.scopes[c.requested[i]]
			sc.tasks.live += live.tasks
			if live.workers > 0 {
				sc.workers.live += live.workers
				sc.workerShards = append(sc.workerShards, call.Shard)
			}
		}
	}
	for _, sc := range c.scopes { // running tasks that their worker keeps alive cannot be silent
		sc.tasks.live = min(sc.tasks.live, own)
	}
	return silent, held, nil
}

// querySizes queries all shards and returns the timeouts that it used. It repeats the query if a timeout is in use that this sweeper
// did not know.
func (c *census) querySizes(ctx context.Context) (calls []*store.Call, timeouts [][]string) {
	timeouts = make([][]string, c.service.store.Shards())
	for again := true; again; {
		again = false
		calls = calls[:0]
		for shard := range timeouts {
			known := slices.Clone(c.timeouts.Of(shard))
			timeouts[shard] = slices.DeleteFunc(known, func(t string) bool { return t == noTimeout })
			calls = append(calls, c.service.scripts.censusCall(shard, silentFrom, timeouts[shard], c.requested))
		}
		c.execAll(ctx, calls)
		for _, call := range calls {
			if call.Err == nil && c.timeouts.Learn(call.Shard, readCensus(call.Reply).timeouts) {
				again = true
			}
		}
	}
	return calls, timeouts
}

// countSilent counts page by page, all sets concurrently, until nothing is left or the result is certain.
func (c *census) countSilent(ctx context.Context, silent []stretch) error {
	for from := 0; len(silent) > 0 && c.undecided(); from += censusPage {
		calls := store.CallEach(silent, func(st stretch) *store.Call {
			return c.service.scripts.censusSilentCall(st.beatsSet, from, min(from+censusPage, st.members)-1)
		})
		if err := c.execEvery(ctx, calls); err != nil {
			return err
		}
		for _, call := range calls {
			c.addTasks(readCensusSilent(call.Reply))
		}
		silent = slices.DeleteFunc(silent, func(st stretch) bool { return st.members <= from+censusPage })
	}
	return nil
}

// countHeld adds the members that the brake holds, whose scores are new; held is how many each shard has.
func (c *census) countHeld(ctx context.Context, held map[int]int) error {
	for from := 0; len(held) > 0; from += censusHeld {
		var calls []*store.Call
		for shard := range held {
			calls = append(calls, c.service.scripts.censusHeldCall(shard, silentFrom, from, censusHeld, c.timeouts.Of(shard)))
		}
		if err := c.execEvery(ctx, calls); err != nil {
			return err
		}
		for _, call := range calls {
			seen, counts := readCensusHeld(call.Reply)
			if seen < censusHeld {
				delete(held, call.Shard)
			}
			c.addTasks(counts)
		}
	}
	return nil
}

// addTasks adds counts of silent tasks and leaves out those of other scopes.
func (c *census) addTasks(counts []scopeCount) {
	for _, n := range counts {
		if sc := c.scopes[n.scope]; sc != nil {
			sc.tasks.silent += n.attempts
		}
	}
}

// workerList is the list of workers of a scope that have one status, by its letter.
type workerList struct {
	shard  int
	letter string
}

// countSilentWorkers reads each worker of the scopes that have enough of them, unless their tasks are a mass already: scores of workers are
// the times of their next checks, not of their last heartbeats.
func (c *census) countSilentWorkers(ctx context.Context) error {
	for _, scope := range c.requested {
		sc := c.scopes[scope]
		if sc.workers.live < floor || sc.tasks.mass() {
			continue
		}
		after := make(map[workerList]string, 2*len(sc.workerShards)) // the last ID that was examined
		for _, shard := range sc.workerShards {
			after[workerList{shard, "N"}], after[workerList{shard, "D"}] = "", ""
		}
		for len(after) > 0 && !sc.workers.mass() {
			if err := c.countWorkerPages(ctx, scope, sc, after); err != nil {
				return err
			}
		}
	}
	return nil
}

// countWorkerPages counts one page of each unfinished list and advances the list's position.
func (c *census) countWorkerPages(ctx context.Context, scope model.Scope, sc *scopeCensus, after map[workerList]string) error {
	const page = 500
	var calls []*store.Call
	var lists []workerList
	for list, last := range after {
		calls = append(calls, c.service.workers.ListCall(list.shard, []string{c.service.store.Keys[list.shard].Workers},
			workers.ListArgs{Prefix: scope.String() + "/", States: list.letter, After: last, Limit: page}))
		lists = append(lists, list)
	}
	if err := c.execEvery(ctx, calls); err != nil {
		return err
	}
	var reads []*store.Call
	for i, list := range lists {
		ids := workers.ReadList(calls[i].Reply, 1, 1)[0].IDs[0]
		if len(ids) < page {
			delete(after, list)
		} else {
			after[list] = ids[len(ids)-1]
		}
		if len(ids) > 0 {
			reads = append(reads, c.service.scripts.censusWorkersCall(list.shard, silentFrom, scope, ids))
		}
	}
	if err := c.execEvery(ctx, reads); err != nil {
		return err
	}
	for _, read := range reads {
		sc.workers.silent += readCensusWorkers(read.Reply)
	}
	return nil
}
