package tracker

import (
	"strconv"
	"strings"
	"sync"
	"time"
)

// Every Redis key of Lubdub is built in this file and nowhere else. A key is lubdub:{<shard>}:…; the braces
// are Redis Cluster's hash tag, so that all keys of a shard live on one node and a script may touch them all.

// shardKeys holds the fixed keys of one shard, and the prefix of the others.
type shardKeys struct {
	prefix    string
	fixed     []string // in the order of lua/lib/shard.lua
	clock     string
	outages   string
	timeouts  string
	timers    string
	due       string
	ix        string
	events    string
	progress  string
	cancels   string
	ready     string
	held      string
	outbox    string
	fences    string
	pauses    string
	replicas  string
	sweepers  string
	confirmed string
	braked    string

	ofWorkers   []string // in the order of lua/lib/worker.lua
	workers     string
	workerBeats string
	workerDue   string
	recoveries  string

	beatsOf sync.Map // time.Duration → string: keys that attempts share
}

func newShardKeys(shard int) *shardKeys {
	k := &shardKeys{prefix: "lubdub:{" + strconv.Itoa(shard) + "}:"}
	k.clock = k.prefix + "clock"
	k.outages = k.prefix + "outages"
	k.timeouts = k.prefix + "timeouts"
	k.timers = k.prefix + "timers"
	k.due = k.prefix + "due"
	k.ix = k.prefix + "ix"
	k.events = k.prefix + "events"
	k.progress = k.prefix + "progress"
	k.cancels = k.prefix + "cancels"
	k.ready = k.prefix + "ready"
	k.held = k.prefix + "held"
	k.outbox = k.prefix + "outbox"
	k.fences = k.prefix + "fences"
	k.pauses = k.prefix + "pauses"
	k.replicas = k.prefix + "replicas"
	k.sweepers = k.prefix + "sweepers"
	k.confirmed = k.prefix + "confirmed"
	k.braked = k.prefix + "braked"
	k.fixed = []string{k.clock, k.outages, k.timeouts, k.timers, k.due, k.ix, k.events, k.progress, k.cancels,
		k.ready, k.held, k.outbox}
	k.workers = k.prefix + "workers"
	k.workerBeats = k.prefix + "workerbeats"
	k.workerDue = k.prefix + "workerdue"
	k.recoveries = k.prefix + "recoveries"
	k.ofWorkers = []string{k.clock, k.outages, k.events, k.workers, k.workerBeats, k.workerDue, k.recoveries}
	return k
}

// metaKey holds what is fixed for a deployment's life; it lives in the shard that every deployment has.
const metaKey = "lubdub:{0}:meta"

func (k *shardKeys) beats(timeoutMs string) string { return k.prefix + "beats:" + timeoutMs }

// sharedBeats gives the key of a timeout's set, the same string to all attempts. There are few: timeouts have
// two significant digits.
func (k *shardKeys) sharedBeats(timeout time.Duration) string {
	if key, ok := k.beatsOf.Load(timeout); ok {
		return key.(string)
	}
	key, _ := k.beatsOf.LoadOrStore(timeout, k.beats(strconv.FormatInt(ms(timeout), 10)))
	return key.(string)
}

func (k *shardKeys) task(name string) string    { return k.prefix + "task:" + name }
func (k *shardKeys) doc(name string) string     { return k.prefix + "doc:" + name }
func (k *shardKeys) history(name string) string { return k.prefix + "history:" + name }
func (k *shardKeys) run(scope Scope, run string) string {
	return k.prefix + "run:" + scope.String() + "/" + run
}
func (k *shardKeys) idempotency(scope Scope, key string) string {
	return k.prefix + "idem:" + scope.String() + "/" + key
}

func (k *shardKeys) claim(scope Scope, worker, mark string) string {
	return k.prefix + "claim:" + scope.String() + "/" + worker + "/" + mark
}

// Word for a worker, and what its last inventory missed, live in the worker's shard.
func (k *shardKeys) notices(name string) string { return k.prefix + "notices:" + name }
func (k *shardKeys) missed(name string) string  { return k.prefix + "missed:" + name }

// ofTask gives the keys of one task in the order in which scripts declare them.
func (k *shardKeys) ofTask(dst []string, scope Scope, id, run, timeoutMs string) []string {
	name := taskName(scope, id)
	return append(dst, k.task(name), k.doc(name), k.history(name), k.run(scope, run), k.beats(timeoutMs))
}

// taskName is how a task is named inside sorted sets: <tenant>/<workspace>/<task>. Ids hold no slash.
func taskName(scope Scope, id string) string {
	return scope.Tenant + "/" + scope.Workspace + "/" + id
}

// member names one attempt: <scope>/<task>#<attempt>.<fence>.
func memberName(scope Scope, id string, attempt int, fence string) string {
	return taskName(scope, id) + "#" + strconv.Itoa(attempt) + "." + fence
}

// splitName takes a task's name, or a member, apart again.
func splitName(name string) (scope Scope, id string, ok bool) {
	if i := strings.IndexByte(name, '#'); i >= 0 {
		name = name[:i]
	}
	var rest string
	if scope.Tenant, rest, ok = strings.Cut(name, "/"); !ok {
		return Scope{}, "", false
	}
	scope.Workspace, id, ok = strings.Cut(rest, "/")
	return scope, id, ok
}

// splitAttempt takes the number and the fence out of a member.
func splitAttempt(member string) (number int, fence string, ok bool) {
	_, rest, ok := strings.Cut(member, "#")
	text, fence, cut := strings.Cut(rest, ".")
	number, err := strconv.Atoi(text)
	return number, fence, ok && cut && err == nil
}

// shardOf spreads names over shards by FNV-1a. It is part of the stored layout: changing it loses every task.
func shardOf(shards int, scope Scope, id string) int {
	h := uint64(14695981039346656037)
	for _, s := range [...]string{scope.Tenant, "/", scope.Workspace, "/", id} {
		for i := 0; i < len(s); i++ {
			h = (h ^ uint64(s[i])) * 1099511628211
		}
	}
	h ^= h >> 32 // the low bits of FNV alone are weak for short names
	return int(h % uint64(shards))
}

// The run of a task that was created without one is named after the task and stored nowhere: a run set of one
// task would cost as much memory as the task's beat. runOf gives it, "" when the name would be too long.
func runOf(taskID string) string {
	run := "run_" + strings.TrimPrefix(taskID, "task_")
	if len(run) > MaxIDBytes {
		return ""
	}
	return run
}

// tasksOf gives the task ids whose own run has this id.
func tasksOf(runID string) []string {
	rest, ok := strings.CutPrefix(runID, "run_")
	if !ok || rest == "" {
		return nil
	}
	return []string{"task_" + rest, rest}
}

// Keys of workers and machines. They live in the shard of the machine, which the worker's id embeds, so that a
// machine's status can change in the same script as its last worker's.
func (k *shardKeys) worker(name string) string         { return k.prefix + "worker:" + name }
func (k *shardKeys) reserved(name string) string       { return k.prefix + "reserved:" + name }
func (k *shardKeys) recovery(name string) string       { return k.prefix + "recovery:" + name }
func (k *shardKeys) machine(name string) string        { return k.prefix + "machine:" + name }
func (k *shardKeys) machineWorkers(name string) string { return k.prefix + "machineworkers:" + name }
func (k *shardKeys) machinePeriods(name string) string { return k.prefix + "machineperiods:" + name }
func (k *shardKeys) identity(scope Scope, hash string) string {
	return k.prefix + "identity:" + scope.String() + "/" + hash
}
func (k *shardKeys) registration(scope Scope, key string) string {
	return k.prefix + "registration:" + scope.String() + "/" + key
}
func (k *shardKeys) stales(scope Scope, of string) string {
	return k.prefix + "stales:" + scope.String() + "/" + of
}

// ofWorker gives the keys of one worker in the order in which scripts declare them.
func (k *shardKeys) ofWorker(dst []string, r *workerRef) []string {
	name, machine := taskName(r.scope, r.id), taskName(r.scope, r.machine)
	return append(dst, k.worker(name), k.machine(machine), k.machineWorkers(machine), k.machinePeriods(machine),
		k.stales(r.scope, r.lineage), k.stales(r.scope, "m:"+r.machine), k.recovery(name), k.identity(r.scope, r.identity), k.reserved(name))
}
