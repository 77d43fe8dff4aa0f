package tracker

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/oklog/ulid/v2"
)

// A worker's id is wkr_, a ULID and its shard in three hexadecimal digits, so that whoever has the id knows where
// the worker lives, which its machine decided.
const (
	workerPrefix  = "wkr_"
	workerIDBytes = len(workerPrefix) + ulid.EncodedSize + 3
)

// newWorkerID makes the id of a worker of a machine; a worker without one is its own machine.
func (s *store) newWorkerID(scope Scope, machine string) string {
	unique := workerPrefix + ulid.Make().String()
	if machine == "" {
		machine = unique
	}
	return unique + fmt.Sprintf("%03X", s.machineShard(scope, machine))
}

// workerShard gives the shard that a worker's id embeds; false: it is no id of a worker.
func (s *store) workerShard(id string) (int, bool) {
	if len(id) != workerIDBytes || !strings.HasPrefix(id, workerPrefix) {
		return 0, false
	}
	shard, err := strconv.ParseUint(id[workerIDBytes-3:], 16, 16)
	return int(shard), err == nil && int(shard) < s.shards()
}

// machineShard gives the shard of a machine and of its workers. A machine that is named after its one worker lives
// where that worker's id says.
func (s *store) machineShard(scope Scope, machine string) int {
	if shard, ok := s.workerShard(machine); ok {
		return shard
	}
	return s.shardOf(scope, machine)
}

// workerRef is a worker and the fields of it that never change and name its other keys.
type workerRef struct {
	scope    Scope
	id       string
	shard    int
	machine  string
	lineage  string // hash of what a worker that is started again has in common with itself
	identity string // hash of what only one registration may have; its own id: none
}

// workerRef gives what the id alone tells; false: there can be no such worker.
func (t *Tracker) workerRef(scope Scope, id string) (*workerRef, bool) {
	shard, ok := t.store.workerShard(id)
	return &workerRef{scope: scope, id: id, shard: shard}, ok
}

// WorkerNotFound is the code of a worker that this scope does not have, or not any more.
const WorkerNotFound Code = "worker_not_found"

func workerNotFound(op string) error {
	return &Error{Code: WorkerNotFound, Op: op, Message: "no worker with this id in this tenant and workspace; OFFLINE workers are removed at the end of their retention: register again"}
}

// findWorker resolves a worker's keys.
func (t *Tracker) findWorker(op string, scope Scope, id string) (*workerRef, error) {
	r, ok := t.workerRef(scope, id)
	if !ok {
		return nil, workerNotFound(op)
	}
	found, err := t.findWorkers(op, []*workerRef{r})
	if err != nil {
		return nil, err
	}
	if len(found) == 0 {
		return nil, workerNotFound(op)
	}
	return r, nil
}

// findWorkers resolves the keys of many and leaves out those that are gone.
func (t *Tracker) findWorkers(op string, refs []*workerRef) ([]*workerRef, error) {
	calls, resolve := t.workerNames(refs)
	t.store.doAll(op, calls)
	for _, c := range calls {
		if c.err != nil {
			return nil, c.err
		}
	}
	return resolve(), nil
}

// workerNames makes the calls that resolve refs, one for each shard; call the result when they have run.
func (t *Tracker) workerNames(refs []*workerRef) (calls []*call, resolve func() []*workerRef) {
	groups := byShard(refs)
	for _, group := range groups {
		k := t.store.keys[group[0].shard]
		keys := make([]string, len(group))
		for i, r := range group {
			keys[i] = k.worker(taskName(r.scope, r.id))
		}
		calls = append(calls, newCall(group[0].shard, t.store.scripts.Get("worker_names"), keys))
	}
	return calls, func() (found []*workerRef) {
		for g, group := range groups {
			for i, r := range group {
				re := calls[g].reply
				if r.machine = re.str(3 * i); calls[g].err == nil && r.machine != "" {
					r.lineage, r.identity = re.str(3*i+1), re.str(3*i+2)
					if r.identity == "" {
						r.identity = r.id
					}
					found = append(found, r)
				}
			}
		}
		return found
	}
}

// workersAtOnce is how many workers one script reads: records of MaxWorkerBytes come to 200 KiB then.
const workersAtOnce = 25

// byShard groups refs, bounded so that no script holds up Redis for long.
func byShard(refs []*workerRef) (groups [][]*workerRef) {
	at := map[int]int{}
	for _, r := range refs {
		i, open := at[r.shard]
		if !open || len(groups[i]) == workersAtOnce {
			i = len(groups)
			at[r.shard] = i
			groups = append(groups, nil)
		}
		groups[i] = append(groups[i], r)
	}
	return groups
}

// workerKeys gives the keys of a resolved worker as scripts about workers declare them.
func (t *Tracker) workerKeys(r *workerRef) []string {
	k := t.store.keys[r.shard]
	return k.ofWorker(append(make([]string, 0, len(k.ofWorkers)+9), k.ofWorkers...), r)
}
