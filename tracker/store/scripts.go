package store

import (
	"time"

	"github.com/lubdub-io/lubdub/lua"
	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/schema"
)

// scripts are the scripts of lua/store. They do not change after the store is opened.
type scripts struct {
	keyspace                      *Keyspace
	find, indexed, relist, schema *lua.Script
}

func newScripts(set *lua.Set, k *Keyspace) *scripts {
	return &scripts{keyspace: k, find: set.Get("find"), indexed: set.Get("indexed"), relist: set.Get("relist"), schema: set.Get("schema")}
}

// Overdue selects the members of a sorted set whose score plus the timeout is past by at least the grace, oldest first.
type Overdue struct {
	Set     string        // its key
	Wall    bool          // scores are wall time; else shard time
	Timeout time.Duration // to add to each score
	Grace   time.Duration
	Limit   int // most members to return
	Skip    int // how many of the oldest to leave out
}

// FindCall lists overdue members of a sorted set of a shard; ReadFound reads the reply. The script that acts on them must check them
// again.
func (s *scripts) FindCall(shard int, o Overdue) *Call {
	clock := "L"
	if o.Wall {
		clock = "wall"
	}
	return NewCall(shard, s.find, []string{s.keyspace.Keys[shard].Clock, o.Set},
		clock, model.Millis(o.Timeout), model.Millis(o.Grace), o.Limit, o.Skip)
}

// ReadFound returns the members in the reply to FindCall.
func ReadFound(r Reply) []string { return r.List(2).Strings() }

// schemaCall records that the store was upgraded from one version of the stored format to another; readSchemaCall reads the reply.
// `least` is the oldest version that programs must know from now on.
func (s *scripts) schemaCall(from, to, least int) *Call {
	return NewCall(0, s.schema, []string{schema.MetaKey}, from, to, least)
}

// readSchemaCall returns the current version of the store; false: the store was lost meanwhile.
func readSchemaCall(r Reply) (version int, there bool) { return int(r.Int(0)), r.Int(0) >= 0 }

// indexedAtOnce is how many tasks or workers one script returns or lists.
const indexedAtOnce = 100

// indexedCall returns the tasks or workers of a shard's index in these states, one letter each; readIndexed reads the reply.
func (s *scripts) indexedCall(shard int, index, states, from string) *Call {
	return NewCall(shard, s.indexed, []string{index}, from, states, indexedAtOnce)
}

// readIndexed returns where to continue, "" at the end, and entries of the index.
func readIndexed(r Reply) (from string, entries []string) { return r.Str(0), r.List(1).Strings() }

// listed is a task or a worker in an index.
type listed struct {
	worker bool
	scope  model.Scope
	id     string
}

// relistCall adds tasks or workers of a shard to their queues' lists.
func (s *scripts) relistCall(shard int, these []listed) *Call {
	k := s.keyspace.Keys[shard]
	keys, args := []string{k.Index, k.Workers}, []any{}
	for _, l := range these {
		kind, key := "t", k.Task(schema.TaskName(l.scope, l.id))
		if l.worker {
			kind, key = "w", k.Worker(schema.TaskName(l.scope, l.id))
		}
		keys, args = append(keys, key), append(args, kind, l.scope.String(), l.id)
	}
	return NewCall(shard, s.relist, keys, args...)
}
