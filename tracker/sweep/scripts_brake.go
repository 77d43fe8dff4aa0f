package sweep

import (
	"strings"
	"time"

	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/schema"
	"github.com/lubdub-io/lubdub/tracker/store"
)

// brakeEngageCall goes to the shard where the scope is at home; lasts is for how long the brake engages only once, data is the
// event's, as JSON.
func (s *scripts) brakeEngageCall(shard int, scope model.Scope, lasts time.Duration, data string) *store.Call {
	k := s.keys[shard]
	return store.NewCall(shard, s.brakeEngage, []string{k.Clock, k.Braked, k.Events}, scope.String(), model.Millis(lasts), data)
}

// readBrakeEngage reports whether the brake may spare what is silent.
func readBrakeEngage(r store.Reply) bool { return r.Int(0) == 1 }

// brakeReleaseCall is one part of an act; data is the event's, as JSON, "" where another shard tells it.
func (s *scripts) brakeReleaseCall(shard int, scope model.Scope, lasts time.Duration, data string) *store.Call {
	k := s.keys[shard]
	return store.NewCall(shard, s.brakeRelease, []string{k.Clock, k.Braked, k.Events}, scope.String(), model.Millis(lasts), data)
}

// readBrakeRelease returns when the release is over.
func readBrakeRelease(r store.Reply) time.Time { return r.Time(0) }

// brakeAction is what the scripts of the brake are to do with what they are given.
type brakeAction string

const (
	spareThem brakeAction = "hold"
	letThemGo brakeAction = "free"
)

// attempt is a running attempt of a task.
type attempt struct {
	scope  model.Scope
	id     string
	member string
}

func (s *scripts) brakeTasksCall(shard int, do brakeAction, timeout string, attempts []attempt) *store.Call {
	k := s.keys[shard]
	keys, args := []string{k.Clock, k.Braked, k.Beats(timeout)}, []any{string(do), timeout}
	for _, a := range attempts {
		keys = append(keys, k.Task(schema.TaskName(a.scope, a.id)))
		args = append(args, a.scope.String(), a.member)
	}
	return store.NewCall(shard, s.brakeTasks, keys, args...)
}

func (s *scripts) brakeWorkersCall(shard int, do brakeAction, workers []*schema.WorkerRef) *store.Call {
	k := s.keys[shard]
	keys, args := []string{k.Clock, k.Braked, k.WorkerBeats}, []any{string(do)}
	for _, w := range workers {
		keys = append(keys, k.Worker(schema.TaskName(w.Scope, w.ID)))
		args = append(args, w.Scope.String(), w.ID)
	}
	return store.NewCall(shard, s.brakeWorkers, keys, args...)
}

// brakeAnswer is what the scripts of the brake answer about each that it may spare.
type brakeAnswer int64

// What is not silent for its timeout when they look must not be taken by the script that runs after them either, for then it
// may be.
const (
	brakeAwaits brakeAnswer = 0
	brakeSpares brakeAnswer = 1
	brakeLets   brakeAnswer = 2
)

func readBrake(r store.Reply) []brakeAnswer {
	answers := make([]brakeAnswer, len(r))
	for i := range answers {
		answers[i] = brakeAnswer(r.Int(i))
	}
	return answers
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

// spared are the attempts, by their timeout, and the workers among what the brake remembers.
type spared struct {
	entries  int // of any kind
	attempts map[string][]attempt
	workers  []*schema.WorkerRef
}

func readBraked(shard int, r store.Reply) spared {
	s := spared{entries: len(r), attempts: map[string][]attempt{}}
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
			s.attempts[timeout] = append(s.attempts[timeout], attempt{scope, id, name})
		case kind == "w":
			s.workers = append(s.workers, &schema.WorkerRef{Scope: scope, ID: id, Shard: shard})
		}
	}
	return s
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

// shardCensus is what is live in a shard, and how much may be silent there.
type shardCensus struct {
	timeouts []string    // in use, ms, and the sentinel
	braked   int         // entries of the brake but for the sentinel
	attempts []headcount // of each timeout that was asked for
	scopes   []struct{ tasks, workers int }
	workers  headcount // of which the late ones count as silent
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

func (s *scripts) censusSilentCall(set beatsOf, first, last int) *store.Call {
	return store.NewCall(set.shard, s.censusSilent, []string{s.keys[set.shard].Beats(set.timeout)}, first, last)
}

// scopeCount is how many attempts were counted of a scope.
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

func (s *scripts) censusSparedCall(shard, percent, from, limit int, timeouts []string) *store.Call {
	k := s.keys[shard]
	keys, args := []string{k.Clock, k.Braked}, []any{percent, from, limit}
	for _, timeout := range timeouts {
		keys, args = append(keys, k.Beats(timeout)), append(args, timeout)
	}
	return store.NewCall(shard, s.censusSpared, keys, args...)
}

// readCensusSpared returns how many entries were looked at, and what they are.
func readCensusSpared(r store.Reply) (seen int, counts []scopeCount) {
	return int(r.Int(0)), readCensusSilent(r[min(1, len(r)):])
}

func (s *scripts) censusWorkersCall(shard, percent int, scope model.Scope, ids []string) *store.Call {
	k := s.keys[shard]
	keys := []string{k.Clock}
	for _, id := range ids {
		keys = append(keys, k.Worker(schema.TaskName(scope, id)))
	}
	return store.NewCall(shard, s.censusWorkers, keys, percent)
}

// readCensusWorkers returns how many are silent.
func readCensusWorkers(r store.Reply) int { return int(r.Int(0)) }
