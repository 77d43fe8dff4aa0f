package holdings

import (
	"time"

	"github.com/lubdub-io/lubdub/lua"
	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/schema"
	"github.com/lubdub-io/lubdub/tracker/store"
)

// scripts are those of lua/holdings that this room runs. Filled when the service is made, and read only.
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

// readEntries reads what scripts answer that list entries of a set.
func readEntries(r store.Reply) []string { return r.Strings() }

// heldCall lists what a worker holds in a shard, up to a limit, from the entry after `after` on; readEntries reads the reply.
func (s *Service) heldCall(shard int, scope model.Scope, worker, after string, limit int) *store.Call {
	prefix := worker + "/" + scope.String() + "/"
	return store.NewCall(shard, s.scripts.held, []string{s.store.Keys[shard].Held}, prefix, after, limit)
}

// fenceCall bars a worker from claiming in a shard and lists what it holds there, up to a limit; readEntries reads the reply.
func (s *Service) fenceCall(shard int, worker string, limit int, loss bool, ended model.WorkerReason) *store.Call {
	k := s.store.Keys[shard]
	return store.NewCall(shard, s.scripts.fence, []string{k.Fences, k.Held},
		worker, model.Millis(fenceLife), limit, schema.Flag(loss), string(ended))
}

// missedCall remembers what an inventory of a worker missed, entries of held; readEntries reads which of them the previous one
// missed as well.
func (s *Service) missedCall(shard int, scope model.Scope, worker, inventory string, entries []string) *store.Call {
	k, name := s.store.Keys[shard], schema.TaskName(scope, worker)
	args := appendTexts([]any{inventory, model.Millis(missedLife)}, entries)
	return store.NewCall(shard, s.scripts.missed, []string{k.Missed(name), k.Worker(name), k.Reserved(name)}, args...)
}

// ownedCall asks which attempts were dispatched to a worker; readOwned reads what it answers of each.
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

// ownedReply is what owned.lua answers of one attempt.
type ownedReply struct {
	known    bool // it is told whose it is
	own      bool // it is the worker's; else nothing is said of it
	fence    string
	run      string // "": its own
	timeout  time.Duration
	interval time.Duration
	issued   time.Time // when it was dispatched
	deadline int64     // wall ms; 0: none
}

// readOwned reads the answer about the i-th of a call's attempts.
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

// notifyCall keeps notices for one worker, in its own shard. Its reply is not needed.
func (s *Service) notifyCall(home int, notices []notice) *store.Call {
	k, name := s.store.Keys[home], schema.TaskName(notices[0].scope, notices[0].worker)
	args := []any{model.Millis(noticeLife)}
	for _, n := range notices {
		args = append(args, n.entry)
	}
	return store.NewCall(home, s.scripts.notify, []string{k.Notices(name), k.Worker(name)}, args...)
}

// noticesDoneCall forgets entries of an outbox, or of a worker's notices, or puts them off unless putOff is 0. Its reply is not
// needed.
func (s *Service) noticesDoneCall(shard int, key string, putOff time.Duration, entries []string) *store.Call {
	return store.NewCall(shard, s.scripts.noticesDone, []string{key}, appendTexts([]any{orEmpty(putOff)}, entries)...)
}

// recoveryReadCall reads what is left to do of the recoveries of workers of one shard; readRecovery reads what it answers of
// each.
func (s *Service) recoveryReadCall(refs []*schema.WorkerRef) *store.Call {
	k := s.store.Keys[refs[0].Shard]
	var keys []string
	for _, r := range refs {
		name := schema.TaskName(r.Scope, r.ID)
		keys = append(keys, k.Recovery(name), k.Worker(name))
	}
	return store.NewCall(refs[0].Shard, s.scripts.recoveryRead, keys)
}

// recoveryReply is what recovery_read.lua answers of one worker.
type recoveryReply struct {
	shards     []string // that are not done
	reason     model.WorkerReason
	loss       bool          // its tasks count as lost
	lastBeat   time.Time     // zero: not known
	ended      time.Time     // the same
	timeout    time.Duration // 0: not known
	queue      string
	silent     time.Duration // when it ended; notKept: a version before did not keep it
	lag        time.Duration // how long its end had been due
	lastBeatMs int64         // in shard time; notKept: not known
	sparedAtMs int64         // when the mass expiry brake spared it, in shard time; notKept: never
}

// notKept stands for numbers that a record does not have.
const notKept = -1

// recoveryFields is how many values recovery_read.lua answers of each worker.
const recoveryFields = 11

// readRecovery reads the answer about the i-th of a call's workers.
func readRecovery(r store.Reply, i int) recoveryReply {
	of := r[recoveryFields*i:]
	return recoveryReply{
		shards: of.List(0).Strings(), reason: model.WorkerReason(of.Str(1)), loss: of.Str(2) != "",
		lastBeat: schema.ParseMillis(of.Str(3)), ended: schema.ParseMillis(of.Str(4)), timeout: schema.Duration(of.Str(5), 0),
		queue: of.Str(6), silent: schema.Duration(of.Str(7), notKept), lag: schema.Duration(of.Str(8), 0),
		lastBeatMs: msOr(of.Str(9), notKept), sparedAtMs: msOr(of.Str(10), notKept),
	}
}

func msOr(text string, absent int64) int64 {
	if text == "" {
		return absent
	}
	return schema.ParseInt(text)
}

// recoverCall takes attempts of one shard from the worker that holds them; readRecover reads what became of each.
func (s *Service) recoverCall(by string, held []Holding, e lostEvidence) *store.Call {
	shard := held[0].Ref.Shard
	k := s.store.Keys[shard]
	keys := append(make([]string, 0, len(k.Fixed)+5*len(held)), k.Fixed...)
	args := []any{
		by, model.Millis(s.opts.FinishedRetention), schema.Flag(e.loss), schema.MillisOrEmpty(e.lastBeat), orEmpty(e.silent),
		orEmpty(e.timeout), string(e.reason), orEmpty(e.credit), schema.Flag(e.spared), schema.MillisOrEmpty(e.due),
	}
	for _, h := range held {
		keys = k.OfTask(keys, h.Ref.Scope, h.Ref.ID, h.Ref.Run, h.Ref.TimeoutMs)
		args = append(args, h.Ref.Scope.String(), h.Ref.ID, h.text)
	}
	return store.NewCall(shard, s.scripts.recover, keys, args...)
}

// readRecover returns what became of each attempt, a code of the scripts that take what is due.
func readRecover(r store.Reply) []int64 {
	took := make([]int64, len(r))
	for i := range r {
		took[i] = r.Int(i)
	}
	return took
}

// recoveryDoneCall ticks a shard off a worker's recovery; readRecoveryDone reads the reply.
func (s *Service) recoveryDoneCall(r *schema.WorkerRef, shard int, took recovered) *store.Call {
	k, name := s.store.Keys[r.Shard], schema.TaskName(r.Scope, r.ID)
	return store.NewCall(r.Shard, s.scripts.recoveryDone,
		[]string{k.Events, k.Recoveries, k.Recovery(name), k.Worker(name)}, r.Scope.String(), r.ID, shard, took.attempts, took.failed,
		took.exhausted)
}

// recovered is how many attempts were taken from a worker, how many of these failed for good, and how many of those because their
// retries were used up.
type recovered struct{ attempts, failed, exhausted int }

// recoveryDone is what recovery_done.lua answers.
type recoveryDone struct {
	over  bool
	all   recovered     // in all shards, once it is over
	since time.Duration // the worker's end; notKept: not known
}

func readRecoveryDone(r store.Reply) recoveryDone {
	return recoveryDone{
		over: r.Int(0) == 1, all: recovered{attempts: int(r.Int(1)), failed: int(r.Int(2))}, since: schema.Duration(r.Str(3), notKept),
	}
}

// pinnedCall lists what waits in a shard for one worker alone, from the entry after `after` on; readEntries reads the reply.
func (s *Service) pinnedCall(shard int, worker *schema.WorkerRef, queue, after string) *store.Call {
	return store.NewCall(shard, s.scripts.pinned, []string{s.store.Keys[shard].Ready},
		worker.Scope.String()+"/"+queue+"/"+worker.ID, after, schema.TakeLimit)
}

// unpinCall frees placed tasks of a shard that wait for a worker. Its reply is not needed.
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

// orEmpty is a script's argument for a duration: ms, or "" for none.
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
