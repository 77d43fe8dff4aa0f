package sweep

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/schema"
	"github.com/lubdub-io/lubdub/tracker/store"
)

// census counts the live and the silent of some scopes over all shards. Tasks that live by their worker have no
// silence of their own; their workers are counted.
type census struct{ scopes map[model.Scope]*scopeCensus }

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
func (s *Sweeper) execAll(ctx context.Context, calls []*store.Call) {
	groups := map[*store.Node][]*store.Call{}
	for _, c := range calls {
		n := s.t.store.Node(c.Shard)
		groups[n] = append(groups[n], c)
	}
	var running sync.WaitGroup
	for n, group := range groups {
		running.Go(s.t.store.Guard("the census", func() { s.t.store.Exec(ctx, n, group) }))
	}
	running.Wait()
}

// execEvery does the same and is satisfied with nothing less than every answer.
func (s *Sweeper) execEvery(ctx context.Context, calls []*store.Call) error {
	s.execAll(ctx, calls)
	for _, c := range calls {
		if c.Err != nil {
			return c.Err
		}
	}
	return nil
}

// answered leaves out the calls of nodes that did not answer, and of shards on their way between two: what is there
// cannot be counted, as live or as silent. An error means that none did, or that something is missing of a node that
// did answer: a count without that would let live ones die.
func (s *Sweeper) answered(calls []*store.Call) (left []*store.Call, err error) {
	by := map[*store.Node]bool{}
	for _, c := range calls {
		if c.Err == nil {
			left = append(left, c)
			by[s.t.store.Node(c.Shard)] = true
		}
	}
	for _, c := range calls {
		if c.Err != nil && (len(left) == 0 || by[s.t.store.Node(c.Shard)] && !store.IsRedirect(c.Err)) {
			return nil, c.Err
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

func (s *Sweeper) takeCensus(ctx context.Context, ask []model.Scope) (*census, error) {
	c := &census{scopes: map[model.Scope]*scopeCensus{}}
	for _, scope := range ask {
		c.scopes[scope] = &scopeCensus{}
	}
	silent, held, err := s.censusSizes(ctx, c, ask)
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
		if err := s.countSilent(ctx, c, ask, silent); err != nil {
			return nil, err
		}
		if err := s.countHeld(ctx, c, held); err != nil {
			return nil, err
		}
	}
	return c, s.countSilentWorkers(ctx, c, ask)
}

// undecided tells whether counting more of the silent may yet engage the brake somewhere.
func (c *census) undecided(ask []model.Scope, of func(*scopeCensus) headcount, share int) bool {
	return slices.ContainsFunc(ask, func(scope model.Scope) bool {
		h := of(c.scopes[scope])
		return h.live >= brakeFloor && !h.mass(share)
	})
}

// censusSizes counts what is live, and how much there is to look at. It asks again where a timeout is in use that this
// sweeper did not know of.
func (s *Sweeper) censusSizes(ctx context.Context, c *census, ask []model.Scope) (silent []stretch, held map[int]int, err error) {
	var calls []*store.Call
	known := make([][]string, s.t.store.Shards())
	for again := true; again; {
		again = false
		calls = calls[:0]
		for shard, k := range s.t.store.Keys {
			known[shard] = slices.DeleteFunc(slices.Clone(s.known(shard)), func(t string) bool { return t == "0" }) // they live by their worker
			keys, args := []string{k.Clock, k.Timeouts, k.Index, k.Workers, k.Braked}, []any{silentFrom, len(known[shard])}
			for _, timeout := range known[shard] {
				keys = append(keys, k.Beats(timeout))
				args = append(args, timeout)
			}
			for _, scope := range ask {
				args = append(args, scope.String())
			}
			calls = append(calls, store.NewCall(shard, s.t.store.Scripts.Get("census"), keys, args...))
		}
		s.execAll(ctx, calls)
		for _, call := range calls {
			if call.Err == nil && s.learn(call.Shard, call.Reply.List(0).Strings()) {
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
		if n := int(call.Reply.Int(1)) - 1; n > 0 { // the sentinel
			held[call.Shard] = n
		}
		for i, timeout := range known[call.Shard] {
			own += int(call.Reply.List(2).Int(2*i + 1))
			if n := int(call.Reply.List(2).Int(2 * i)); n > 0 {
				silent = append(silent, stretch{call.Shard, timeout, n})
			}
		}
		for i, scope := range ask {
			sc := c.scopes[scope]
			sc.tasks.live += int(call.Reply.List(3).Int(2 * i))
			if n := int(call.Reply.List(3).Int(2*i + 1)); n > 0 {
				sc.workers.live += n
				sc.workerShards = append(sc.workerShards, call.Shard)
			}
		}
	}
	for _, scope := range ask { // running tasks that live by their worker are not among those that can be silent
		c.scopes[scope].tasks.live = min(c.scopes[scope].tasks.live, own)
	}
	return silent, held, nil
}

// countSilent counts page by page, all sets beside each other, until nothing is left or enough is known.
func (s *Sweeper) countSilent(ctx context.Context, c *census, ask []model.Scope, silent []stretch) error {
	for from := 0; len(silent) > 0 && c.undecided(ask, func(sc *scopeCensus) headcount { return sc.tasks }, s.t.opts.BrakeShare); from += censusPage {
		calls := make([]*store.Call, len(silent))
		for i, st := range silent {
			calls[i] = store.NewCall(st.shard, s.t.store.Scripts.Get("census_silent"), []string{s.t.store.Keys[st.shard].Beats(st.timeout)},
				from, min(from+censusPage, st.members)-1)
		}
		if err := s.execEvery(ctx, calls); err != nil {
			return err
		}
		for _, call := range calls {
			c.addTasks(call.Reply)
		}
		silent = slices.DeleteFunc(silent, func(st stretch) bool { return st.members <= from+censusPage })
	}
	return nil
}

// countHeld adds the held, whose scores are new.
func (s *Sweeper) countHeld(ctx context.Context, c *census, held map[int]int) error {
	for from := 0; len(held) > 0; from += censusHeld {
		var calls []*store.Call
		for shard := range held {
			k := s.t.store.Keys[shard]
			keys, args := []string{k.Clock, k.Braked}, []any{silentFrom, from, censusHeld}
			for _, timeout := range s.known(shard) {
				keys = append(keys, k.Beats(timeout))
				args = append(args, timeout)
			}
			calls = append(calls, store.NewCall(shard, s.t.store.Scripts.Get("census_spared"), keys, args...))
		}
		if err := s.execEvery(ctx, calls); err != nil {
			return err
		}
		for _, call := range calls {
			if call.Reply.Int(0) < censusHeld {
				delete(held, call.Shard)
			}
			c.addTasks(call.Reply[1:])
		}
	}
	return nil
}

// addTasks adds a script's counts of silent tasks; those of scopes that nobody asked for are left out.
func (c *census) addTasks(counts store.Reply) {
	for i := 0; i+1 < len(counts); i += 2 {
		tenant, workspace, _ := strings.Cut(counts.Str(i), "/")
		if sc := c.scopes[model.Scope{Tenant: tenant, Workspace: workspace}]; sc != nil {
			sc.tasks.silent += int(counts.Int(i + 1))
		}
	}
}

// countSilentWorkers looks at every worker of the scopes that have enough of them: their scores tell when to look at
// them next, not how silent they are.
func (s *Sweeper) countSilentWorkers(ctx context.Context, c *census, ask []model.Scope) error {
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
			if err := s.countWorkerPages(ctx, scope, sc, after); err != nil {
				return err
			}
		}
	}
	return nil
}

// countWorkerPages counts one page of each list that is not at its end, and moves on in it.
func (s *Sweeper) countWorkerPages(ctx context.Context, scope model.Scope, sc *scopeCensus, after map[string]string) error {
	const page = 500
	var lists []*store.Call
	var names []string
	for at, last := range after {
		shard, _ := strconv.Atoi(at[:len(at)-1])
		lists = append(lists, store.NewCall(shard, s.t.store.Scripts.Get("list"), []string{s.t.store.Keys[shard].Workers}, scope.String()+"/", at[len(at)-1:], last, page, ""))
		names = append(names, at)
	}
	if err := s.execEvery(ctx, lists); err != nil {
		return err
	}
	var reads []*store.Call
	for i, list := range lists {
		ids := list.Reply.List(0).Strings()
		if len(ids) < page {
			delete(after, names[i])
		} else {
			after[names[i]] = ids[len(ids)-1]
		}
		if len(ids) == 0 {
			continue
		}
		k := s.t.store.Keys[list.Shard]
		keys := []string{k.Clock}
		for _, id := range ids {
			keys = append(keys, k.Worker(schema.TaskName(scope, id)))
		}
		reads = append(reads, store.NewCall(list.Shard, s.t.store.Scripts.Get("census_workers"), keys, silentFrom))
	}
	if err := s.execEvery(ctx, reads); err != nil {
		return err
	}
	for _, read := range reads {
		sc.workers.silent += int(read.Reply.Int(0))
	}
	return nil
}
