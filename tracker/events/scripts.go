package events

import (
	"github.com/lubdub-io/lubdub/lua"
	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/schema"
	"github.com/lubdub-io/lubdub/tracker/store"
)

// scripts are the scripts of lua/events. Only this file knows the order of their arguments and replies.
type scripts struct {
	read, hosts, trim *lua.Script
}

func newScripts(set *lua.Set) *scripts {
	return &scripts{read: set.Get("read"), hosts: set.Get("hosts"), trim: set.Get("trim")}
}

// These limit what one script reads: 256 entries of up to 5 KB.
const (
	readAtOnce = 256 // in total
	readOfEach = 128 // of one shard in a call for several
)

// sought selects entries: those with a field with this text or, if `other` is set, with anything in that field. The zero value selects
// all.
type sought struct{ field, text, other string }

// readCall reads several shards, as many as one call may cover, each from its position.
func (s *Service) readCall(shards []int, ofEach int, of sought, from func(shard int) string) *store.Call {
	keys, args := make([]string, len(shards)), []any{readAtOnce, ofEach, of.field, of.text, of.other}
	for i, shard := range shards {
		keys[i] = s.store.Keys[shard].Events
		args = append(args, from(shard))
	}
	return store.NewCall(shards[0], s.scripts.read, keys, args...)
}

// continuity is how a shard continues from a reader's position; lua/events/read.lua has the same numbers.
type continuity int64

const (
	continued continuity = iota
	trimmed              // the next entries were trimmed
	lost                 // the store has lost writes that the reader had seen
	unread               // other shards had enough entries
)

// storedEvent is an entry of a stream: its ID, and alternating names and values.
type storedEvent struct {
	id    string
	words []string
}

// readReply is the reply of read.lua for one shard. When it continues from an entry, that entry is the first; the last is the last one
// that was read, even if it does not match.
type readReply struct {
	how     continuity
	entries []storedEvent
	more    bool // there may be more
	read    int  // how many were read
}

// readRead returns the reply for the i-th shard of a call.
func readRead(re store.Reply, i int) readReply {
	of := re.List(1 + i)
	entries := of.List(1)
	reply := readReply{how: continuity(of.Int(0)), entries: make([]storedEvent, len(entries)), more: of.Int(2) == 1, read: int(of.Int(3))}
	for j := range entries {
		entry := entries.List(j)
		reply.entries[j] = storedEvent{id: entry.Str(0), words: entry.List(1).Strings()}
	}
	return reply
}

// hostsAtOnce is how many workers one script looks up.
const hostsAtOnce = 200

// hostsCall looks up workers of one shard.
func (s *Service) hostsCall(refs []*schema.WorkerRef) *store.Call {
	shard := refs[0].Shard
	keys := make([]string, len(refs))
	for i, r := range refs {
		keys[i] = s.store.Keys[shard].Worker(schema.TaskName(r.Scope, r.ID))
	}
	return store.NewCall(shard, s.scripts.hosts, keys)
}

// readHost returns the machine and version of the i-th worker; without a machine, the worker does not exist.
func readHost(r store.Reply, i int) Host { return Host{Machine: r.Str(2 * i), Version: r.Str(2*i + 1)} }

// trimCall drops events beyond the retention settings in several shards, as many as one call may cover.
func (s *Service) trimCall(shards []int) *store.Call {
	var keys []string
	for _, shard := range shards {
		keys = append(keys, s.store.Keys[shard].Events, s.store.Keys[shard].EventMarks)
	}
	return store.NewCall(shards[0], s.scripts.trim, keys, s.opts.PerShard, model.Millis(s.opts.MaxAge))
}

// readTrim returns how many events of the i-th shard were dropped, and whether there may be more to drop.
func readTrim(re store.Reply, i int) (dropped int64, more bool) {
	of := re.List(1 + i)
	return of.Int(0), of.Int(1) == 1
}
