package holdings

import (
	"time"

	"github.com/lubdub-io/lubdub/lua"
	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/schema"
	"github.com/lubdub-io/lubdub/tracker/store"
)

// scripts are the scripts of lua/holdings. They do not change after New.
type scripts struct {
	fence, held, missed, noticesDone, notify, owned, pinned, recover, recoveryDone, recoveryRead, unpin *lua.Script
}

func newScripts(set *lua.Set) scripts {
	return scripts{
		fence: set.Get("fence"), held: set.Get("held"), missed: set.Get("missed"), noticesDone: set.Get("notices_done"),
		notify: set.Get("notify"), owned: set.Get("owned"), pinned: set.Get("pinned"), recover: set.Get("recover"),
		recoveryDone: set.Get("recovery_done"), recoveryRead: set.Get("recovery_read"), unpin: set.Get("unpin"),
	}
}

// readEntries reads the reply of scripts that list entries of a set.
func readEntries(r store.Reply) []string { return r.Strings() }

// heldCall lists what a worker holds in a shard, up to a limit, starting behind `after`; readEntries reads the reply.
func (s *Service) heldCall(shard int, scope model.Scope, worker, after string, limit int) *store.Call {
	prefix := worker + "/" + scope.String() + "/"
	return store.NewCall(shard, s.scripts.held, []string{s.store.Keys[shard].Held}, prefix, after, limit)
}

// fenceCall prevents a worker from claiming in a shard and lists what it holds there, up to a limit; readEntries reads the reply.
func (s *Service) fenceCall(shard int, worker string, limit int, loss bool, ended model.WorkerReason) *store.Call {
	k := s.store.Keys[shard]
	return store.NewCall(shard, s.scripts.fence, []string{k.Fences, k.Held},
		worker, model.Millis(fenceLife), limit, schema.Flag(loss), string(ended))
}

// missedCall stores the held entries that an inventory of a worker missed; readEntries reads which of them the previous inventory missed
// too.
func (s *Service) missedCall(shard int, scope model.Scope, worker, inventory string, entries []string) *store.Call {
	k, name := s.store.Keys[shard], schema.TaskName(scope, worker)
	args := appendTexts([]any{inventory, model.Millis(missedLife)}, entries)
	return store.NewCall(shard, s.scripts.missed, []string{k.Missed(name), k.Worker(name), k.Reserved(name)}, args...)
}

// ownedCall looks up which attempts were dispatched to a worker; readOwned reads the reply for each.
func (s *Service) ownedCall(shard int, scope model.Scope, worker string, names []OwnedAttempt) *store.Call {
	k := s.store.Keys[shard]
	keys := make([]string, 0, 2*len(names))
	args := []any{worker}
	for _, n := range names {
		name := schema.TaskName(scope, n.TaskID)
		keys = append(keys, k.Task(name), k.History(name))
		args = append(args, n.Number)
	}
	return store.NewCall(shard, s.scripts.owned, keys, args...)
}

// ownedReply is the reply of owned.lua for one attempt.
type ownedReply struct {
	known    bool // the owner is known
	own      bool // the worker owns it; else the next fields are empty
	fence    string
	run      string // "": that of the task
	timeout  time.Duration
	interval time.Duration
	issued   time.Time // when it was dispatched
	deadline int64     // wall ms; 0: none
}

// readOwned reads the reply for the i-th attempt of a call.
func readOwned(r store.Reply, i int) ownedReply {
	of := r.List(i)
	if len(of) == 1 {
		return ownedReply{known: of.Int(0) == 0}
	}
	return ownedReply{
		known: true, own: len(of) > 1, fence: of.Str(0), run: of.Str(1), timeout: schema.Duration(of.Str(2), 0),
		interval: schema.Duration(of.Str(3), model.DefaultHeartbeatInterval), issued: schema.ParseMillis(of.Str(4)),
		deadline: of.Int(5),
	}
}

// notifyCall stores notices for one worker, in its shard. Its reply is not needed.
func (s *Service) notifyCall(home int, notices []notice) *store.Call {
	k, name := s.store.Keys[home], schema.TaskName(notices[0].scope, notices[0].worker)
	args := []any{model.Millis(noticeLife)}
	for _, n := range notices {
		args = append(args, n.entry)
	}
	return store.NewCall(home, s.scripts.notify, []string{k.Notices(name), k.Worker(name)}, args...)
}

// noticesDoneCall removes entries of an outbox, or of a worker's notices, or postpones them unless putOff is 0. Its reply is not needed.
func (s *Service) noticesDoneCall(shard int, key string, putOff time.Duration, entries []string) *store.Call {
	return store.NewCall(shard, s.scripts.noticesDone, []string{key}, appendTexts([]any{orEmpty(putOff)}, entries)...)
}

// recoveryReadCall reads what is left of the recoveries of workers of one shard; readRecovery reads the reply for each.
func (s *Service) recoveryReadCall(refs []*schema.WorkerRef) *store.Call {
	k := s.store.Keys[refs[0].Shard]
	var keys []string
	for _, r := range refs {
		name := schema.TaskName(r.Scope, r.ID)
		keys = append(keys, k.Recovery(name), k.Worker(name))
	}
	return store.NewCall(refs[0].Shard, s.scripts.recoveryRead, keys)
}

// recoveryReply is the reply of recovery_read.lua for one worker.
type recoveryReply struct {
	shards     []string // those that are left
	reason     model.WorkerReason
	loss       bool          // its tasks count as lost
	lastBeat   time.Time     // zero: unknown
	ended      time.Time     // zero: unknown
	timeout    time.Duration // 0: unknown
	queue      string
	silent     time.Duration // at its end; notStored: an earlier version did not store it
	lag        time.Duration // how long its end was overdue
	lastBeatMs int64         // in shard time; notStored: unknown
	heldAtMs   int64         // when the mass-expiry brake held it, in shard time; notStored: never
}

// notStored is the value of numbers that are missing from a record.
const notStored = -1

// recoveryFields is how many values recovery_read.lua returns for each worker.
const recoveryFields = 11

// readRecovery reads the reply for the i-th worker of a call.
func readRecovery(r store.Reply, i int) recoveryReply {
	of := r[recoveryFields*i:]
	return recoveryReply{
		shards: of.List(0).Strings(), reason: model.WorkerReason(of.Str(1)), loss: of.Str(2) != "",
		lastBeat: schema.ParseMillis(of.Str(3)), ended: schema.ParseMillis(of.Str(4)), timeout: schema.Duration(of.Str(5), 0),
		queue: of.Str(6), silent: schema.Duration(of.Str(7), notStored), lag: schema.Duration(of.Str(8), 0),
		lastBeatMs: msOr(of.Str(9), notStored), heldAtMs: msOr(of.Str(10), notStored),
	}
}

func msOr(text string, absent int64) int64 {
	if text == "" {
		return absent
	}
	return schema.ParseInt(text)
}

// recoverCall takes attempts of one shard from the worker that holds them; readRecover reads the result of each.
func (s *Service) recoverCall(by string, held []Holding, e lostEvidence) *store.Call {
	shard := held[0].Ref.Shard
	k := s.store.Keys[shard]
	keys := append(make([]string, 0, len(k.Fixed)+5*len(held)), k.Fixed...)
	args := []any{
		by, model.Millis(s.opts.FinishedRetention), schema.Flag(e.loss), schema.MillisOrEmpty(e.lastBeat), orEmpty(e.silent),
		orEmpty(e.timeout), string(e.reason), orEmpty(e.credit), schema.Flag(e.braked), schema.MillisOrEmpty(e.due),
	}
	for _, h := range held {
		keys = k.OfTask(keys, h.Ref.Scope, h.Ref.ID, h.Ref.Run, h.Ref.TimeoutMs)
		args = append(args, h.Ref.Scope.String(), h.Ref.ID, h.text)
	}
	return store.NewCall(shard, s.scripts.recover, keys, args...)
}

// readRecover returns the result of each attempt, one of the schema.Took codes.
func readRecover(r store.Reply) []int64 {
	took := make([]int64, len(r))
	for i := range r {
		took[i] = r.Int(i)
	}
	return took
}

// recoveryDoneCall removes a shard from a worker's recovery; readRecoveryDone reads the reply.
func (s *Service) recoveryDoneCall(r *schema.WorkerRef, shard int, took recovered) *store.Call {
	k, name := s.store.Keys[r.Shard], schema.TaskName(r.Scope, r.ID)
	return store.NewCall(r.Shard, s.scripts.recoveryDone,
		[]string{k.Events, k.Recoveries, k.Recovery(name), k.Worker(name)}, r.Scope.String(), r.ID, shard, took.attempts, took.failed,
		took.exhausted)
}

// recovered is how many attempts were taken from a worker, how many of these failed for good, and how many of those because their retries
// were exhausted.
type recovered struct{ attempts, failed, exhausted int }

// recoveryDone is the reply of recovery_done.lua.
type recoveryDone struct {
	over  bool
	all   recovered     // in all shards, once all are done
	since time.Duration // time since the worker's end; notStored: unknown
}

func readRecoveryDone(r store.Reply) recoveryDone {
	return recoveryDone{
		over: r.Int(0) == 1, all: recovered{attempts: int(r.Int(1)), failed: int(r.Int(2))}, since: schema.Duration(r.Str(3), notStored),
	}
}

// pinnedCall lists tasks in a shard that wait for one worker only, starting behind `after`; readEntries reads the reply.
func (s *Service) pinnedCall(shard int, worker *schema.WorkerRef, queue, after string) *store.Call {
	return store.NewCall(shard, s.scripts.pinned, []string{s.store.Keys[shard].Ready},
		worker.Scope.String()+"/"+queue+"/"+worker.ID, after, schema.TakeLimit)
}

// unpinCall releases placed tasks of a shard that wait for a worker. Its reply is not needed.
func (s *Service) unpinCall(shard int, worker string, waiting []*schema.ReadyEntry) *store.Call {
	k := s.store.Keys[shard]
	keys := append(make([]string, 0, len(k.Fixed)+5*len(waiting)), k.Fixed...)
	var args []any
	for _, e := range waiting {
		keys = k.OfTask(keys, e.Ref.Scope, e.Ref.ID, e.Ref.Run, e.Ref.TimeoutMs)
		args = append(args, e.Ref.Scope.String(), e.Ref.ID, worker)
	}
	return store.NewCall(shard, s.scripts.unpin, keys, args...)
}

// orEmpty returns a script's argument for a duration: ms, or "" for 0.
func orEmpty(d time.Duration) any {
	if d == 0 {
		return ""
	}
	return model.Millis(d)
}

func appendTexts(args []any, texts []string) []any {
	for _, t := range texts {
		args = append(args, t)
	}
	return args
}
