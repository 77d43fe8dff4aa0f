package store

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/oklog/ulid/v2"

	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/schema"
)

// Keyspace is cut into shards, in which tasks and workers lie by their names. It does not change once its shards are known.
type Keyspace struct {
	Keys []*schema.ShardKeys // by shard
}

// Shards returns how many slices the keyspace is cut into.
func (k *Keyspace) Shards() int { return len(k.Keys) }

// ShardOf returns the shard of a task, or of whatever else is named in a scope.
func (k *Keyspace) ShardOf(scope model.Scope, id string) int {
	return schema.ShardOf(len(k.Keys), scope, id)
}

// Ref names a task whose other keys are not known yet.
func (k *Keyspace) Ref(scope model.Scope, id string) *schema.TaskRef {
	return &schema.TaskRef{Scope: scope, ID: id, Shard: k.ShardOf(scope, id)}
}

// A worker's id is wkr_, a ULID and its shard in three hexadecimal digits, so that whoever has the id knows where
// the worker lives, which its machine decided.
const (
	workerPrefix  = "wkr_"
	workerIDBytes = len(workerPrefix) + ulid.EncodedSize + 3
)

// NewWorkerID makes the id of a worker of a machine; a worker without one is its own machine.
func (k *Keyspace) NewWorkerID(scope model.Scope, machine string) string {
	unique := workerPrefix + ulid.Make().String()
	if machine == "" {
		machine = unique
	}
	return unique + fmt.Sprintf("%03X", k.MachineShard(scope, machine))
}

// WorkerShard returns the shard that a worker's id embeds; false: it is no id of a worker.
func (k *Keyspace) WorkerShard(id string) (int, bool) {
	if len(id) != workerIDBytes || !strings.HasPrefix(id, workerPrefix) {
		return 0, false
	}
	shard, err := strconv.ParseUint(id[workerIDBytes-3:], 16, 16)
	return int(shard), err == nil && int(shard) < k.Shards()
}

// MachineShard returns the shard of a machine and of its workers. A machine that is named after its one worker lives
// where that worker's id says.
func (k *Keyspace) MachineShard(scope model.Scope, machine string) int {
	if shard, ok := k.WorkerShard(machine); ok {
		return shard
	}
	return k.ShardOf(scope, machine)
}

// WorkerRef returns what the id alone tells; false: there can be no such worker.
func (k *Keyspace) WorkerRef(scope model.Scope, id string) (*schema.WorkerRef, bool) {
	shard, ok := k.WorkerShard(id)
	return &schema.WorkerRef{Scope: scope, ID: id, Shard: shard}, ok
}

const replicaPrefix = "rep_" // of the names of processes that say none

// NewReplicaID makes a name for a process that says none.
func NewReplicaID() string { return model.NewID(replicaPrefix) }

// SweeperID names this process in evidence, whichever part of it made the finding.
func (s *Store) SweeperID() string {
	return "swp_" + strings.TrimPrefix(s.opts.ReplicaID, replicaPrefix)
}
