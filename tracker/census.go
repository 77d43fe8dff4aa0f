package tracker

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// census counts the live and the silent of some scopes over all shards. Tasks that live by their worker have no
// silence of their own; their workers are counted.
type census struct{ scopes map[Scope]*scopeCensus }

type scopeCensus struct {
	tasks, workers headcount
	workerShards   []int // with workers of this scope
}

type headcount struct{ live, silent int }

// mass tells whether so many are silent that the brake is to hold.
func (h headcount) mass(share int) bool {
	return h.live >= brakeFloor && h.silent >= max(brakeFloor, (h.live*share+99)/100)
}

// mass takes either kind for a sign about both: a front end that hears no workers hears no tasks.
func (c *scopeCensus) mass(share int) bool { return c.tasks.mass(share) || c.workers.mass(share) }

func (c *scopeCensus) String() string {
	return fmt.Sprintf("%d of %d tasks and %d of %d workers are silent", c.tasks.silent, c.tasks.live, c.workers.silent, c.workers.live)
}

// execAll runs calls on their nodes, all nodes at once, in one round trip to each. A node that does not answer leaves
// its errors in its calls.
func (s *Sweeper) execAll(calls []*call) {
	groups := map[*node][]*call{}
	for _, c := range calls {
		n := s.t.store.node(c.shard)
		groups[n] = append(groups[n], c)
	}
	var running sync.WaitGroup
	for n, group := range groups {
		running.Go(s.t.store.guard("the census", func() { s.t.store.exec(n, group) }))
	}
	running.Wait()
}

// execEvery does the same and is satisfied with nothing less than every answer.
func (s *Sweeper) execEvery(calls []*call) error {
	s.execAll(calls)
	for _, c := range calls {
		if c.err != nil {
			return c.err
		}
	}
	return nil
}

// answered leaves out the calls of nodes that did not answer, and of shards on their way between two: what is there
// cannot be counted, as live or as silent. An error means that none did, or that something is missing of a node that
// did answer: a count without that would let live ones die.
func (s *Sweeper) answered(calls []*call) (left []*call, err error) {
	by := map[*node]bool{}
	for _, c := range calls {
		if c.err == nil {
			left = append(left, c)
			by[s.t.store.node(c.shard)] = true
		}
	}
	for _, c := range calls {
		if c.err != nil && (len(left) == 0 || by[s.t.store.node(c.shard)] && !isRedirect(c.err)) {
			return nil, c.err
		}
	}
	return left, nil
}

// stretch is what may be silent in one beats set.
type stretch struct {
	shard   int
	timeout string
	members int
}

func (s *Sweeper) takeCensus(ask []Scope) (*census, error) {
	c := &census{scopes: map[Scope]*scopeCensus{}}
	for _, scope := range ask {
		c.scopes[scope] = &scopeCensus{}
	}
	silent, held, err := s.censusSizes(c, ask)
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
	if total >= brakeFloor && c.undecided(ask, func(sc *scopeCensus) headcount { return sc.tasks }, s.t.opts.BrakeShare) {
		if err := s.countSilent(c, ask, silent); err != nil {
			return nil, err
		}
		if err := s.countHeld(c, held); err != nil {
			return nil, err
		}
	}
	return c, s.countSilentWorkers(c, ask)
}

// undecided tells whether counting more of the silent may yet engage the brake somewhere.
func (c *census) undecided(ask []Scope, of func(*scopeCensus) headcount, share int) bool {
	return slices.ContainsFunc(ask, func(scope Scope) bool {
		h := of(c.scopes[scope])
		return h.live >= brakeFloor && !h.mass(share)
	})
}

// censusSizes counts what is live, and how much there is to look at. It asks again where a timeout is in use that this
// sweeper did not know of.
func (s *Sweeper) censusSizes(c *census, ask []Scope) (silent []stretch, held map[int]int, err error) {
	var calls []*call
	known := make([][]string, s.t.store.shards())
	for again := true; again; {
		again = false
		calls = calls[:0]
		for shard, k := range s.t.store.keys {
			known[shard] = slices.DeleteFunc(slices.Clone(s.known(shard)), func(t string) bool { return t == "0" }) // they live by their worker
			keys, args := []string{k.clock, k.timeouts, k.ix, k.workers, k.braked}, []any{silentFrom, len(known[shard])}
			for _, timeout := range known[shard] {
				keys = append(keys, k.beats(timeout))
				args = append(args, timeout)
			}
			for _, scope := range ask {
				args = append(args, scope.String())
			}
			calls = append(calls, newCall(shard, s.t.store.scripts.Get("census"), keys, args...))
		}
		s.execAll(calls)
		for _, call := range calls {
			if call.err == nil && s.learn(call.shard, call.reply.list(0).strings()) {
				again = true
			}
		}
	}
	ok, err := s.answered(calls)
	if err != nil {
		return nil, nil, err
	}
	own, held := 0, map[int]int{} // attempts with a timeout of their own; entries of the brake by shard
	for _, call := range ok {
		if n := int(call.reply.int(1)) - 1; n > 0 { // the sentinel
			held[call.shard] = n
		}
		for i, timeout := range known[call.shard] {
			own += int(call.reply.list(2).int(2*i + 1))
			if n := int(call.reply.list(2).int(2 * i)); n > 0 {
				silent = append(silent, stretch{call.shard, timeout, n})
			}
		}
		for i, scope := range ask {
			sc := c.scopes[scope]
			sc.tasks.live += int(call.reply.list(3).int(2 * i))
			if n := int(call.reply.list(3).int(2*i + 1)); n > 0 {
				sc.workers.live += n
				sc.workerShards = append(sc.workerShards, call.shard)
			}
		}
	}
	for _, scope := range ask { // running tasks that live by their worker are not among those that can be silent
		c.scopes[scope].tasks.live = min(c.scopes[scope].tasks.live, own)
	}
	return silent, held, nil
}

// countSilent counts page by page, all sets beside each other, until nothing is left or enough is known.
func (s *Sweeper) countSilent(c *census, ask []Scope, silent []stretch) error {
	for from := 0; len(silent) > 0 && c.undecided(ask, func(sc *scopeCensus) headcount { return sc.tasks }, s.t.opts.BrakeShare); from += censusPage {
		calls := make([]*call, len(silent))
		for i, st := range silent {
			calls[i] = newCall(st.shard, s.t.store.scripts.Get("census_silent"), []string{s.t.store.keys[st.shard].beats(st.timeout)},
				from, min(from+censusPage, st.members)-1)
		}
		if err := s.execEvery(calls); err != nil {
			return err
		}
		for _, call := range calls {
			c.addTasks(call.reply)
		}
		silent = slices.DeleteFunc(silent, func(st stretch) bool { return st.members <= from+censusPage })
	}
	return nil
}

// countHeld adds the held, whose scores are new.
func (s *Sweeper) countHeld(c *census, held map[int]int) error {
	for from := 0; len(held) > 0; from += censusHeld {
		var calls []*call
		for shard := range held {
			k := s.t.store.keys[shard]
			keys, args := []string{k.clock, k.braked}, []any{silentFrom, from, censusHeld}
			for _, timeout := range s.known(shard) {
				keys = append(keys, k.beats(timeout))
				args = append(args, timeout)
			}
			calls = append(calls, newCall(shard, s.t.store.scripts.Get("census_spared"), keys, args...))
		}
		if err := s.execEvery(calls); err != nil {
			return err
		}
		for _, call := range calls {
			if call.reply.int(0) < censusHeld {
				delete(held, call.shard)
			}
			c.addTasks(call.reply[1:])
		}
	}
	return nil
}

// addTasks adds a script's counts of silent tasks; those of scopes that nobody asked for are left out.
func (c *census) addTasks(counts reply) {
	for i := 0; i+1 < len(counts); i += 2 {
		tenant, workspace, _ := strings.Cut(counts.str(i), "/")
		if sc := c.scopes[Scope{tenant, workspace}]; sc != nil {
			sc.tasks.silent += int(counts.int(i + 1))
		}
	}
}

// countSilentWorkers looks at every worker of the scopes that have enough of them: their scores tell when to look at
// them next, not how silent they are.
func (s *Sweeper) countSilentWorkers(c *census, ask []Scope) error {
	for _, scope := range ask {
		sc := c.scopes[scope]
		if sc.workers.live < brakeFloor || sc.tasks.mass(s.t.opts.BrakeShare) {
			continue
		}
		after := make(map[string]string, len(sc.workerShards)) // shard and letter → last id
		for _, shard := range sc.workerShards {
			for _, letter := range [...]string{"N", "D"} {
				after[strconv.Itoa(shard)+letter] = ""
			}
		}
		for len(after) > 0 && !sc.workers.mass(s.t.opts.BrakeShare) {
			if err := s.countWorkerPages(scope, sc, after); err != nil {
				return err
			}
		}
	}
	return nil
}

// countWorkerPages counts one page of each list that is not at its end, and moves on in it.
func (s *Sweeper) countWorkerPages(scope Scope, sc *scopeCensus, after map[string]string) error {
	const page = 500
	var lists []*call
	var names []string
	for at, last := range after {
		shard, _ := strconv.Atoi(at[:len(at)-1])
		lists = append(lists, newCall(shard, s.t.store.scripts.Get("list"), []string{s.t.store.keys[shard].workers}, scope.String()+"/", at[len(at)-1:], last, page, ""))
		names = append(names, at)
	}
	if err := s.execEvery(lists); err != nil {
		return err
	}
	var reads []*call
	for i, list := range lists {
		ids := list.reply.list(0).strings()
		if len(ids) < page {
			delete(after, names[i])
		} else {
			after[names[i]] = ids[len(ids)-1]
		}
		if len(ids) == 0 {
			continue
		}
		k := s.t.store.keys[list.shard]
		keys := []string{k.clock}
		for _, id := range ids {
			keys = append(keys, k.worker(taskName(scope, id)))
		}
		reads = append(reads, newCall(list.shard, s.t.store.scripts.Get("census_workers"), keys, silentFrom))
	}
	if err := s.execEvery(reads); err != nil {
		return err
	}
	for _, read := range reads {
		sc.workers.silent += int(read.reply.int(0))
	}
	return nil
}
