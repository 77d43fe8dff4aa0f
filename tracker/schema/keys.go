package schema

import (
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/lubdub-io/lubdub/tracker/model"
)

// Every Redis key of Lubdub is built in this file. A key is lubdub:{<shard>}:…; the braces are Redis Cluster's hash tag, so that all keys
// of a shard are on one node and a script may touch them all.

// ShardKeys holds the fixed keys of one shard, and the prefix of all its keys.
type ShardKeys struct {
	prefix     string
	Fixed      []string // in the order of lua/lib/shard.lua
	Clock      string
	Outages    string
	Timeouts   string
	Timers     string
	Due        string
	Index      string
	Events     string
	Progress   string
	Cancels    string
	Ready      string
	Held       string
	Outbox     string
	Fences     string
	Pauses     string
	Replicas   string
	Sweepers   string
	Confirmed  string
	Braked     string
	EventMarks string

	Schedules   string
	ScheduleDue string

	OfWorkers   []string // in the order of lua/lib/worker.lua
	Workers     string
	WorkerBeats string
	WorkerDue   string
	Recoveries  string
	Flapping    string

	Webhooks string
	HookDue  string

	beatsOf sync.Map // time.Duration → string: keys of sets of beats
}

// NewShardKeys returns the keys of a shard.
func NewShardKeys(shard int) *ShardKeys {
	k := &ShardKeys{prefix: "lubdub:{" + strconv.Itoa(shard) + "}:"}
	k.Clock = k.prefix + "clock"
	k.Outages = k.prefix + "outages"
	k.Timeouts = k.prefix + "timeouts"
	k.Timers = k.prefix + "timers"
	k.Due = k.prefix + "due"
	k.Index = k.prefix + "ix"
	k.Events = k.prefix + "events"
	k.Progress = k.prefix + "progress"
	k.Cancels = k.prefix + "cancels"
	k.Ready = k.prefix + "ready"
	k.Held = k.prefix + "held"
	k.Outbox = k.prefix + "outbox"
	k.Fences = k.prefix + "fences"
	k.Pauses = k.prefix + "pauses"
	k.Replicas = k.prefix + "replicas"
	k.Sweepers = k.prefix + "sweepers"
	k.Confirmed = k.prefix + "confirmed"
	k.Braked = k.prefix + "braked"
	k.EventMarks = k.prefix + "eventmarks"
	k.Schedules = k.prefix + "schedules"
	k.ScheduleDue = k.prefix + "scheduledue"
	k.Fixed = []string{k.Clock, k.Outages, k.Timeouts, k.Timers, k.Due, k.Index, k.Events, k.Progress, k.Cancels,
		k.Ready, k.Held, k.Outbox}
	k.Workers = k.prefix + "workers"
	k.WorkerBeats = k.prefix + "workerbeats"
	k.WorkerDue = k.prefix + "workerdue"
	k.Recoveries = k.prefix + "recoveries"
	k.Flapping = k.prefix + "flapping"
	k.Webhooks = k.prefix + "webhooks"
	k.HookDue = k.prefix + "hookdue"
	k.OfWorkers = []string{k.Clock, k.Outages, k.Events, k.Workers, k.WorkerBeats, k.WorkerDue, k.Recoveries}
	return k
}

// OtherLabel is the value in metrics for tenants, workspaces and queues beyond the number that is shown individually. It is not a valid
// ID.
const OtherLabel = "(other)"

// MetaKey holds what is fixed for a deployment's life, in the shard that every deployment has.
const MetaKey = "lubdub:{0}:meta"

// RevocationsKey holds the revoked tokens, in the same shard.
const RevocationsKey = "lubdub:{0}:revocations"

// These are the keys of replicas' records, in the same shard as MetaKey.
const (
	FleetKey   = "lubdub:{0}:fleet"
	TellerKey  = "lubdub:{0}:teller"
	replicaKey = "lubdub:{0}:replica:"
	stepKey    = "lubdub:{0}:step:"
)

// ReplicaKey returns the key of a replica's record about itself.
func ReplicaKey(id string) string { return replicaKey + id }

// StepKey returns the key of the counts of a step of time, by its number.
func StepKey(step int64) string { return stepKey + strconv.FormatInt(step, 10) }

// Beats returns the key of the set of last beats for a timeout.
func (k *ShardKeys) Beats(timeoutMs string) string { return k.prefix + "beats:" + timeoutMs }

// SharedBeats returns the same as Beats, as one string shared by all attempts. There are few: timeouts have two significant digits.
func (k *ShardKeys) SharedBeats(timeout time.Duration) string {
	if key, ok := k.beatsOf.Load(timeout); ok {
		return key.(string)
	}
	key, _ := k.beatsOf.LoadOrStore(timeout, k.Beats(strconv.FormatInt(model.Millis(timeout), 10)))
	return key.(string)
}

// Task and the following methods return keys of tasks, by TaskName, and of their data.
func (k *ShardKeys) Task(name string) string { return k.prefix + "task:" + name }

func (k *ShardKeys) Doc(name string) string { return k.prefix + "doc:" + name }

func (k *ShardKeys) History(name string) string { return k.prefix + "history:" + name }

func (k *ShardKeys) Run(scope model.Scope, run string) string {
	return k.prefix + "run:" + scope.String() + "/" + run
}

func (k *ShardKeys) Idempotency(scope model.Scope, key string) string {
	return k.prefix + "idem:" + scope.String() + "/" + key
}

// The key that records that the event of an act was written.
func (k *ShardKeys) EventWritten(act string) string { return k.prefix + "told:" + act }

func (k *ShardKeys) Claim(scope model.Scope, worker, mark string) string {
	return k.prefix + "claim:" + scope.String() + "/" + worker + "/" + mark
}

// Notices returns the key of a worker's notices, and Missed that of what its last inventory missed; both are in the worker's shard.
func (k *ShardKeys) Notices(name string) string { return k.prefix + "notices:" + name }

func (k *ShardKeys) Missed(name string) string { return k.prefix + "missed:" + name }

// OfTask returns the keys of one task in the order in which scripts declare them.
func (k *ShardKeys) OfTask(dst []string, scope model.Scope, id, run, timeoutMs string) []string {
	name := TaskName(scope, id)
	return append(dst, k.Task(name), k.Doc(name), k.History(name), k.Run(scope, run), k.Beats(timeoutMs))
}

// TaskName returns a task's name in sorted sets: <tenant>/<workspace>/<task>. IDs contain no slash.
func TaskName(scope model.Scope, id string) string {
	return scope.Tenant + "/" + scope.Workspace + "/" + id
}

// MemberName returns the name of one attempt: <scope>/<task>#<attempt>.<fence>.
func MemberName(scope model.Scope, id string, attempt int, fence string) string {
	return TaskName(scope, id) + "#" + strconv.Itoa(attempt) + "." + fence
}

// SplitName parses a task's name, or a member; ok is false if it is malformed.
func SplitName(name string) (scope model.Scope, id string, ok bool) {
	if i := strings.IndexByte(name, '#'); i >= 0 {
		name = name[:i]
	}
	var rest string
	if scope.Tenant, rest, ok = strings.Cut(name, "/"); !ok {
		return model.Scope{}, "", false
	}
	scope.Workspace, id, ok = strings.Cut(rest, "/")
	return scope, id, ok
}

// SplitAttempt returns the number and the fence of a member; ok is false if it is malformed.
func SplitAttempt(member string) (number int, fence string, ok bool) {
	_, rest, ok := strings.Cut(member, "#")
	text, fence, cut := strings.Cut(rest, ".")
	number, err := strconv.Atoi(text)
	return number, fence, ok && cut && err == nil
}

// ShardOf distributes names over shards by FNV-1a. It is part of the stored format: changing it loses every task.
func ShardOf(shards int, scope model.Scope, id string) int {
	h := uint64(14695981039346656037)
	for _, s := range [...]string{scope.Tenant, "/", scope.Workspace, "/", id} {
		for i := 0; i < len(s); i++ {
			h = (h ^ uint64(s[i])) * 1099511628211
		}
	}
	h ^= h >> 32 // for short names the low bits of FNV alone are weak
	return int(h % uint64(shards))
}

// RunOf returns the run of a task that was created without one: named after the task, "" when the name would be too long. It is not
// stored: a run set of one task would cost as much memory as the task's beat.
func RunOf(taskID string) string {
	run := "run_" + strings.TrimPrefix(taskID, "task_")
	if len(run) > model.MaxIDBytes {
		return ""
	}
	return run
}

// TasksOf returns the IDs of tasks whose default run has this ID.
func TasksOf(runID string) []string {
	rest, ok := strings.CutPrefix(runID, "run_")
	if !ok || rest == "" {
		return nil
	}
	return []string{"task_" + rest, rest}
}

// Worker and the following methods return keys of workers and machines. They are in the shard of the machine, which the worker's ID
// contains, so that a machine's status can change in the same script as its last worker's.
func (k *ShardKeys) Worker(name string) string { return k.prefix + "worker:" + name }

func (k *ShardKeys) Reserved(name string) string { return k.prefix + "reserved:" + name }

func (k *ShardKeys) Recovery(name string) string { return k.prefix + "recovery:" + name }

func (k *ShardKeys) Machine(name string) string { return k.prefix + "machine:" + name }

func (k *ShardKeys) MachineWorkers(name string) string { return k.prefix + "machineworkers:" + name }

func (k *ShardKeys) MachinePeriods(name string) string { return k.prefix + "machineperiods:" + name }

func (k *ShardKeys) Identity(scope model.Scope, hash string) string {
	return k.prefix + "identity:" + scope.String() + "/" + hash
}

// Hold returns the key that exists while workers of a lineage may not register. It is in the shard of the worker that an operator took
// offline.
func (k *ShardKeys) Hold(scope model.Scope, lineage string) string {
	return k.prefix + "hold:" + scope.String() + "/" + lineage
}

func (k *ShardKeys) Registration(scope model.Scope, key string) string {
	return k.prefix + "registration:" + scope.String() + "/" + key
}

func (k *ShardKeys) Stales(scope model.Scope, of string) string {
	return k.prefix + "stales:" + scope.String() + "/" + of
}

// Lives returns the key of the times in which registrations of a lineage were alive.
func (k *ShardKeys) Lives(scope model.Scope, lineage string) string {
	return k.prefix + "lives:" + scope.String() + "/" + lineage
}

// OfWorker returns the keys of one worker in the order in which scripts declare them.
func (k *ShardKeys) OfWorker(dst []string, r *WorkerRef) []string {
	name, machine := TaskName(r.Scope, r.ID), TaskName(r.Scope, r.Machine)
	return append(dst, k.Worker(name), k.Machine(machine), k.MachineWorkers(machine), k.MachinePeriods(machine),
		k.Stales(r.Scope, r.Lineage), k.Stales(r.Scope, "m:"+r.Machine), k.Recovery(name), k.Identity(r.Scope, r.Identity),
		k.Reserved(name), k.Lives(r.Scope, r.Lineage))
}

// Schedule and the following methods return keys of a schedule, by TaskName with its ID, and of its fires: those that wait for their
// tasks, and the last ones that were handled.
func (k *ShardKeys) Schedule(name string) string { return k.prefix + "schedule:" + name }

func (k *ShardKeys) ScheduleTask(name string) string { return k.prefix + "scheduletask:" + name }

func (k *ShardKeys) Pending(name string) string { return k.prefix + "pending:" + name }

func (k *ShardKeys) Fired(name string) string { return k.prefix + "fired:" + name }

// OfSchedule returns the keys of one schedule in the order in which scripts declare them.
func (k *ShardKeys) OfSchedule(dst []string, name string) []string {
	return append(dst, k.Schedule(name), k.ScheduleTask(name), k.Pending(name), k.Fired(name))
}

// Webhook returns the key of a webhook's record, and OfWebhook the keys of one in the order of lua/lib/webhook.lua.
func (k *ShardKeys) Webhook(name string) string { return k.prefix + "webhook:" + name }

func (k *ShardKeys) HookQueue(name string) string { return k.prefix + "hookqueue:" + name }

func (k *ShardKeys) HookFlight(name string) string { return k.prefix + "hookflight:" + name }

func (k *ShardKeys) HookDead(name string) string { return k.prefix + "hookdead:" + name }

func (k *ShardKeys) OfWebhook(name string) []string {
	return []string{k.Events, k.Webhooks, k.HookDue, k.Webhook(name), k.HookQueue(name), k.HookFlight(name), k.prefix + "hookkept:" + name,
		k.prefix + "hookabout:" + name, k.prefix + "hookbodies:" + name, k.prefix + "hookdelivered:" + name, k.HookDead(name),
		k.prefix + "hookseen:" + name}
}
