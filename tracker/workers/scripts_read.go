package workers

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/schema"
	"github.com/lubdub-io/lubdub/tracker/store"
)

// ListArgs define what list.lua lists and counts in the indexes of some shards.
type ListArgs struct {
	Prefix  string // before the state: "<scope>/", "|<scope>/" for ends, or ""
	States  string // states to list, a letter each
	After   string // name after which to begin; "": from the start
	Before  string // name before which to end; "": at the end
	Reverse bool   // the last first
	Limit   int    // for each state of each shard
	Count   string // states to count, a letter each
}

// ListCall lists names by state in the indexes with these keys (list.lua), of the shard and of those that share its slot.
func (s *scripts) ListCall(shard int, keys []string, a ListArgs) *store.Call {
	reverse := ""
	if a.Reverse {
		reverse = "1"
	}
	return store.NewCall(shard, s.list, keys, a.Prefix, a.States, a.After, a.Limit, a.Count, reverse, a.Before)
}

// Listed is the result for the index of one shard.
type Listed struct {
	IDs    [][]string // names of each listed state, in order
	Counts []int      // of each counted state
}

// ReadList reads the reply of list.lua about that many indexes, each with that many states.
func ReadList(re store.Reply, indexes, states int) []Listed {
	lists := make([]Listed, indexes)
	for i := range lists {
		of := re[min(i*(states+1), len(re)):]
		for j := range states {
			lists[i].IDs = append(lists[i].IDs, of.List(j).Strings())
		}
		lists[i].Counts = ints(of.List(states))
	}
	return lists
}

func ints(re store.Reply) []int {
	n := make([]int, len(re))
	for i := range n {
		n[i] = int(re.Int(i))
	}
	return n
}

// stored is a worker from its record.
type stored struct {
	silent string            // ms since its last heartbeat in shard time; "": none recorded
	fields map[string]string // empty: the worker does not exist
}

// readCall reads the records of workers of one shard (worker_read.lua).
func (s *scripts) readCall(refs []*schema.WorkerRef) *store.Call {
	k := s.store.Keys[refs[0].Shard]
	return store.NewCall(refs[0].Shard, s.read, s.recordKeys(refs, k.Clock))
}

func readRecords(re store.Reply, workers int) (now time.Time, records []stored) {
	records = make([]stored, workers)
	for i := range records {
		records[i] = stored{silent: re.Str(1 + 2*i), fields: store.Pairs(re.List(2 + 2*i))}
	}
	return re.Time(0), records
}

// condition is a requirement for a field of a worker's record. A field that is not set is "".
type condition struct{ field, how, text string }

// The kinds of conditions; worker_candidates.lua has the same.
const (
	is       = "="
	contains = "~" // the text
	lists    = "," // the text as an item between commas
)

// candidatesCall reads some fields of the workers of one shard that meet all conditions (worker_candidates.lua).
func (s *scripts) candidatesCall(refs []*schema.WorkerRef, conditions []condition, fields []string) *store.Call {
	k := s.store.Keys[refs[0].Shard]
	args := append(make([]any, 0, 1+3*len(conditions)+len(fields)), len(conditions))
	for _, c := range conditions {
		args = append(args, c.field, c.how, c.text)
	}
	return store.NewCall(refs[0].Shard, s.candidates, s.recordKeys(refs, k.Clock), append(args, pairs(fields)...)...)
}

// readCandidates calls each for every worker that exists and meets the conditions, with its position. The map of fields is reused
// for the next one.
func readCandidates(re store.Reply, workers int, fields []string, each func(i int, now time.Time, w stored)) {
	now, shardTime, w := re.Time(0), re.Int(1), stored{fields: make(map[string]string, len(fields))}
	for i := range workers {
		values := strings.Split(re.Str(2+i), schema.PackSep)
		if len(values) != 1+len(fields) {
			continue
		}
		w.silent = ""
		if values[0] != "" {
			w.silent = strconv.FormatInt(shardTime-schema.ParseInt(values[0]), 10)
		}
		for j, name := range fields {
			w.fields[name] = values[1+j]
		}
		each(i, now, w)
	}
}

// load is the work of a worker in a shard.
type load struct {
	held   int // attempts that it holds
	placed int // tasks that wait for it alone
}

// loadsCall counts the loads of workers in one shard (loads.lua).
func (s *scripts) loadsCall(shard int, workers []*model.Worker) *store.Call {
	args := make([]any, 0, 2*len(workers))
	for _, w := range workers {
		pinned := ""
		if w.Queue != "" {
			pinned = w.Scope.String() + "/" + w.Queue + "/" + w.ID
		}
		args = append(args, w.ID, pinned)
	}
	k := s.store.Keys[shard]
	return store.NewCall(shard, s.loads, []string{k.Held, k.Ready}, args...)
}

// readLoad reads the load of one worker, by its position.
func readLoad(re store.Reply, i int) load {
	return load{held: int(re.Int(2 * i)), placed: int(re.Int(2*i + 1))}
}

// allLoadsCall counts the loads of all workers in a shard, with the waiting tasks of some queues, each <scope>/<queue>
// (all_loads.lua).
func (s *scripts) allLoadsCall(shard, limit int, queues []string) *store.Call {
	k := s.store.Keys[shard]
	return store.NewCall(shard, s.allLoads, []string{k.Held, k.Ready}, append([]any{limit}, pairs(queues)...)...)
}

type allLoadsReply struct {
	within bool // the limit; else there are no loads
	loads  map[string]load
}

func readAllLoads(re store.Reply) allLoadsReply {
	r := allLoadsReply{within: re.Int(0) == 1, loads: make(map[string]load, len(re)/3)}
	for i := 1; i < len(re); i += 3 {
		r.loads[re.Str(i)] = load{held: int(re.Int(i + 1)), placed: int(re.Int(i + 2))}
	}
	return r
}

// dayCountsCall counts how often workers of one shard and their machines were declared stale within a day (day_counts.lua).
func (s *scripts) dayCountsCall(shard int, workers []*model.Worker) *store.Call {
	keys := make([]string, 0, 2*len(workers))
	for _, w := range workers {
		keys = append(keys, s.store.Keys[shard].Stales(w.Scope, w.Lineage), s.store.Keys[shard].Stales(w.Scope, "m:"+w.MachineID))
	}
	return store.NewCall(shard, s.dayCounts, keys)
}

// dayCount is how often a worker and its machine were declared stale within a day.
type dayCount struct{ worker, machine int }

// readDayCounts returns the counts of each worker.
func readDayCounts(re store.Reply) (counts []dayCount) {
	for pair := range slices.Chunk(ints(re), 2) {
		counts = append(counts, dayCount{pair[0], pair[1]})
	}
	return counts
}

// livesCall reads when the registrations of some lineages were alive (lives.lua).
func (s *scripts) livesCall(shard int, workers []*model.Worker) *store.Call {
	keys := make([]string, len(workers))
	for i, w := range workers {
		keys[i] = s.store.Keys[shard].Lives(w.Scope, w.Lineage)
	}
	return store.NewCall(shard, s.lives, keys)
}

// readLives returns the lives of one lineage, by its position.
func readLives(re store.Reply, i int) (lives []model.Life) {
	for _, life := range re.List(i).Strings() {
		if f := strings.Split(life, ":"); len(f) == 3 {
			lives = append(lives, model.Life{Began: schema.ParseMillis(f[0]), Ended: schema.ParseMillis(f[1]), Lost: f[2] == "l"})
		}
	}
	return lives
}

// holdsCall reads the holds of the lineages of some workers (worker_holds.lua).
func (s *scripts) holdsCall(shard int, workers []*model.Worker) *store.Call {
	keys := make([]string, len(workers))
	for i, w := range workers {
		keys[i] = s.store.Keys[shard].Hold(w.Scope, w.Lineage)
	}
	return store.NewCall(shard, s.holds, keys)
}

// readHold returns the hold of one worker, by its position; nil: its lineage is not held.
func readHold(re store.Reply, i int) *model.Hold {
	since := re.Str(2 * i)
	if since == "" {
		return nil
	}
	return &model.Hold{Since: schema.ParseMillis(since), Reason: re.Str(2*i + 1)}
}

// machineReadCall reads a machine (machine_read.lua) and names up to that many of its workers.
func (s *scripts) machineReadCall(scope model.Scope, id string, limit int) *store.Call {
	shard := s.store.MachineShard(scope, id)
	return store.NewCall(shard, s.machineRead, machineKeys(s.store.Keys[shard], scope, id), limit)
}

type machineReply struct {
	now         time.Time
	status      model.WorkerStatus // "": the machine does not exist
	first       time.Time          // when it was first seen
	onlineSince time.Time          // zero: it is not online
	periods     []string           // its online periods, begin:end, wall ms
	stales      int                // how often it was declared stale within a day
	workers     []int              // in the order of model.WorkerStatuses
	latest      []string           // status letter and ID of the workers that registered last, of the first status that any worker has
	drained     MachineDrain       // Since zero: it is not drained
	held        model.Hold         // the same
}

func readMachine(re store.Reply) machineReply {
	return machineReply{
		now: re.Time(0), status: model.StatusOf(re.Str(1)), first: schema.ParseMillis(re.Str(2)), onlineSince: schema.ParseMillis(re.Str(3)),
		periods: re.List(4).Strings(), stales: int(re.Int(5)), workers: ints(re.List(6)), latest: re.List(7).Strings(),
		drained: MachineDrain{Since: schema.ParseMillis(re.Str(8)), Deadline: schema.ParseMillis(re.Str(9)), Reason: re.Str(10)},
		held:    model.Hold{Since: schema.ParseMillis(re.Str(11)), Reason: re.Str(12)},
	}
}
