package tracker

import (
	"cmp"
	"context"
	"strconv"
	"strings"
	"time"
)

// Worker reads one worker.
func (t *Tracker) Worker(ctx context.Context, scope Scope, id string) (*Worker, error) {
	t = t.within(ctx, 0)
	r, ok := t.workerRef(scope, id)
	if !ok {
		return nil, workerNotFound("worker")
	}
	list, err := t.readWorkers("worker", []*workerRef{r})
	if err != nil {
		return nil, err
	}
	if len(list) == 0 {
		return nil, workerNotFound("worker")
	}
	return list[0], t.complete("worker", list)
}

// readWorkers reads the records of many workers and leaves out those that are gone. What they hold, and what their
// machines and lineages have seen, is complete's.
func (t *Tracker) readWorkers(op string, refs []*workerRef) ([]*Worker, error) {
	groups := byShard(refs)
	calls := make([]*call, len(groups))
	for g, group := range groups {
		k := t.store.keys[group[0].shard]
		keys := []string{k.clock}
		for _, r := range group {
			keys = append(keys, k.worker(taskName(r.scope, r.id)))
		}
		calls[g] = newCall(group[0].shard, t.store.scripts.Get("worker_read"), keys)
	}
	t.store.doBulk(op, calls)
	at := map[*workerRef]*Worker{}
	for g, group := range groups {
		if calls[g].err != nil {
			return nil, calls[g].err
		}
		for i, r := range group {
			if w := t.readWorker(r, calls[g].reply.time(0), calls[g].reply.str(1+2*i), pairs(calls[g].reply.list(2+2*i))); w != nil {
				at[r] = w
			}
		}
	}
	workers := make([]*Worker, 0, len(refs))
	for _, r := range refs {
		if at[r] != nil {
			workers = append(workers, at[r])
		}
	}
	return workers, nil
}

func (t *Tracker) readWorker(r *workerRef, now time.Time, silent string, f map[string]string) *Worker {
	if f["s"] == "" {
		return nil
	}
	w := &Worker{
		Scope: r.scope, ID: r.id, Name: f["n"], Queue: f["q"], MachineID: f["m"], Hostname: f["h"], PID: atoi(f["p"]), Version: f["v"],
		Types: splitNames(f["y"]), Runtimes: splitNames(f["rn"]), ProbeURL: f["u"],
		Status: statusOf(f["s"]), StatusReason: endedFor(f), EndReason: WorkerReason(f["r"]), MaxConcurrent: atoi(f["mc"]), ActiveCount: atoi(f["a"]), elsewhere: atoi(f["ae"]),
		TotalCompleted: parseInt(f["tc"]), TotalFailed: parseInt(f["tf"]),
		RegisteredAt: parseMs(f["c"]), LastHeartbeatAt: parseMs(f["lb"]), DeregisteredAt: parseMs(f["e"]), DrainDeadline: parseMs(f["dd"]),
		Interval: duration(f["i"], 0), Timeout: duration(f["t"], 0),
		lineage: f["ln"], identity: f["id"], lastSelected: parseMs(f["ls"]), readAt: now,
	}
	unmarshal(f["l"], &w.Labels)
	if w.Status == Draining {
		w.StatusReason = f["dr"]
	}
	w.Liveness = Lost
	if silent == "" {
		w.LastHeartbeatAt = time.Time{}
		return w
	}
	w.Silent = duration(silent, 0)
	switch {
	case f["pb"] != "" && w.Status != Offline: // silent, but its probe was answered: not lost until the last answer is too old
		w.Liveness = Late
	case w.Silent >= w.Timeout:
	case 2*w.Silent >= 3*w.Interval:
		w.Liveness = Late
	default:
		w.Liveness = Fresh
	}
	return w
}

// machineDrained stands for the reason of a drain with the machine when none was given.
const machineDrained = "MACHINE_DRAINED"

// endedFor is what was given as the reason of the worker's end, or of the drain that came to its end with it; without
// either it is the code.
func endedFor(f map[string]string) string {
	given := f["gr"]
	switch WorkerReason(f["r"]) {
	case WorkerDrained, WorkerDrainDeadline, WorkerDeregistered:
		if f["dr"] != machineDrained {
			given = cmp.Or(given, f["dr"])
		}
	}
	return cmp.Or(given, f["r"])
}

func splitNames(s string) []string {
	if s == "" {
		return nil
	}
	return strings.Split(s, ",")
}

func parseInt(s string) int64 {
	n, _ := strconv.ParseInt(s, 10, 64)
	return n
}

// FlappingCount is how often a worker or machine must go stale within a day to be called flapping.
const FlappingCount = 3

// complete adds what other keys know of workers: what they hold in every shard, and how often they went stale.
func (t *Tracker) complete(op string, workers []*Worker) error {
	var calls []*call
	var settle []func()
	stales := map[int][]*Worker{}
	for _, w := range workers {
		shard, _ := t.store.workerShard(w.ID)
		stales[shard] = append(stales[shard], w)
	}
	for shard, group := range stales {
		keys := make([]string, len(group))
		for i, w := range group {
			keys[i] = t.store.keys[shard].stales(w.Scope, w.lineage)
		}
		c := newCall(shard, t.store.scripts.Get("day_counts"), keys)
		calls = append(calls, c)
		settle = append(settle, func() {
			for i, w := range group {
				w.StaleCount = int(c.reply.int(i))
				w.Flapping = w.StaleCount >= FlappingCount
			}
		})
	}
	load, settleLoad := t.loadCalls(workers)
	calls = append(calls, load...)
	t.store.doBulk(op, calls)
	for _, c := range calls {
		if c.err != nil {
			return c.err
		}
	}
	for _, f := range settle {
		f()
	}
	settleLoad()
	for _, w := range workers {
		w.Uptime = w.uptime()
		w.Unschedulable = w.unschedulable()
	}
	return nil
}

// loadCalls makes the calls that count what workers hold, and what waits for them alone, in every shard; call the
// result when they have run.
func (t *Tracker) loadCalls(workers []*Worker) (calls []*call, settle func()) {
	const limit = 250
	groups := [][]*Worker{}
	for from := 0; from < len(workers); from += limit {
		groups = append(groups, workers[from:min(from+limit, len(workers))])
	}
	for _, group := range groups {
		for shard, k := range t.store.keys {
			args := make([]any, 0, 2*len(group))
			for _, w := range group {
				pinned := ""
				if w.Queue != "" {
					pinned = w.Scope.String() + "/" + w.Queue + "/" + w.ID
				}
				args = append(args, w.ID, pinned)
			}
			calls = append(calls, newCall(shard, t.store.scripts.Get("loads"), []string{k.held, k.ready}, args...))
		}
	}
	shards := t.store.shards()
	return calls, func() {
		for g, group := range groups {
			for i, w := range group {
				w.Held, w.Placed = 0, 0
				for _, c := range calls[g*shards : (g+1)*shards] {
					w.Held += int(c.reply.int(2 * i))
					w.Placed += int(c.reply.int(2*i + 1))
				}
			}
		}
	}
}

// uptime is the share of the last day, or of the worker's life where that is shorter, in which it was alive. A worker
// that has ended is judged at its end.
func (w *Worker) uptime() float64 {
	end := w.readAt
	if w.Status == Offline {
		end = w.DeregisteredAt
	}
	from, until := w.RegisteredAt, end
	if day := end.Add(-24 * time.Hour); from.Before(day) {
		from = day
	}
	if w.LastHeartbeatAt.IsZero() || w.Status == Offline && w.EndReason == WorkerStale || w.Status != Offline && w.Liveness == Lost {
		until = w.LastHeartbeatAt
	}
	return percent(until.Sub(from), end.Sub(from))
}

func percent(part, whole time.Duration) float64 {
	if whole <= 0 {
		return 100
	}
	p := 100 * float64(max(part, 0)) / float64(whole)
	return float64(int64(min(p, 100)*10+0.5)) / 10
}

// refOf gives the resolved name of a worker that was read.
func (t *Tracker) refOf(w *Worker) *workerRef {
	r, _ := t.workerRef(w.Scope, w.ID)
	r.machine, r.lineage, r.identity = w.MachineID, w.lineage, w.identity
	if r.identity == "" {
		r.identity = w.ID
	}
	return r
}
