package queues

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/lubdub-io/lubdub/lua"
	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/schema"
	"github.com/lubdub-io/lubdub/tracker/store"
	"github.com/lubdub-io/lubdub/tracker/tasks"
)

// scripts are the Lua scripts of this package. The positions of their arguments and of the values in their replies are known in
// this file only.
type scripts struct {
	requiredLabels, claim, claimed, groups, pause, queues, ready, notifyWhenFree *lua.Script
}

func newScripts(set *lua.Set) *scripts {
	return &scripts{
		requiredLabels: set.Get("required_labels"), claim: set.Get("claim"), claimed: set.Get("claimed"), groups: set.Get("groups"),
		pause: set.Get("pause"), queues: set.Get("queues"), ready: set.Get("ready"), notifyWhenFree: set.Get("wake_when_free"),
	}
}

// flag encodes a bool for scripts.
func flag(yes bool) string {
	if yes {
		return "1"
	}
	return ""
}

// labelsAtOnce is how many sets of labels one script reads: the largest are near 100 KB.
const labelsAtOnce = 25

// requiredLabelsCall reads the worker labels that tasks of one shard require.
func (s *Service) requiredLabelsCall(entries []*schema.ReadyEntry) *store.Call {
	shard := entries[0].Shard
	keys := make([]string, len(entries))
	for i, e := range entries {
		keys[i] = s.store.Keys[shard].Doc(schema.TaskName(e.Ref.Scope, e.Ref.ID))
	}
	return store.NewCall(shard, s.scripts.requiredLabels, keys)
}

// readRequiredLabels returns them as JSON for each task; "": it requires none, or is gone.
func readRequiredLabels(re store.Reply) []string { return re.Strings() }

// claimedAtOnce is how many tasks one script hands out, since its reply contains them.
const claimedAtOnce = 25

// claimCall hands entries of one shard to a worker. The mark is the hash of the claim's ID; "": it has none.
func (s *Service) claimCall(workerID, mark string, starts bool, entries []*schema.ReadyEntry) *store.Call {
	shard := entries[0].Shard
	k := s.store.Keys[shard]
	keys := append(append(make([]string, 0, len(k.Fixed)+2+5*len(entries)), k.Fixed...), k.Pauses, k.Fences)
	args := []any{int64(model.DefaultTokenTTL / time.Second), int64(model.MaxTokenTTL / time.Second),
		model.Millis(model.DefaultClaimStartTimeout), workerID, mark, schema.Flag(starts)}
	for _, e := range entries {
		keys = k.OfTask(keys, e.Ref.Scope, e.Ref.ID, e.Ref.Run, e.Ref.TimeoutMs)
		args = append(args, e.Ref.Scope.String(), e.Ref.ID, e.Text, model.NewFence())
	}
	return store.NewCall(shard, s.scripts.claim, keys, args...)
}

// claimReply is the reply of claim.lua.
type claimReply struct {
	fenced bool          // the worker has ended
	tasks  []*tasks.View // for each entry; nil: it was not taken
}

func readClaim(re store.Reply, entries []*schema.ReadyEntry) claimReply {
	reply := claimReply{fenced: re.Int(1) == 1, tasks: make([]*tasks.View, len(entries))}
	for i, e := range entries {
		at := 2 + 3*i
		reply.tasks[i] = tasks.NewView(e.Ref, &tasks.ViewReply{
			Now: re.Time(0), Record: store.Pairs(re.List(at)), Document: store.Pairs(re.List(at + 1)), History: re.List(at + 2).Strings(),
		})
	}
	return reply
}

// claimStep is a step of a request on the record of its claim.
type claimStep string

const (
	stepMake  claimStep = "make" // it begins, and may take tasks
	stepTake  claimStep = "take" // it has waited, and may take again
	stepWait  claimStep = "wait" // it may not take for now
	stepDone  claimStep = "done" // it has taken tasks
	stepWatch claimStep = "ask"  // it wants to be woken
	stepCheck claimStep = "look"
)

// claimLife is how long a claim ID identifies the tasks that were claimed with it.
const claimLife = time.Hour

// claimedArgs are the arguments of claimed.lua about a request.
type claimedArgs struct {
	request string
	step    claimStep
	turn    time.Duration // for how long it may take
}

func (s *Service) claimedCall(scope model.Scope, workerID, mark string, a claimedArgs) *store.Call {
	shard := s.store.ShardOf(scope, workerID)
	return store.NewCall(shard, s.scripts.claimed, []string{s.store.Keys[shard].Claim(scope, workerID, mark)},
		a.request, model.Millis(claimLife), string(a.step), model.Millis(a.turn))
}

// claimState is the state of a claim for one request; lua/queues/claimed.lua has the same numbers.
type claimState int64

const (
	claimMine     claimState = iota // this request makes it
	claimBusy                       // another one takes tasks, or died while it did
	claimAnswered                   // it has got its tasks
	claimOver                       // no request takes, and this one may not
)

// claimedReply is the reply of claimed.lua.
type claimedReply struct {
	state claimState
	known bool          // there was a request before
	left  time.Duration // for which another one may take
}

func readClaimed(re store.Reply) claimedReply {
	return claimedReply{state: claimState(re.Int(0)), known: re.Int(1) == 1, left: time.Duration(re.Int(2)) * time.Millisecond}
}

// pauseArgs are the arguments of pause.lua about a queue in one shard.
type pauseArgs struct {
	pause      bool // else it is resumed
	wake       bool // wakes the claims that wait for its tasks
	checkLimit bool // checks the limit of paused queues of the workspace; else another shard has done that
	reason     string
}

func (s *Service) pauseCall(shard int, scope model.Scope, queue string, a pauseArgs) *store.Call {
	var limit any = ""
	if a.checkLimit {
		limit = MaxPausedQueues
	}
	reason := ""
	if a.reason != "" {
		text, _ := json.Marshal(a.reason) // cannot fail for a string
		reason = string(text)
	}
	k := s.store.Keys[shard]
	writesEvent := shard == s.store.ShardOf(scope, queue) // the shard in which the events of the queue are looked up
	return store.NewCall(shard, s.scripts.pause, []string{k.Pauses, k.Events},
		scope.String()+"/"+queue, flag(a.pause), flag(a.wake), limit, flag(writesEvent), reason)
}

// readPause reports whether the pause was refused because it would exceed the limit.
func readPause(re store.Reply) (tooMany bool) { return re.Int(0) == schema.CodeRefused }

// classPage is how many classes of waiting tasks one script counts.
const classPage = 150

// queuesCall counts the waiting tasks below <scope>/ or <scope>/<queue>/ in one shard, after a class.
func (s *Service) queuesCall(shard int, prefix, after string, pausedLimit int) *store.Call {
	k := s.store.Keys[shard]
	return store.NewCall(shard, s.scripts.queues, []string{k.Ready, k.Pauses}, prefix, after, classPage, pausedLimit)
}

// queuesReply is the reply of queues.lua.
type queuesReply struct {
	now    time.Time // by Redis's clock
	paused []string  // <scope>/<queue>
	heads  []string  // the oldest entry of each class
	counts []int     // its tasks
}

func readQueues(re store.Reply) queuesReply {
	reply := queuesReply{now: re.Time(0), paused: re.List(1).Strings(), heads: re.List(2).Strings()}
	for i := range reply.heads {
		reply.counts = append(reply.counts, int(re.List(3).Int(i)))
	}
	return reply
}

// groupPage is how many groups of names one script counts.
const groupPage = 100

// groupsCall counts the groups of one shard after one of them, or all for "".
func (s *Service) groupsCall(shard int, g *grouping, after string) *store.Call {
	return store.NewCall(shard, s.scripts.groups, []string{g.key(s.store.Keys[shard])}, g.prefix, g.parts, after, groupPage)
}

func readGroups(re store.Reply) []group {
	groups := make([]group, len(re.List(0)))
	for i, head := range re.List(0).Strings() {
		groups[i] = group{strings.Split(head, "/"), int(re.List(1).Int(i))}
	}
	return groups
}

// groupAfter is a group of classes to list, and the class after which to begin; "": at its first.
type groupAfter struct{ group, after string }

// readyCall lists up to `limit` entries of each class of the groups that wait in a queue, <scope>/<queue>, of one shard.
func (s *Service) readyCall(shard int, queue string, limit int, groups []groupAfter) *store.Call {
	k := s.store.Keys[shard]
	args := []any{queue, limit, classLimit}
	for _, g := range groups {
		args = append(args, g.group, g.after)
	}
	return store.NewCall(shard, s.scripts.ready, []string{k.Ready, k.Pauses}, args...)
}

// readyReply is the reply of ready.lua.
type readyReply struct {
	waiting int64 // tasks in the queue
	entries []*schema.ReadyEntry
	rest    []groupAfter // groups of which there is more
}

func readReady(re store.Reply, shard int, groups []groupAfter) readyReply {
	reply := readyReply{waiting: re.Int(1)}
	for _, text := range re.List(2).Strings() {
		if e, ok := schema.ParseReady(text, shard); ok {
			reply.entries = append(reply.entries, e)
		}
	}
	for i, after := range re.List(3).Strings() {
		switch after {
		case "": // there is no more
		case "/": // the script stopped before it
			reply.rest = append(reply.rest, groupAfter{groups[i].group, ""})
		default:
			reply.rest = append(reply.rest, groupAfter{groups[i].group, after})
		}
	}
	return reply
}

// notifyWhenFreeCall makes a shard notify a worker's claims when an attempt that it holds there ends.
func (s *Service) notifyWhenFreeCall(shard int, workerID string) *store.Call {
	k := s.store.Keys[shard]
	return store.NewCall(shard, s.scripts.notifyWhenFree, []string{k.Held, k.Fences}, workerID)
}
