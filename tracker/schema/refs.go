package schema

import (
	"github.com/lubdub-io/lubdub/tracker/model"
)

// WorkerRef is a worker and the fields of it that never change and name its other keys.
type WorkerRef struct {
	Scope    model.Scope
	ID       string
	Shard    int
	Machine  string
	Lineage  string // hash of what a worker that is started again has in common with itself
	Identity string // hash of what only one registration may have; its own id: none
}

// workersAtOnce is how many workers one script reads: records of MaxWorkerBytes come to 200 KiB then.
const workersAtOnce = 25

// ByShard groups refs, bounded so that no script holds up Redis for long.
func ByShard(refs []*WorkerRef) (groups [][]*WorkerRef) {
	at := map[int]int{}
	for _, r := range refs {
		i, open := at[r.Shard]
		if !open || len(groups[i]) == workersAtOnce {
			i = len(groups)
			at[r.Shard] = i
			groups = append(groups, nil)
		}
		groups[i] = append(groups[i], r)
	}
	return groups
}
