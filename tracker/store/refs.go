package store

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/oklog/ulid/v2"

	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/schema"
)

// Keyspace maps tasks and workers to shards by their names. It does not change once the shard count is known.
type Keyspace struct {
	Keys []*schema.ShardKeys // by shard
}

// Shards returns the number of shards.
func (k *Keyspace) Shards() int { return len(k.Keys) }

// ShardOf returns the shard of a task, or of anything else with a name in a scope.
func (k *Keyspace) ShardOf(scope model.Scope, id string) int {
	return schema.ShardOf(len(k.Keys), scope, id)
}

// Ref returns a reference to a task whose other keys are not known yet.
func (k *Keyspace) Ref(scope model.Scope, id string) *schema.TaskRef {
	return &schema.TaskRef{Scope: scope, ID: id, Shard: k.ShardOf(scope, id)}
}

// A worker's ID is wkr_, a ULID and its shard in three hexadecimal digits. Its machine decides the shard, and the ID alone is enough to
// find the worker.
const (
	workerPrefix  = "wkr_"
	workerIDBytes = len(workerPrefix) + ulid.EncodedSize + 3
)

// NewWorkerID returns the ID of a new worker of a machine. A worker without one is its own machine.
func (k *Keyspace) NewWorkerID(scope model.Scope, machine string) string {
	unique := workerPrefix + ulid.Make().String()
	if machine == "" {
		machine = unique
	}
	return unique + fmt.Sprintf("%03X", k.MachineShard(scope, machine))
}

// WorkerShard returns the shard in a worker's ID; false: it is not the ID of a worker.
func (k *Keyspace) WorkerShard(id string) (int, bool) {
	if len(id) != workerIDBytes || !strings.HasPrefix(id, workerPrefix) {
		return 0, false
	}
	shard, err := strconv.ParseUint(id[workerIDBytes-3:], 16, 16)
	return int(shard), err == nil && int(shard) < k.Shards()
}

// MachineShard returns the shard of a machine and its workers. A machine that is named after its one worker is in the shard of that
// worker's ID.
func (k *Keyspace) MachineShard(scope model.Scope, machine string) int {
	if shard, ok := k.WorkerShard(machine); ok {
		return shard
	}
	return k.ShardOf(scope, machine)
}

// WorkerRef returns a reference from a worker's ID; false: no worker can have that ID.
func (k *Keyspace) WorkerRef(scope model.Scope, id string) (*schema.WorkerRef, bool) {
	shard, ok := k.WorkerShard(id)
	return &schema.WorkerRef{Scope: scope, ID: id, Shard: shard}, ok
}

const replicaPrefix = "rep_" // of generated replica names

// NewReplicaID returns a name for a process without a configured one.
func NewReplicaID() string { return model.NewID(replicaPrefix) }

// SweeperID returns the name of this process in the evidence of verdicts.
func (s *Store) SweeperID() string {
	return "swp_" + strings.TrimPrefix(s.opts.ReplicaID, replicaPrefix)
}
