package schedules

import (
	"slices"
	"time"

	"github.com/lubdub-io/lubdub/lua"
	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/schema"
	"github.com/lubdub-io/lubdub/tracker/store"
)

// scripts are the Lua scripts of this package. The positions of their arguments and of the values in their replies are known in
// this file only.
type scripts struct {
	request, decide, due, list, read, record, repair, save, settle, change *lua.Script
}

func newScripts(set *lua.Set) *scripts {
	return &scripts{
		request: set.Get("schedule_fire"), change: set.Get("schedule_switch"), decide: set.Get("schedule_decide"), due: set.Get("schedules_due"),
		list: set.Get("schedules_list"), read: set.Get("schedule_read"), record: set.Get("schedule_record"),
		repair: set.Get("schedules_repair"), save: set.Get("schedule_save"), settle: set.Get("schedule_settle"),
	}
}

// ref identifies a schedule.
type ref struct {
	scope model.Scope
	id    string
	shard int
}

func (s *Service) ref(scope model.Scope, id string) ref {
	return ref{scope, id, s.store.ShardOf(scope, id)}
}

func (r ref) name() string { return schema.TaskName(r.scope, r.id) }

// saving returns the keys of scripts that change a schedule.
func (s *Service) saving(r ref) []string {
	k := s.store.Keys[r.shard]
	return k.OfSchedule([]string{k.Events, k.Schedules, k.ScheduleDue}, r.name())
}

// saveCall creates a schedule with a nonce, or changes the given version; either nonce or version is empty.
func (s *Service) saveCall(r ref, d *Spec, nonce, version string) *store.Call {
	overlap := ""
	if d.SkipOverlap {
		overlap = "1"
	}
	return store.NewCall(r.shard, s.scripts.save, s.saving(r), r.scope.String(), r.id, nonce, version, d.Cron, overlap, d.MaxCatchup,
		d.Task.Queue, d.Task.Type, packTask(&d.Task), string(d.Task.Payload), string(d.Task.Resources))
}

// switchTo is an operation on a schedule as a whole.
type switchTo string

const (
	toPaused  switchTo = "pause"
	toRunning switchTo = "resume"
	toDeleted switchTo = "delete"
)

func (s *Service) switchCall(r ref, to switchTo) *store.Call {
	return store.NewCall(r.shard, s.scripts.change, s.saving(r), r.scope.String(), r.id, string(to))
}

// readCode returns the code in the reply of a script about one schedule.
func readCode(re store.Reply) int64 { return re.Int(0) }

// taskPart selects what is read of a schedule's task.
type taskPart string

const (
	noTask    taskPart = ""
	shortTask taskPart = "short" // without payload and resources
	wholeTask taskPart = "whole"
)

// readAtOnce is how many schedules one script reads: without payloads one has at most 60 KB. With payloads it reads one.
const readAtOnce = 25

// readCall reads schedules of one shard, each with some of its waiting fires.
func (s *Service) readCall(refs []ref, waiting int, part taskPart) *store.Call {
	k := s.store.Keys[refs[0].shard]
	var keys []string
	for _, r := range refs {
		keys = k.OfSchedule(keys, r.name())
	}
	return store.NewCall(refs[0].shard, s.scripts.read, keys, waiting, string(part))
}

// readReply is the reply of schedule_read.lua.
type readReply struct {
	now       time.Time   // by Redis's clock
	schedules []*Schedule // nil: it does not exist
	waiting   [][]waiting // of each schedule
}

// scheduleReply is the part of the reply about one schedule.
type scheduleReply struct {
	fields  map[string]string // of its record; none: it does not exist
	waiting []waiting
	count   int      // all waiting fires
	fired   []string // as they are stored, latest first
	task    []string // the requested parts of its task
}

func readScheduleReply(re store.Reply) scheduleReply {
	return scheduleReply{
		fields: store.Pairs(re.List(0)), waiting: readWaiting(re.List(1)), count: int(re.Int(2)), fired: re.List(3).Strings(),
		task: re.List(4).Strings(),
	}
}

func readRead(refs []ref, re store.Reply) readReply {
	reply := readReply{now: re.Time(0), schedules: make([]*Schedule, len(refs)), waiting: make([][]waiting, len(refs))}
	for i, r := range refs {
		of := readScheduleReply(re.List(1 + i))
		reply.schedules[i], reply.waiting[i] = readSchedule(r, of), of.waiting
	}
	return reply
}

func readWaiting(re store.Reply) (all []waiting) {
	for _, text := range re.Strings() {
		if w, ok := parseWaiting(text); ok {
			all = append(all, w)
		}
	}
	return all
}

// listCall lists the names with a prefix in shards that one call may cover.
func (s *Service) listCall(shards []int, prefix, after string, limit int, descending bool) *store.Call {
	keys := make([]string, len(shards))
	for i, shard := range shards {
		keys[i] = s.store.Keys[shard].Schedules
	}
	order := ""
	if descending {
		order = "desc"
	}
	return store.NewCall(shards[0], s.scripts.list, keys, prefix, after, limit, order)
}

// readList returns the listed names, the first ones of each shard, and the total number.
func readList(re store.Reply) (names []string, total int) {
	for i := 0; i+1 < len(re); i += 2 {
		names = append(names, re.List(i).Strings()...)
		total += int(re.Int(i + 1))
	}
	return names, total
}

// dueCall lists the due schedules of shards that one call may cover, up to a limit in each, after those that it passes over.
func (s *Service) dueCall(shards []int, limit int, passOver map[int]int) *store.Call {
	var keys []string
	args := []any{model.Millis(sweeperLease), limit}
	for _, shard := range shards {
		keys = append(keys, s.store.Keys[shard].ScheduleDue, s.store.Keys[shard].Sweepers)
		args = append(args, passOver[shard])
	}
	return store.NewCall(shards[0], s.scripts.due, keys, args...)
}

// dueReply is the reply of schedules_due.lua about one shard.
type dueReply struct {
	next     time.Time // when the next one after these is due
	names    []string
	since    []time.Time // when each was due
	sweepers []string
}

func readDue(re store.Reply) dueReply {
	reply := dueReply{next: re.Time(0), sweepers: re.List(2).Strings()}
	list := re.List(1)
	for i := 0; i+1 < len(list); i += 2 {
		reply.names, reply.since = append(reply.names, list.Str(i)), append(reply.since, list.Time(i+1))
	}
	return reply
}

// firesAtOnce is how many fires one script records.
const firesAtOnce = 250

// recordCall records fires, oldest first.
func (s *Service) recordCall(r ref, of *Schedule, p *plan) *store.Call {
	k := s.store.Keys[r.shard]
	args := []any{r.name(), of.version, of.Last.UnixMilli(), p.last.UnixMilli(), schema.MillisOrEmpty(p.next), p.skipped, waitingRead}
	for _, at := range p.fires {
		args = append(args, millisText(at))
	}
	return store.NewCall(r.shard, s.scripts.record,
		[]string{k.ScheduleDue, k.Schedule(r.name()), k.Pending(r.name()), k.Fired(r.name())}, args...)
}

// recordReply is the reply of schedule_record.lua.
type recordReply struct {
	recorded bool
	skipped  int64 // of these, and of those that waited
	waiting  []waiting
}

func readRecord(re store.Reply) recordReply {
	return recordReply{recorded: re.Int(0) == schema.CodeOK, skipped: re.Int(1), waiting: readWaiting(re.List(2))}
}

// requestedFire is a requested fire.
type requestedFire struct {
	at    time.Time
	again bool // it already has its task, so it is not counted again
}

// requestCall records requested fires; none: one now. At most limit may wait afterwards.
func (s *Service) requestCall(r ref, fires []requestedFire, limit int) *store.Call {
	k := s.store.Keys[r.shard]
	args := []any{r.name(), "m", limit}
	if len(fires) > 0 {
		args[1] = "b"
	}
	for _, fire := range fires {
		text := millisText(fire.at)
		if fire.again {
			text += "r"
		}
		args = append(args, text)
	}
	return store.NewCall(r.shard, s.scripts.request,
		[]string{k.ScheduleDue, k.Schedule(r.name()), k.Pending(r.name()), k.Fired(r.name())}, args...)
}

// requestReply is the reply of schedule_fire.lua.
type requestReply struct {
	code int64     // CodeOK, CodeNotFound, or CodeRefused when too many wait
	now  time.Time // of the fire now
}

func readRequest(re store.Reply) requestReply { return requestReply{re.Int(0), re.Time(1)} }

// decideCall decides that a fire gets a task; before: the task of the previous fire, as it was read.
func (s *Service) decideCall(r ref, w waiting, before string) *store.Call {
	k := s.store.Keys[r.shard]
	return store.NewCall(r.shard, s.scripts.decide, []string{k.Schedule(r.name()), k.Pending(r.name())}, w.text, millisText(w.at), before)
}

// settleCall records the outcomes of fires; pause: how long the waiting ones pause, since one of them was refused.
func (s *Service) settleCall(r ref, version string, next time.Time, pause time.Duration, fires []settled) *store.Call {
	k := s.store.Keys[r.shard]
	args := []any{r.scope.String(), r.id, version, schema.MillisOrEmpty(next), model.Millis(pause), len(fires)}
	for _, f := range fires {
		args = append(args, f.fire.text, eventTime(f.fire.at), f.outcome.letter(), f.detail)
	}
	return store.NewCall(r.shard, s.scripts.settle,
		[]string{k.Events, k.ScheduleDue, k.Schedule(r.name()), k.Pending(r.name()), k.Fired(r.name())}, args...)
}

// readSettle reports whether the call recorded the outcome of a fire.
func readSettle(re store.Reply, i int) bool { return re.Int(i) == 1 }

// letter is how an outcome is stored.
func (o Outcome) letter() string {
	for letter, is := range outcomes {
		if is == o {
			return letter
		}
	}
	return ""
}

// RepairCalls compare entries that name schedules of a shard with their records, and the records with all their entries. The reply
// has what was repaired of each schedule.
func (s *Service) RepairCalls(shard int, entries []string) (calls []*store.Call) {
	var refs []ref
	for _, name := range entries {
		if scope, id, ok := schema.SplitName(name); ok && s.store.ShardOf(scope, id) == shard {
			refs = append(refs, ref{scope, id, shard})
		}
	}
	for part := range slices.Chunk(refs, readAtOnce) {
		calls = append(calls, s.repairCall(part))
	}
	return calls
}

// repairCall repairs schedules of one shard.
func (s *Service) repairCall(refs []ref) *store.Call {
	k := s.store.Keys[refs[0].shard]
	keys, args := []string{k.Events, k.Schedules, k.ScheduleDue}, []any{len(refs)}
	for _, r := range refs {
		keys, args = k.OfSchedule(keys, r.name()), append(args, r.scope.String(), r.id)
	}
	return store.NewCall(refs[0].shard, s.scripts.repair, keys, args...)
}
