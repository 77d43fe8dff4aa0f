package tracker

import (
	"slices"
	"strings"
)

// A selection looks at every worker of a queue, and a scope may have very many: it reads of each only what it asks for,
// and counts what they hold in one go.

// candidateFields are those of a worker's record that filters and strategies ask for; lua/lib/worker.lua names them.
var candidateFields = []string{"q", "s", "r", "y", "rn", "l", "mc", "i", "t", "pb", "ls", "ae"}

// runner runs calls in some lane: doAll what somebody waits for with a decision to make, doBulk what is only shown.
type runner func(op string, calls []*call)

// workersInHand is how many workers are read before those that are not wanted are let go of: records of MaxWorkerBytes
// come to 8 MiB then.
const workersInHand = 1000

// readCandidates reads the workers of a queue, or of all for "", with what a selection asks for and no more, and gives
// those that are wanted, without what may be long.
func (t *Tracker) readCandidates(run runner, op string, refs []*workerRef, queue string, wanted func(*Worker) bool) (workers []*Worker, err error) {
	for page := range slices.Chunk(refs, workersInHand) {
		if err := t.readCandidatePage(run, op, page, queue, func(w *Worker) {
			if wanted(w) {
				workers = append(workers, w.slim())
			}
		}); err != nil {
			return nil, err
		}
	}
	return workers, nil
}

func (t *Tracker) readCandidatePage(run runner, op string, refs []*workerRef, queue string, each func(*Worker)) error {
	groups := byShard(refs)
	calls := make([]*call, len(groups))
	for g, group := range groups {
		k := t.store.keys[group[0].shard]
		keys := append(make([]string, 0, 1+len(group)), k.clock)
		for _, r := range group {
			keys = append(keys, k.worker(taskName(r.scope, r.id)))
		}
		args := []any{queue}
		for _, f := range candidateFields {
			args = append(args, f)
		}
		calls[g] = newCall(group[0].shard, t.store.scripts.Get("worker_candidates"), keys, args...)
	}
	run(op, calls)
	record := make(map[string]string, len(candidateFields))
	for g, group := range groups {
		if calls[g].err != nil {
			return calls[g].err
		}
		now := calls[g].reply.time(0)
		for i, r := range group {
			values := strings.Split(calls[g].reply.str(1+i), packSep)
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

// slim lets go of what may be long, where very many are looked at.
func (w *Worker) slim() *Worker {
	w.Types, w.Runtimes, w.Labels, w.ProbeURL = nil, nil, nil, ""
	return w
}

// mostHeld is how many entries one script looks at to count what all workers hold.
const mostHeld = 4000

// manyWorkers is from how many workers on a look at all that is held is tried before a count for each of them.
const manyWorkers = 64

// countLoad counts what workers hold, and what waits for them alone.
func (t *Tracker) countLoad(run runner, op string, workers []*Worker) error {
	if len(workers) >= manyWorkers {
		if done, err := t.countAllLoads(run, op, workers); done || err != nil {
			return err
		}
	}
	calls, settle := t.loadCalls(workers)
	run(op, calls)
	for _, c := range calls {
		if c.err != nil {
			return c.err
		}
	}
	settle()
	return nil
}

// countAllLoads counts the loads of workers of one scope by looking at all that is held; false: that is too much.
func (t *Tracker) countAllLoads(run runner, op string, workers []*Worker) (done bool, err error) {
	var queues []string
	byID := make(map[string]*Worker, len(workers))
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
	calls := make([]*call, t.store.shards())
	for shard, k := range t.store.keys {
		calls[shard] = newCall(shard, t.store.scripts.Get("all_loads"), []string{k.held, k.ready}, args...)
	}
	run(op, calls)
	for _, c := range calls {
		if c.err != nil {
			return false, c.err
		}
		if c.reply.int(0) == 0 {
			return false, nil
		}
	}
	for _, c := range calls {
		for i := 1; i < len(c.reply); i += 3 {
			if w := byID[c.reply.str(i)]; w != nil {
				w.Held += int(c.reply.int(i + 1))
				w.Placed += int(c.reply.int(i + 2))
			}
		}
	}
	return true, nil
}
