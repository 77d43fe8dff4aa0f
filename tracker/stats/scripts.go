package stats

import (
	"strconv"
	"strings"
	"time"

	"github.com/lubdub-io/lubdub/lua"
	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/schema"
	"github.com/lubdub-io/lubdub/tracker/store"
)

// scripts are the Lua scripts of this package. The positions of their arguments and of the values in their replies are known in
// this file only.
type scripts struct {
	counts, fleet, levels, report, scopes, shards, silent, steps, newest, flapping, queueWorkers *lua.Script
}

func newScripts(set *lua.Set) *scripts {
	return &scripts{
		counts: set.Get("counts"), fleet: set.Get("fleet"), levels: set.Get("levels"), report: set.Get("report"), scopes: set.Get("scopes"),
		shards: set.Get("shards"), silent: set.Get("silent"), steps: set.Get("steps"), newest: set.Get("newest"), flapping: set.Get("flapping"),
		queueWorkers: set.Get("queue_workers"),
	}
}

// scopesCall lists scopes of a shard, of one tenant or of all, up to a limit.
func (s *Service) scopesCall(shard int, f ScopeFilter, after string, limit int) *store.Call {
	k, reverse := s.store.Keys[shard], ""
	if f.Descending {
		reverse = "1"
	}
	return store.NewCall(shard, s.scripts.scopes, []string{k.Index, k.Workers}, f.Tenant, after, limit, reverse)
}

func readScopes(re store.Reply) []string { return re.Strings() }

// countsAtOnce is how many scopes one script counts.
const countsAtOnce = 50

func (s *Service) countsCall(shard int, scopes []string) *store.Call {
	k := s.store.Keys[shard]
	args := make([]any, len(scopes))
	for i, scope := range scopes {
		args[i] = scope
	}
	return store.NewCall(shard, s.scripts.counts, []string{k.Index, k.Workers, k.WorkerBeats, k.Clock, k.Braked}, args...)
}

// readCounts adds the counts of that many scopes.
func readCounts(re store.Reply, scopes int, to *Counts) {
	i := -1
	next := func() int { i++; return int(re.Int(i)) }
	for range scopes {
		for _, state := range model.States {
			to.Tasks[state] += next()
		}
		present := 0
		for _, status := range model.WorkerStatuses {
			n := next()
			if to.Workers[status] += n; status != model.Offline {
				present += n
			}
		}
		late, lost := next(), next()
		to.Liveness[model.Late] += late - lost
		to.Liveness[model.Lost] += lost
		to.Liveness[model.Fresh] += present - late
		for _, status := range model.WorkerStatuses {
			to.Machines[status] += next()
		}
	}
}

// shardsCall reads the state of shards that one call may cover.
func (s *Service) shardsCall(shards []int) *store.Call {
	keys := make([]string, 0, 10*len(shards))
	for _, shard := range shards {
		k := s.store.Keys[shard]
		keys = append(keys, k.Clock, k.Timers, k.Due, k.WorkerBeats, k.Timeouts, k.Sweepers, k.Recoveries, k.Events, k.Outages, k.Braked)
	}
	return store.NewCall(shards[0], s.scripts.shards, keys, model.Millis(time.Hour))
}

// readShards returns the state of the shards and the timeouts that each uses.
func readShards(re store.Reply, shards []int) (found []Shard, timeouts [][]string) {
	now := re.Time(0)
	for i, shard := range shards {
		r := re.List(1 + i)
		is := Shard{
			Number: shard, Overdue: millis(r.Int(1)), Stopped: millis(r.Int(2)), OutageCredit: millis(r.Int(3)),
			Recoveries: int(r.Int(4)), Events: int(r.Int(5)), Held: int(r.Int(7)), sweepers: r.List(8).Strings(),
			OutageEnded: millis(r.Int(10)),
		}
		for _, name := range r.List(11).Strings() {
			tenant, workspace, _ := strings.Cut(name, "/")
			is.Braked = append(is.Braked, model.Scope{Tenant: tenant, Workspace: workspace})
		}
		if id := r.Str(6); id != "" {
			is.EventsFor = max(0, now.Sub(schema.ParseMillis(strings.SplitN(id, "-", 2)[0])))
		}
		found, timeouts = append(found, is), append(timeouts, r.List(9).Strings())
	}
	return found, timeouts
}

// noTimeout is the timeout of attempts that stay alive by their worker's heartbeats, so they are never overdue themselves.
const noTimeout = "0"

// silentCall reads by how much attempts of a shard are overdue.
func (s *Service) silentCall(shard int, timeouts []string) *store.Call {
	k := s.store.Keys[shard]
	keys, args := []string{k.Clock}, make([]any, 0, len(timeouts))
	for _, timeout := range timeouts {
		if timeout != noTimeout {
			keys, args = append(keys, k.Beats(timeout)), append(args, timeout)
		}
	}
	return store.NewCall(shard, s.scripts.silent, keys, args...)
}

func readSilent(re store.Reply) time.Duration { return millis(re.Int(0)) }

func millis(n int64) time.Duration { return time.Duration(n) * time.Millisecond }

// How long reports of replicas are valid.
const (
	replicaLife    = 30 * time.Second // of a silent replica
	stepLife       = 70 * time.Minute
	publisherLease = 25 * time.Second // two reports may fail
)

// reportCall registers a replica and, unless the step is zero, stores what it has counted in that step.
func (s *Service) reportCall(replica, facts string, step int64, c *counted) *store.Call {
	began, lag := "", int64(0)
	args := []any{}
	if step != 0 {
		began, lag = strconv.FormatInt(step*stepMillis, 10), c.sweepLag.Milliseconds()
		for name, n := range c.counts {
			args = append(args, name, n)
		}
	}
	return store.NewCall(0, s.scripts.report,
		[]string{schema.FleetKey, schema.ReplicaKey(replica), schema.StepKey(step), schema.TellerKey},
		append([]any{replica, facts, model.Millis(replicaLife), began, model.Millis(stepLife), lag, model.Millis(publisherLease)}, args...)...)
}

type reportReply struct {
	now       time.Time
	refused   bool // there are too many replicas
	wanted    bool // no replica has stored the levels of the step yet
	publishes bool // this replica shows the levels in its metrics
}

func readReport(re store.Reply) reportReply {
	return reportReply{now: re.Time(1), refused: re.Int(0) == schema.CodeRefused, wanted: re.Int(2) == 1, publishes: re.Int(3) == 1}
}

// levelsCall stores the levels of a step and the only scope that they cover, "" for several.
func (s *Service) levelsCall(step int64, levels map[string]int64, only string) *store.Call {
	args := append(make([]any, 0, 2+2*len(levels)), onlyLevel, only)
	for name, n := range levels {
		args = append(args, name, n)
	}
	return store.NewCall(0, s.scripts.levels, []string{schema.StepKey(step)}, args...)
}

// stepsAtOnce is how many steps one script reads.
const stepsAtOnce = 30

func (s *Service) stepsCall(steps []int64) *store.Call {
	keys := make([]string, len(steps))
	for i, step := range steps {
		keys[i] = schema.StepKey(step)
	}
	return store.NewCall(0, s.scripts.steps, keys)
}

// readSteps returns the fields of each step; none for one without reports.
func readSteps(re store.Reply, steps int) []map[string]string {
	found := make([]map[string]string, steps)
	for i := range found {
		found[i] = store.Pairs(re.List(i))
	}
	return found
}

// repliesAtOnce is how many replicas' reports one script reads.
const repliesAtOnce = 100

func (s *Service) fleetCall(replicas []string) *store.Call {
	keys := []string{schema.FleetKey}
	for _, id := range replicas {
		keys = append(keys, schema.ReplicaKey(id))
	}
	return store.NewCall(0, s.scripts.fleet, keys, model.Millis(replicaLife))
}

type fleetReply struct {
	now        time.Time
	lastReport map[string]time.Time // last report by replica
	reports    []string             // reports of the requested replicas
}

func readFleet(re store.Reply) fleetReply {
	f := fleetReply{now: re.Time(0), lastReport: map[string]time.Time{}, reports: re.List(2).Strings()}
	there := re.List(1)
	for i := 0; i+1 < len(there); i += 2 {
		f.lastReport[there.Str(i)] = schema.ParseMillis(there.Str(i + 1))
	}
	return f
}

// verdictsAtOnce is how many verdicts one script lists.
const verdictsAtOnce = 1000

// verdictsCall lists verdicts of a scope since a time, latest first; before: an entry, or a time.
func (s *Service) verdictsCall(shard int, scope model.Scope, since time.Time, before string) *store.Call {
	return store.NewCall(shard, s.scripts.newest, []string{s.store.Keys[shard].Index}, schema.VerdictEntry+scope.String()+"/",
		schema.Sortable(since), before, verdictsAtOnce)
}

func readVerdicts(re store.Reply) []string { return re.List(0).Strings() }

// failuresCall lists the failures that workers of a scope have reported since a time, latest first.
func (s *Service) failuresCall(shard int, scope model.Scope, since time.Time) *store.Call {
	return store.NewCall(shard, s.scripts.newest, []string{s.store.Keys[shard].Index}, schema.FailureEntry+scope.String()+"/",
		schema.Sortable(since), never, schema.MaxFailures)
}

// succeededCall counts the tasks of a scope that have succeeded since a time.
func (s *Service) succeededCall(shard int, scope model.Scope, since time.Time) *store.Call {
	return store.NewCall(shard, s.scripts.newest, []string{s.store.Keys[shard].Index},
		schema.EndEntry+scope.String()+"/"+schema.Letters(model.Succeeded)+"/", schema.Sortable(since), never, 0)
}

// lostCall lists the workers of a shard that a scope has lost since a time, latest first.
func (s *Service) lostCall(shard int, scope model.Scope, since time.Time) *store.Call {
	return store.NewCall(shard, s.scripts.newest, []string{s.store.Keys[shard].Workers}, schema.LostWorker+scope.String()+"/",
		schema.Sortable(since), never, MaxLostWorkers)
}

// readNewest returns what the script lists, without the prefix, and its total number.
func readNewest(re store.Reply) (newest []string, total int) {
	return re.List(0).Strings(), int(re.Int(1))
}

// flappingCall counts what flaps in a shard (flapping.lua).
func (s *Service) flappingCall(shard int) *store.Call {
	return store.NewCall(shard, s.scripts.flapping, []string{s.store.Keys[shard].Flapping})
}

func readFlapping(re store.Reply) (workers, machines int) { return int(re.Int(0)), int(re.Int(1)) }

// queueWorkersCall counts a shard's workers by queue, starting after a queue (queue_workers.lua).
func (s *Service) queueWorkersCall(shard int, after string) *store.Call {
	return store.NewCall(shard, s.scripts.queueWorkers, []string{s.store.Keys[shard].Workers}, after, queuesAtOnce)
}

// readQueueWorkers adds the counts and returns the last queue of the reply and the number of queues.
func readQueueWorkers(re store.Reply, to map[string]map[model.WorkerStatus]int) (last string, queues int) {
	for i := 0; i+2 < len(re); i += 3 {
		last = re.Str(i)
		if to[last] == nil {
			to[last] = map[model.WorkerStatus]int{}
		}
		to[last][model.Online] += int(re.Int(i + 1))
		to[last][model.Draining] += int(re.Int(i + 2))
	}
	return last, len(re) / 3
}
