package beats

import (
	"strconv"
	"time"

	"github.com/lubdub-io/lubdub/lua"
	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/schema"
	"github.com/lubdub-io/lubdub/tracker/store"
)

// scripts are the scripts of lua/beats. They do not change after New. Only batch.go knows the arguments and reply of beat.lua, to avoid
// allocations.
type scripts struct{ beat, complete, deliver, slowclock, start, tick *lua.Script }

func newScripts(set *lua.Set) scripts {
	return scripts{
		beat: set.Get("beat"), complete: set.Get("complete"), deliver: set.Get("deliver"),
		slowclock: set.Get("slowclock"), start: set.Get("start"), tick: set.Get("tick"),
	}
}

// callbackKeys returns the keys of start.lua and complete.lua. They need no look-up: the token has every name that they are made of.
func (s *Service) callbackKeys(a *model.Attempt) []string {
	k := s.store.Keys[a.Shard]
	keys := make([]string, 0, len(k.Fixed)+6)
	keys = append(keys, k.Fixed...)
	return append(k.OfTask(keys, a.Scope, a.TaskID, a.RunID, strconv.FormatInt(model.Millis(a.Timeout), 10)), k.Fences)
}

// callbackArgs returns the first arguments of start.lua and complete.lua: the attempt as in its token, and the worker that reports now.
func callbackArgs(a *model.Attempt, worker string) []any {
	run := a.RunID
	if run == schema.RunOf(a.TaskID) {
		run = ""
	}
	return []any{
		a.Scope.String(), a.TaskID, a.Number, a.Fence, model.Millis(a.Timeout), model.Millis(a.Interval),
		a.IssuedAt.UnixMilli(), run, a.WorkerID, a.Deadline, worker,
	}
}

// startCall reports that an attempt has started or is alive; `report` is packed, "": none. readStart reads the reply.
func (s *Service) startCall(a *model.Attempt, worker, report, details string) *store.Call {
	args := append(callbackArgs(a, worker), report, model.Millis(s.opts.FinishedRetention), s.store.SweeperID(), details)
	return store.NewCall(a.Shard, s.scripts.start, s.callbackKeys(a), args...)
}

// startReply is the reply of start.lua.
type startReply struct {
	code   int64
	at     time.Time
	detail string        // depends on code: current attempt, reason or state
	cancel *model.Cancel // nil: none pending
}

func readStart(r store.Reply) startReply {
	return startReply{code: r.Int(0), at: r.Time(1), detail: r.Str(2), cancel: parseCancel(r.Str(3))}
}

// completeCall ends an attempt with the outcome that its worker reports; readComplete reads the reply.
func (s *Service) completeCall(a *model.Attempt, c model.Completion) *store.Call {
	again := ""
	if c.Retryable || c.Outcome == model.Snoozed {
		again = "policy"
		if c.RetryAfter != nil {
			again = strconv.FormatInt(model.Millis(*c.RetryAfter), 10)
		}
	}
	args := append(callbackArgs(a, c.WorkerID), string(c.Outcome), again, model.Millis(s.opts.FinishedRetention),
		schema.HistoryError(c.Error), string(c.Error), schema.MillisOrEmpty(c.CompletedAt), schema.HistoryMetrics(c.Metrics),
		schema.ErrorGroup(c.Error))
	args = appendDoc(args, schema.DocOutput, string(c.Output))
	args = appendDoc(args, schema.DocMetrics, string(c.Metrics))
	args = appendDoc(args, schema.DocPhase, c.CancelledDuringPhase)
	args = appendDoc(args, schema.DocPartial, string(c.PartialProgress))
	return store.NewCall(a.Shard, s.scripts.complete, s.callbackKeys(a), args...)
}

// appendDoc adds a field of the task's document to a script's arguments unless it is empty.
func appendDoc(args []any, field, value string) []any {
	if value == "" {
		return args
	}
	return append(args, field, value)
}

// completeReply is the reply of complete.lua.
type completeReply struct {
	code      int64
	at        time.Time
	detail    string // depends on code: current attempt, reason or state
	willRetry bool
}

func readComplete(r store.Reply) completeReply {
	return completeReply{code: r.Int(0), at: r.Time(1), detail: r.Str(2), willRetry: r.Int(3) == 1}
}

// deliverCall records that a response has delivered a cancel to the worker of an attempt. Its reply is not needed.
func (s *Service) deliverCall(a *model.Attempt) *store.Call {
	k := s.store.Keys[a.Shard]
	return store.NewCall(a.Shard, s.scripts.deliver, []string{k.Clock, k.Cancels, k.Timers}, a.Member)
}

// slowclockCall pauses a shard's time, then lets it run at half speed. Its reply is not needed.
func (s *Service) slowclockCall(shard int, pause, half time.Duration) *store.Call {
	k := s.store.Keys[shard]
	return store.NewCall(shard, s.scripts.slowclock, []string{k.Clock, k.Outages}, model.Millis(pause), model.Millis(half), "")
}

// AllButFewBeatCall ends a slowdown of a shard's time for balancers, and briefly keeps empty beats from starting another one.
func (s *Service) AllButFewBeatCall(shard int) *store.Call {
	k := s.store.Keys[shard]
	return store.NewCall(shard, s.scripts.slowclock, []string{k.Clock, k.Outages}, 0, 0, 1)
}

// tickCall is one call with empty beats of several shards, as many as a call may cover; readTick reads the reply for each.
func (s *Service) tickCall(beats []*Beat) *store.Call {
	var keys []string
	meta := false
	for _, beat := range beats {
		meta = meta || beat.tick.shard == 0
		k := s.store.Keys[beat.tick.shard]
		keys = append(keys, k.Clock, k.Outages, k.Progress, k.Cancels, k.Replicas, k.Timeouts, k.Timers, k.Due, k.Index,
			k.Events, k.Sweepers, k.Ready, k.Held, k.Outbox, k.Fences, k.Pauses,
			k.Workers, k.WorkerBeats, k.WorkerDue, k.Recoveries, k.Braked, k.Schedules, k.ScheduleDue, k.EventMarks,
			k.Webhooks, k.HookDue)
	}
	if meta {
		keys = append(keys, schema.MetaKey)
	}
	args := []any{
		s.opts.ReplicaID, s.keeper.window.Load(), s.store.Shards(), model.Millis(s.keeper.cutOff.period),
		model.Millis(s.opts.WorkerTimeout),
	}
	for _, beat := range beats {
		args = append(args, model.Millis(s.keeper.cutOff.left(beat.tick.shard)))
	}
	return store.NewCall(beats[0].tick.shard, s.scripts.tick, keys, args...)
}

// tickReply is the reply of tick.lua for one shard.
type tickReply struct {
	shardTime int64 // ms
	gap       int64 // ms since the clock was last written; noClock: it was missing
	replicas  []string
}

// readTick returns the reply for the i-th shard of a call.
func readTick(r store.Reply, i int) tickReply {
	of := r.List(1 + i)
	return tickReply{shardTime: of.Int(0), gap: of.Int(1), replicas: of.List(2).Strings()}
}

// tickedAt returns Redis's clock from a reply to empty beats.
func tickedAt(r store.Reply) time.Time { return r.Time(0) }
