package brake

import (
	"strings"
	"time"

	"github.com/lubdub-io/lubdub/lua"
	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/schema"
	"github.com/lubdub-io/lubdub/tracker/store"
)

// scripts are the Lua scripts of this package. For each there is a function that builds its call, with arguments as the script's
// header names them, and one that reads its reply. No other file knows the positions in either.
type scripts struct {
	keys []*schema.ShardKeys // by shard

	engage, release, tasks, workers, braked           *lua.Script
	census, censusSilent, censusHeld, censusOfWorkers *lua.Script
}

func newScripts(set *lua.Set, keys []*schema.ShardKeys) scripts {
	return scripts{
		keys:   keys,
		engage: set.Get("brake_engage"), release: set.Get("brake_release"), tasks: set.Get("brake_tasks"), workers: set.Get("brake_workers"),
		braked: set.Get("braked"), census: set.Get("census"), censusSilent: set.Get("census_silent"),
		censusHeld: set.Get("census_held"), censusOfWorkers: set.Get("census_workers"),
	}
}

// engageCall goes to the home shard of the scope; lasts is how long the brake writes no second event, data is the JSON of the
// event.
func (s *scripts) engageCall(shard int, scope model.Scope, lasts time.Duration, data string) *store.Call {
	k := s.keys[shard]
	return store.NewCall(shard, s.engage, []string{k.Clock, k.Braked, k.Events}, scope.String(), model.Millis(lasts), data)
}

// readEngage reports whether the brake may hold silent members.
func readEngage(r store.Reply) bool { return r.Int(0) == 1 }

// releaseCall is for one shard; data is the JSON of the event, "" if another shard writes it.
func (s *scripts) releaseCall(shard int, scope model.Scope, lasts time.Duration, data string) *store.Call {
	k := s.keys[shard]
	return store.NewCall(shard, s.release, []string{k.Clock, k.Braked, k.Events}, scope.String(), model.Millis(lasts), data)
}

// readRelease returns when the release ends.
func readRelease(r store.Reply) time.Time { return r.Time(0) }

// action is what the scripts do with the given members.
type action string

const (
	hold action = "hold"
	free action = "free"
)

// beatsSet is the beats set of one timeout in one shard; without a timeout it is the set of the workers.
type beatsSet struct {
	shard   int
	timeout string // ms
}

func (a Attempt) set() beatsSet { return beatsSet{a.Shard, a.Timeout} }

// tasksCall is for attempts of one set.
func (s *scripts) tasksCall(do action, attempts []Attempt) *store.Call {
	of := attempts[0].set()
	k := s.keys[of.shard]
	keys, args := []string{k.Clock, k.Braked, k.Beats(of.timeout)}, []any{string(do), of.timeout}
	for _, a := range attempts {
		keys = append(keys, k.Task(schema.TaskName(a.Scope, a.TaskID)))
		args = append(args, a.Scope.String(), a.Member)
	}
	return store.NewCall(of.shard, s.tasks, keys, args...)
}

// workersCall is for workers of one shard.
func (s *scripts) workersCall(do action, workers []*schema.WorkerRef) *store.Call {
	shard := workers[0].Shard
	k := s.keys[shard]
	keys, args := []string{k.Clock, k.Braked, k.WorkerBeats}, []any{string(do)}
	for _, w := range workers {
		keys = append(keys, k.Worker(schema.TaskName(w.Scope, w.ID)))
		args = append(args, w.Scope.String(), w.ID)
	}
	return store.NewCall(shard, s.workers, keys, args...)
}

func readDecisions(r store.Reply) []Decision {
	decisions := make([]Decision, len(r))
	for i := range decisions {
		decisions[i] = Decision(r.Int(i))
	}
	return decisions
}

// readFreed returns how many were released.
func readFreed(r store.Reply) (n int) {
	for i := range r {
		n += int(r.Int(i))
	}
	return n
}

func (s *scripts) brakedCall(shard, from, limit int) *store.Call {
	k := s.keys[shard]
	return store.NewCall(shard, s.braked, []string{k.Clock, k.Braked}, from, limit)
}

// held are the attempts and the workers among the entries of the brake.
type held struct {
	entries  int // of any kind
	attempts []Attempt
	workers  []*schema.WorkerRef
}

func readBraked(shard int, r store.Reply) held {
	h := held{entries: len(r)}
	for _, entry := range r.Strings() {
		kind, name, _ := strings.Cut(entry, ":") // lib/brake.lua has the kinds
		timeout := ""
		if kind == "h" {
			timeout, name, _ = strings.Cut(name, ":")
		}
		scope, id, named := schema.SplitName(name)
		switch {
		case !named:
		case kind == "h":
			h.attempts = append(h.attempts, Attempt{shard, timeout, scope, id, name})
		case kind == "w":
			h.workers = append(h.workers, &schema.WorkerRef{Scope: scope, ID: id, Shard: shard})
		}
	}
	return h
}

func (s *scripts) censusCall(shard, percent int, timeouts []string, scopes []model.Scope) *store.Call {
	k := s.keys[shard]
	keys, args := []string{k.Clock, k.Timeouts, k.Index, k.Workers, k.Braked, k.WorkerBeats}, []any{percent, len(timeouts)}
	for _, timeout := range timeouts {
		keys, args = append(keys, k.Beats(timeout)), append(args, timeout)
	}
	for _, scope := range scopes {
		args = append(args, scope.String())
	}
	return store.NewCall(shard, s.census, keys, args...)
}

// shardCensus is how much is live in a shard and how much may be silent.
type shardCensus struct {
	timeouts []string    // in use, ms, and the sentinel
	braked   int         // entries of the brake without the sentinel
	attempts []headcount // of each timeout in the call
	scopes   []struct{ tasks, workers int }
	workers  headcount // of which the late count as silent
}

func readCensus(r store.Reply) shardCensus {
	attempts, scopes := r.List(2), r.List(3)
	c := shardCensus{
		timeouts: r.List(0).Strings(), braked: max(int(r.Int(1))-1, 0),
		attempts: make([]headcount, len(attempts)/2), scopes: make([]struct{ tasks, workers int }, len(scopes)/2),
	}
	for i := range c.attempts {
		c.attempts[i] = headcount{silent: int(attempts.Int(2 * i)), live: int(attempts.Int(2*i + 1))}
	}
	for i := range c.scopes {
		c.scopes[i].tasks, c.scopes[i].workers = int(scopes.Int(2*i)), int(scopes.Int(2*i+1))
	}
	c.workers = headcount{silent: int(r.List(4).Int(0)), live: int(r.List(4).Int(1))}
	return c
}

func (s *scripts) censusSilentCall(set beatsSet, first, last int) *store.Call {
	return store.NewCall(set.shard, s.censusSilent, []string{s.keys[set.shard].Beats(set.timeout)}, first, last)
}

// scopeCount is the number of attempts counted for a scope.
type scopeCount struct {
	scope    model.Scope
	attempts int
}

func readCensusSilent(r store.Reply) []scopeCount {
	counts := make([]scopeCount, len(r)/2)
	for i := range counts {
		tenant, workspace, _ := strings.Cut(r.Str(2*i), "/")
		counts[i] = scopeCount{model.Scope{Tenant: tenant, Workspace: workspace}, int(r.Int(2*i + 1))}
	}
	return counts
}

func (s *scripts) censusHeldCall(shard, percent, from, limit int, timeouts []string) *store.Call {
	k := s.keys[shard]
	keys, args := []string{k.Clock, k.Braked}, []any{percent, from, limit}
	for _, timeout := range timeouts {
		keys, args = append(keys, k.Beats(timeout)), append(args, timeout)
	}
	return store.NewCall(shard, s.censusHeld, keys, args...)
}

// readCensusHeld returns how many entries were examined and the counts by scope.
func readCensusHeld(r store.Reply) (seen int, counts []scopeCount) {
	return int(r.Int(0)), readCensusSilent(r[min(1, len(r)):])
}

func (s *scripts) censusWorkersCall(shard, percent int, scope model.Scope, ids []string) *store.Call {
	k := s.keys[shard]
	keys := []string{k.Clock}
	for _, id := range ids {
		keys = append(keys, k.Worker(schema.TaskName(scope, id)))
	}
	return store.NewCall(shard, s.censusOfWorkers, keys, percent)
}

// readCensusWorkers returns how many are silent.
func readCensusWorkers(r store.Reply) int { return int(r.Int(0)) }
