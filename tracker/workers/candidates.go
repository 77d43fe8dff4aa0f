package workers

import (
	"context"
	"slices"
	"strings"

	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/schema"
	"github.com/lubdub-io/lubdub/tracker/store"
)

// A selection looks at every worker of a queue, and a scope may have very many: it reads of each only what it asks for,
// and counts what they hold in one go.

// candidateFields are those of a worker's record that filters and strategies ask for; lua/lib/worker.lua names them.
var candidateFields = []string{"q", "s", "r", "y", "rn", "l", "mc", "i", "t", "pb", "ls", "ae"}

// runner runs calls in some lane: doAll what somebody waits for with a decision to make, doBulk what is only shown.
type runner func(ctx context.Context, op string, calls []*store.Call)

// workersInHand is how many workers are read before those that are not wanted are let go of: records of MaxWorkerBytes
// come to 8 MiB then.
const workersInHand = 1000

// ReadCandidates reads the workers of a queue, or of all for "", with what a selection asks for and no more, and gives
// those that are wanted, without what may be long.
func (t *Service) ReadCandidates(ctx context.Context, run runner, op string, refs []*schema.WorkerRef, queue string, wanted func(*model.Worker) bool) (workers []*model.Worker, err error) {
	for page := range slices.Chunk(refs, workersInHand) {
		if err := t.readCandidatePage(ctx, run, op, page, queue, func(w *model.Worker) {
			if wanted(w) {
				workers = append(workers, w.Slim())
			}
		}); err != nil {
			return nil, err
		}
	}
	return workers, nil
}

func (t *Service) readCandidatePage(ctx context.Context, run runner, op string, refs []*schema.WorkerRef, queue string, each func(*model.Worker)) error {
	groups := schema.WorkersByShard(refs)
	calls := make([]*store.Call, len(groups))
	for g, group := range groups {
		k := t.store.Keys[group[0].Shard]
		keys := append(make([]string, 0, 1+len(group)), k.Clock)
		for _, r := range group {
			keys = append(keys, k.Worker(schema.TaskName(r.Scope, r.ID)))
		}
		args := []any{queue}
		for _, f := range candidateFields {
			args = append(args, f)
		}
		calls[g] = store.NewCall(group[0].Shard, t.store.Scripts.Get("worker_candidates"), keys, args...)
	}
	run(ctx, op, calls)
	record := make(map[string]string, len(candidateFields))
	for g, group := range groups {
		if calls[g].Err != nil {
			return calls[g].Err
		}
		now := calls[g].Reply.Time(0)
		for i, r := range group {
			values := strings.Split(calls[g].Reply.Str(1+i), schema.PackSep)
			if len(values) != 1+len(candidateFields) {
				continue
			}
			for j, f := range candidateFields {
				record[f] = values[1+j]
			}
			if w := t.readWorker(r, now, values[0], record); w != nil {
				each(w)
			}
		}
	}
	return nil
}

// mostHeld is how many entries one script looks at to count what all workers hold.
const mostHeld = 4000

// manyWorkers is from how many workers on a look at all that is held is tried before a count for each of them.
const manyWorkers = 64

// CountLoad counts what workers hold, and what waits for them alone.
func (t *Service) CountLoad(ctx context.Context, run runner, op string, workers []*model.Worker) error {
	if len(workers) >= manyWorkers {
		if done, err := t.countAllLoads(ctx, run, op, workers); done || err != nil {
			return err
		}
	}
	calls, settle := t.LoadCalls(workers)
	run(ctx, op, calls)
	for _, c := range calls {
		if c.Err != nil {
			return c.Err
		}
	}
	settle()
	return nil
}

// countAllLoads counts the loads of workers of one scope by looking at all that is held; false: that is too much.
func (t *Service) countAllLoads(ctx context.Context, run runner, op string, workers []*model.Worker) (done bool, err error) {
	var queues []string
	byID := make(map[string]*model.Worker, len(workers))
	for _, w := range workers {
		w.Held, w.Placed = 0, 0
		byID[w.ID] = w
		if name := w.Scope.String() + "/" + w.Queue; !slices.Contains(queues, name) {
			queues = append(queues, name)
		}
	}
	args := []any{min(4*len(workers), mostHeld)}
	for _, q := range queues {
		args = append(args, q)
	}
	calls := make([]*store.Call, t.store.Shards())
	for shard, k := range t.store.Keys {
		calls[shard] = store.NewCall(shard, t.store.Scripts.Get("all_loads"), []string{k.Held, k.Ready}, args...)
	}
	run(ctx, op, calls)
	for _, c := range calls {
		if c.Err != nil {
			return false, c.Err
		}
		if c.Reply.Int(0) == 0 {
			return false, nil
		}
	}
	for _, c := range calls {
		for i := 1; i < len(c.Reply); i += 3 {
			if w := byID[c.Reply.Str(i)]; w != nil {
				w.Held += int(c.Reply.Int(i + 1))
				w.Placed += int(c.Reply.Int(i + 2))
			}
		}
	}
	return true, nil
}
