package workers

import (
	"cmp"
	"context"
	"strings"
	"time"

	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/schema"
	"github.com/lubdub-io/lubdub/tracker/store"
)

// Worker reads one worker.
func (t *Service) Worker(ctx context.Context, scope model.Scope, id string) (*model.Worker, error) {
	ctx = t.store.Within(ctx, 0)
	r, ok := t.store.WorkerRef(scope, id)
	if !ok {
		return nil, NoWorker("worker")
	}
	list, err := t.ReadWorkers(ctx, "worker", []*schema.WorkerRef{r})
	if err != nil {
		return nil, err
	}
	if len(list) == 0 {
		return nil, NoWorker("worker")
	}
	return list[0], t.complete(ctx, "worker", list)
}

// ReadWorkers reads the records of many workers and leaves out those that are gone. What they hold, and what their
// machines and lineages have seen, is complete's.
func (t *Service) ReadWorkers(ctx context.Context, op string, refs []*schema.WorkerRef) ([]*model.Worker, error) {
	groups := schema.WorkersByShard(refs)
	calls := make([]*store.Call, len(groups))
	for g, group := range groups {
		k := t.store.Keys[group[0].Shard]
		keys := []string{k.Clock}
		for _, r := range group {
			keys = append(keys, k.Worker(schema.TaskName(r.Scope, r.ID)))
		}
		calls[g] = store.NewCall(group[0].Shard, t.store.Scripts.Get("worker_read"), keys)
	}
	t.store.DoBulk(ctx, op, calls)
	at := map[*schema.WorkerRef]*model.Worker{}
	for g, group := range groups {
		if calls[g].Err != nil {
			return nil, calls[g].Err
		}
		for i, r := range group {
			if w := t.readWorker(r, calls[g].Reply.Time(0), calls[g].Reply.Str(1+2*i), store.Pairs(calls[g].Reply.List(2+2*i))); w != nil {
				at[r] = w
			}
		}
	}
	workers := make([]*model.Worker, 0, len(refs))
	for _, r := range refs {
		if at[r] != nil {
			workers = append(workers, at[r])
		}
	}
	return workers, nil
}

func (t *Service) readWorker(r *schema.WorkerRef, now time.Time, silent string, f map[string]string) *model.Worker {
	if f["s"] == "" {
		return nil
	}
	w := &model.Worker{
		Scope: r.Scope, ID: r.ID, Name: f["n"], Queue: f["q"], MachineID: f["m"], Hostname: f["h"], PID: schema.Atoi(f["p"]), Version: f["v"],
		Types: SplitNames(f["y"]), Runtimes: SplitNames(f["rn"]), ProbeURL: f["u"],
		Status: model.StatusOf(f["s"]), StatusReason: endedFor(f), EndReason: model.WorkerReason(f["r"]), MaxConcurrent: schema.Atoi(f["mc"]), ActiveCount: schema.Atoi(f["a"]), Elsewhere: schema.Atoi(f["ae"]),
		TotalCompleted: schema.ParseInt(f["tc"]), TotalFailed: schema.ParseInt(f["tf"]),
		RegisteredAt: schema.ParseMillis(f["c"]), LastHeartbeatAt: schema.ParseMillis(f["lb"]), DeregisteredAt: schema.ParseMillis(f["e"]), DrainDeadline: schema.ParseMillis(f["dd"]),
		Interval: schema.Duration(f["i"], 0), Timeout: schema.Duration(f["t"], 0),
		Lineage: f["ln"], Identity: f["id"], LastSelected: schema.ParseMillis(f["ls"]), ReadAt: now,
	}
	schema.Unmarshal(f["l"], &w.Labels)
	if w.Status == model.Draining {
		w.StatusReason = f["dr"]
	}
	w.Liveness = model.Lost
	if silent == "" {
		w.LastHeartbeatAt = time.Time{}
		return w
	}
	w.Silent = schema.Duration(silent, 0)
	switch {
	case f["pb"] != "" && w.Status != model.Offline: // silent, but its probe was answered: not lost until the last answer is too old
		w.Liveness = model.Late
	case w.Silent >= w.Timeout:
	case 2*w.Silent >= 3*w.Interval:
		w.Liveness = model.Late
	default:
		w.Liveness = model.Fresh
	}
	return w
}

// machineDrained stands for the reason of a drain with the machine when none was given.
const machineDrained = "MACHINE_DRAINED"

// endedFor is what was given as the reason of the worker's end, or of the drain that came to its end with it; without
// either it is the code.
func endedFor(f map[string]string) string {
	given := f["gr"]
	switch model.WorkerReason(f["r"]) {
	case model.WorkerDrained, model.WorkerDrainDeadline, model.WorkerDeregistered:
		if f["dr"] != machineDrained {
			given = cmp.Or(given, f["dr"])
		}
	}
	return cmp.Or(given, f["r"])
}

func SplitNames(s string) []string {
	if s == "" {
		return nil
	}
	return strings.Split(s, ",")
}

// FlappingCount is how often a worker or machine must go stale within a day to be called flapping.
const FlappingCount = 3

// complete adds what other keys know of workers: what they hold in every shard, and how often they went stale.
func (t *Service) complete(ctx context.Context, op string, workers []*model.Worker) error {
	var calls []*store.Call
	var settle []func()
	stales := map[int][]*model.Worker{}
	for _, w := range workers {
		shard, _ := t.store.WorkerShard(w.ID)
		stales[shard] = append(stales[shard], w)
	}
	for shard, group := range stales {
		keys := make([]string, len(group))
		for i, w := range group {
			keys[i] = t.store.Keys[shard].Stales(w.Scope, w.Lineage)
		}
		c := store.NewCall(shard, t.store.Scripts.Get("day_counts"), keys)
		calls = append(calls, c)
		settle = append(settle, func() {
			for i, w := range group {
				w.StaleCount = int(c.Reply.Int(i))
				w.Flapping = w.StaleCount >= FlappingCount
			}
		})
	}
	load, settleLoad := t.LoadCalls(workers)
	calls = append(calls, load...)
	t.store.DoBulk(ctx, op, calls)
	for _, c := range calls {
		if c.Err != nil {
			return c.Err
		}
	}
	for _, f := range settle {
		f()
	}
	settleLoad()
	for _, w := range workers {
		w.Uptime = w.UptimePercent()
		w.Unschedulable = w.FailedFilters()
	}
	return nil
}

// LoadCalls makes the calls that count what workers hold, and what waits for them alone, in every shard; call the
// result when they have run.
func (t *Service) LoadCalls(workers []*model.Worker) (calls []*store.Call, settle func()) {
	const limit = 250
	groups := [][]*model.Worker{}
	for from := 0; from < len(workers); from += limit {
		groups = append(groups, workers[from:min(from+limit, len(workers))])
	}
	for _, group := range groups {
		for shard, k := range t.store.Keys {
			args := make([]any, 0, 2*len(group))
			for _, w := range group {
				pinned := ""
				if w.Queue != "" {
					pinned = w.Scope.String() + "/" + w.Queue + "/" + w.ID
				}
				args = append(args, w.ID, pinned)
			}
			calls = append(calls, store.NewCall(shard, t.store.Scripts.Get("loads"), []string{k.Held, k.Ready}, args...))
		}
	}
	shards := t.store.Shards()
	return calls, func() {
		for g, group := range groups {
			for i, w := range group {
				w.Held, w.Placed = 0, 0
				for _, c := range calls[g*shards : (g+1)*shards] {
					w.Held += int(c.Reply.Int(2 * i))
					w.Placed += int(c.Reply.Int(2*i + 1))
				}
			}
		}
	}
}

// refOf gives the resolved name of a worker that was read.
func (t *Service) refOf(w *model.Worker) *schema.WorkerRef {
	r, _ := t.store.WorkerRef(w.Scope, w.ID)
	r.Machine, r.Lineage, r.Identity = w.MachineID, w.Lineage, w.Identity
	if r.Identity == "" {
		r.Identity = w.ID
	}
	return r
}
