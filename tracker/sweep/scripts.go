package sweep

import (
	"time"

	"github.com/lubdub-io/lubdub/lua"
	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/schema"
	"github.com/lubdub-io/lubdub/tracker/store"
)

// scripts are the Lua scripts of this package. For each there is a function that builds its call and one that reads its reply; the
// positions of arguments and values are known nowhere else.
type scripts struct {
	keys []*schema.ShardKeys // by shard

	peek, peekBeats, forgetTimeouts, expire, timers, due, swept            *lua.Script // scripts.go
	workerPeek, workerExpire, workerDue, workerDrains, workerProbed, repin *lua.Script // scripts_workers.go
}

func newScripts(set *lua.Set, keys []*schema.ShardKeys) scripts {
	return scripts{
		keys: keys,
		peek: set.Get("peek"), peekBeats: set.Get("peek_beats"), forgetTimeouts: set.Get("forget_timeouts"),
		expire: set.Get("expire"), timers: set.Get("timers"), due: set.Get("due"),
		workerPeek: set.Get("worker_peek"), workerExpire: set.Get("worker_expire"), workerDue: set.Get("worker_due"),
		workerDrains: set.Get("worker_drains"), workerProbed: set.Get("worker_probed"),
		repin: set.Get("repin"), swept: set.Get("swept"),
	}
}

// sentinel is the entry that keeps a set from being absent.
const sentinel = "!"

// sweptCall records a sweep on request; data is the JSON of its event.
func (s *scripts) sweptCall(act, data string) *store.Call {
	const shard = 0 // every deployment has it
	k := s.keys[shard]
	return store.NewCall(shard, s.swept, []string{k.Events, k.EventWritten(act)}, data)
}

func (s *scripts) peekCall(shards []int, by sweeperID, lease time.Duration) *store.Call {
	var keys []string
	for _, shard := range shards {
		k := s.keys[shard]
		keys = append(keys, k.Clock, k.Timers, k.Due, k.Timeouts, k.Sweepers, k.Outbox, k.Replicas)
	}
	return store.NewCall(shards[0], s.peek, keys, string(by), model.Millis(lease))
}

// shardDues is when the first entry of each set of a shard is due.
type shardDues struct {
	now      int64 // wall ms
	time     int64 // shard time, ms
	timer    int64 // in shard time, ms
	due      int64 // wall ms
	notice   int64 // wall ms
	sweepers []string
	timeouts []string // in use, ms, with the sentinel
	changed  int64    // shard time of the latest change of the primary, ms; 0: none
	changing bool     // it is in progress
	held     bool     // replicas may be cut off from their clients, so shard time may be slowed
}

// readPeek reads the reply about that many shards.
func readPeek(re store.Reply, shards int) []shardDues {
	all := make([]shardDues, shards)
	for i := range all {
		r := re.List(1 + i)
		all[i] = shardDues{
			now: re.Int(0), time: r.Int(0), timer: r.Int(1), due: r.Int(2), notice: r.Int(3),
			sweepers: r.List(4).Strings(), timeouts: r.List(5).Strings(),
			changed: r.Int(6), changing: r.Int(7) == 1, held: r.Int(8) == 1,
		}
	}
	return all
}

// peekBeatsCall reads the first beats of sets whose shards one call may cover.
func (s *scripts) peekBeatsCall(sets []beatsOf) *store.Call {
	keys := make([]string, len(sets))
	for i, of := range sets {
		keys[i] = s.keys[of.shard].Beats(of.timeout)
	}
	return store.NewCall(sets[0].shard, s.peekBeats, keys)
}

// readPeekBeats returns the first beat of each set in shard time, ms; "": the set has none.
func readPeekBeats(r store.Reply) []string { return r.Strings() }

func (s *scripts) forgetTimeoutsCall(shard int, timeouts []string) *store.Call {
	k := s.keys[shard]
	keys, args := []string{k.Timeouts}, []any{}
	for _, timeout := range timeouts {
		keys, args = append(keys, k.Beats(timeout)), append(args, timeout)
	}
	return store.NewCall(shard, s.forgetTimeouts, keys, args...)
}

// taken is a script's result for one due entry: a Took… code of package schema with a lag, or with a run that the script needs.
type taken struct {
	what int64
	lag  time.Duration
	run  string
}

// readTaken reads the reply of any script that takes due entries.
func readTaken(r store.Reply) []taken {
	all := make([]taken, len(r)/2)
	for i := range all {
		all[i].what = r.Int(2 * i)
		if all[i].what == schema.TookNeedsRun {
			all[i].run = r.Str(2*i + 1)
		} else {
			all[i].lag = time.Duration(r.Int(2*i+1)) * time.Millisecond
		}
	}
	return all
}

// expireCall ends members of one beats set; runs: the runs of their tasks are passed to the script.
func (s *scripts) expireCall(shard int, by sweeperID, retention time.Duration, timeout string, runs bool, items []found) *store.Call {
	k := s.keys[shard]
	keys := append(make([]string, 0, len(k.Fixed)+1+3*len(items)), k.Fixed...)
	keys = append(keys, k.Beats(timeout))
	words := 1
	if runs {
		words = 2
	}
	args := []any{string(by), model.Millis(retention), timeout, words}
	for _, item := range items {
		name := schema.TaskName(item.ref.Scope, item.ref.ID)
		keys = append(keys, k.Task(name), k.History(name))
		args = append(args, item.member)
		if runs {
			keys = append(keys, k.Run(item.ref.Scope, item.ref.Run))
			args = append(args, item.ref.Run)
		}
	}
	return store.NewCall(shard, s.expire, keys, args...)
}

func (s *scripts) timersCall(shard int, by sweeperID, retention, cancelGrace time.Duration, items []found) *store.Call {
	keys, args := s.ofTasks(shard, items)
	return store.NewCall(shard, s.timers, keys, append([]any{string(by), model.Millis(retention), model.Millis(cancelGrace)}, args...)...)
}

func (s *scripts) dueCall(shard int, by sweeperID, retention time.Duration, items []found) *store.Call {
	keys, args := s.ofTasks(shard, items)
	return store.NewCall(shard, s.due, keys, append([]any{string(by), model.Millis(retention)}, args...)...)
}

// ofTasks returns the keys of a shard and of tasks, and the scope, id and entry of each task.
func (s *scripts) ofTasks(shard int, items []found) (keys []string, args []any) {
	k := s.keys[shard]
	keys = append(make([]string, 0, len(k.Fixed)+5*len(items)), k.Fixed...)
	for _, item := range items {
		keys = k.OfTask(keys, item.ref.Scope, item.ref.ID, item.ref.Run, item.ref.TimeoutMs)
		args = append(args, item.ref.Scope.String(), item.ref.ID, item.member)
	}
	return keys, args
}
