package store

import (
	"time"

	"github.com/lubdub-io/lubdub/lua"
	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/schema"
)

// scripts are those of lua/store. Filled when the store is opened, and read only.
type scripts struct {
	keyspace                      *Keyspace
	find, indexed, relist, schema *lua.Script
}

func newScripts(set *lua.Set, k *Keyspace) *scripts {
	return &scripts{keyspace: k, find: set.Get("find"), indexed: set.Get("indexed"), relist: set.Get("relist"), schema: set.Get("schema")}
}

// Overdue says what a sorted set is asked for: members whose scores, and the timeout, are over by the grace at least, oldest
// first.
type Overdue struct {
	Set     string        // its key
	Wall    bool          // its scores are wall time; else shard time
	Timeout time.Duration // to add to each score
	Grace   time.Duration
	Limit   int // of members
	Skip    int // how many to leave out, of those that are overdue longest
}

// FindCall lists what is overdue in a sorted set of a shard; ReadFound reads the reply. What it lists must be taken by a
// script that checks again.
func (s *scripts) FindCall(shard int, o Overdue) *Call {
	clock := "L"
	if o.Wall {
		clock = "wall"
	}
	return NewCall(shard, s.find, []string{s.keyspace.Keys[shard].Clock, o.Set},
		clock, model.Millis(o.Timeout), model.Millis(o.Grace), o.Limit, o.Skip)
}

// ReadFound returns the members that FindCall has listed.
func ReadFound(r Reply) []string { return r.List(2).Strings() }

// schemaCall writes down that the store went from one version of the stored format to another; readSchemaCall reads the reply.
// least is the oldest version that a program must know to run on the store from now on.
func (s *scripts) schemaCall(from, to, least int) *Call {
	return NewCall(0, s.schema, []string{schema.MetaKey}, from, to, least)
}

// readSchemaCall returns the version that the store is in now; false: the store was lost meanwhile.
func readSchemaCall(r Reply) (version int, there bool) { return int(r.Int(0)), r.Int(0) >= 0 }

// indexedAtOnce is how many tasks or workers one script names, or lists anew.
const indexedAtOnce = 100

// indexedCall names the tasks or workers in these states, a letter each, of a shard's index; readIndexed reads the reply.
func (s *scripts) indexedCall(shard int, index, states, from string) *Call {
	return NewCall(shard, s.indexed, []string{index}, from, states, indexedAtOnce)
}

// readIndexed returns where to go on, "" at the end, and entries of the index.
func readIndexed(r Reply) (from string, entries []string) { return r.Str(0), r.List(1).Strings() }

// listed is a task or a worker that an index names.
type listed struct {
	worker bool
	scope  model.Scope
	id     string
}

// relistCall lists tasks or workers of a shard under their queues.
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
