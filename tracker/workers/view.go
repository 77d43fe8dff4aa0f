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
func (s *Service) Get(ctx context.Context, scope model.Scope, id string) (*model.Worker, error) {
	const op = "worker"
	ctx = s.store.Within(ctx, 0)
	r, ok := s.store.WorkerRef(scope, id)
	if !ok {
		return nil, NoWorker(op)
	}
	list, err := s.Read(ctx, op, []*schema.WorkerRef{r})
	if err != nil {
		return nil, err
	}
	if len(list) == 0 {
		return nil, NoWorker(op)
	}
	return list[0], s.complete(ctx, op, list)
}

// ReadWorkers reads the records of many workers, and their holds, and leaves out those that are gone. What they hold, and what their
// machines and lineages have seen, is added by complete.
func (s *Service) Read(ctx context.Context, op string, refs []*schema.WorkerRef) ([]*model.Worker, error) {
	groups := schema.WorkersByShard(refs)
	calls := make([]*store.Call, len(groups))
	for g, group := range groups {
		calls[g] = s.readCall(group)
	}
	s.store.DoBulk(ctx, op, calls)
	if err := store.FirstError(calls); err != nil {
		return nil, err
	}
	at := make(map[*schema.WorkerRef]*model.Worker, len(refs))
	for g, group := range groups {
		now, records := readRecords(calls[g].Reply, len(group))
		for i, r := range group {
			at[r] = newWorker(r, now, records[i])
		}
	}
	workers := make([]*model.Worker, 0, len(refs))
	for _, r := range refs {
		if at[r] != nil {
			workers = append(workers, at[r])
		}
	}
	return workers, s.readHolds(ctx, op, workers)
}

// readHolds reads the holds of those workers that were held offline. A hold is of a lineage, and is lifted with any of its workers.
func (s *Service) readHolds(ctx context.Context, op string, workers []*model.Worker) error {
	var held []*model.Worker
	for _, w := range workers {
		if w.Hold != nil {
			held = append(held, w)
		}
	}
	groups := s.byHome(held, holdsAtOnce)
	calls := make([]*store.Call, len(groups))
	for i, group := range groups {
		shard, _ := s.store.WorkerShard(group[0].ID)
		calls[i] = s.holdsCall(shard, group)
	}
	s.store.DoBulk(ctx, op, calls)
	if err := store.FirstError(calls); err != nil {
		return err
	}
	for i, group := range groups {
		for j, w := range group {
			w.Hold = readHold(calls[i].Reply, j)
		}
	}
	return nil
}

// newWorker returns a worker as its record says, nil when there is none.
func newWorker(r *schema.WorkerRef, now time.Time, as stored) *model.Worker {
	f := as.fields
	if f[schema.WorkerStatus] == "" {
		return nil
	}
	w := &model.Worker{
		Scope:          r.Scope,
		ID:             r.ID,
		Name:           f[schema.WorkerName],
		Queue:          f[schema.WorkerQueue],
		MachineID:      f[schema.WorkerMachine],
		Hostname:       f[schema.WorkerHostname],
		PID:            schema.Atoi(f[schema.WorkerPID]),
		Version:        f[schema.WorkerVersion],
		Types:          splitNames(f[schema.WorkerTypes]),
		Runtimes:       splitNames(f[schema.WorkerRuntimes]),
		ProbeURL:       f[schema.WorkerProbeURL],
		Status:         model.StatusOf(f[schema.WorkerStatus]),
		StatusReason:   endedFor(f),
		EndReason:      model.WorkerReason(f[schema.WorkerReason]),
		MaxConcurrent:  schema.Atoi(f[schema.WorkerMaxConcurrent]),
		ActiveCount:    schema.Atoi(f[schema.WorkerActive]),
		Elsewhere:      schema.Atoi(f[schema.WorkerElsewhere]),
		TotalCompleted: schema.ParseInt(f[schema.WorkerCompleted]),
		TotalFailed:    schema.ParseInt(f[schema.WorkerFailed]),
		RegisteredAt:   schema.ParseMillis(f[schema.WorkerRegistered]),
		DeregisteredAt: schema.ParseMillis(f[schema.WorkerEnded]),
		Recovery: model.Recovery{
			Attempts: int(schema.ParseInt(f[schema.WorkerRecovered])), Failed: int(schema.ParseInt(f[schema.WorkerRecoverFailed])),
			Exhausted: int(schema.ParseInt(f[schema.WorkerExhausted])),
		},
		DrainDeadline: schema.ParseMillis(f[schema.WorkerDrainDeadline]),
		Interval:      schema.Duration(f[schema.WorkerInterval], 0),
		Timeout:       schema.Duration(f[schema.WorkerTimeout], 0),
		Lineage:       f[schema.WorkerLineage],
		Identity:      f[schema.WorkerIdentity],
		LastSelected:  schema.ParseMillis(f[schema.WorkerSelected]),
		ReadAt:        now,
	}
	schema.Unmarshal(f[schema.WorkerLabels], &w.Labels)
	if since := f[schema.WorkerCordoned]; since != "" {
		w.Cordon = &model.Cordon{Since: schema.ParseMillis(since)}
		schema.Unmarshal(f[schema.WorkerCordonReason], &w.Cordon.Reason)
	}
	if f[schema.WorkerHeldOffline] != "" {
		w.Hold = &model.Hold{} // which readHolds fills in
	}
	if w.Status == model.Draining {
		w.StatusReason = f[schema.WorkerDrainReason]
	}
	w.Liveness = model.Lost
	if as.silent == "" {
		return w
	}
	w.LastHeartbeatAt, w.Silent = schema.ParseMillis(f[schema.WorkerLastBeatWall]), schema.Duration(as.silent, 0)
	switch {
	case f[schema.WorkerProbes] != "" && w.Status != model.Offline: // its probe was answered: not lost until the last answer is too old
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
	given := f[schema.WorkerGivenReason]
	switch model.WorkerReason(f[schema.WorkerReason]) {
	case model.WorkerDrained, model.WorkerDrainDeadline, model.WorkerDeregistered:
		if f[schema.WorkerDrainReason] != machineDrained {
			given = cmp.Or(given, f[schema.WorkerDrainReason])
		}
	}
	return cmp.Or(given, f[schema.WorkerReason])
}

// splitNames returns the names of a record, which stand comma-separated there.
func splitNames(names string) []string {
	if names == "" {
		return nil
	}
	return strings.Split(names, ",")
}

// complete adds what other keys know of workers: what they hold in every shard, how often they went stale, and their uptime.
func (s *Service) complete(ctx context.Context, op string, workers []*model.Worker) error {
	stales, setStales := s.staleCalls(workers)
	loads, setLoads := s.LoadCalls(workers)
	lives, setUptimes := s.uptimeCalls(workers)
	all := append(append(stales, loads...), lives...)
	s.store.DoBulk(ctx, op, all)
	if err := store.FirstError(all); err != nil {
		return err
	}
	setStales()
	setLoads()
	setUptimes()
	for _, w := range workers {
		w.Unschedulable = w.FailedFilters()
	}
	return nil
}

// Of how many workers one script reads what their lineages have seen.
const (
	stalesAtOnce = 500
	livesAtOnce  = 50
	holdsAtOnce  = 100
)

// byHome groups workers by their own shards, so many together at most.
func (s *Service) byHome(workers []*model.Worker, most int) [][]*model.Worker {
	return schema.ByShard(workers, most, func(w *model.Worker) int {
		shard, _ := s.store.WorkerShard(w.ID)
		return shard
	})
}

// staleCalls count how often workers and their machines went stale within a day; set takes the counts from the replies.
func (s *Service) staleCalls(workers []*model.Worker) (calls []*store.Call, set func()) {
	groups := s.byHome(workers, stalesAtOnce)
	for _, group := range groups {
		shard, _ := s.store.WorkerShard(group[0].ID)
		calls = append(calls, s.dayCountsCall(shard, group))
	}
	return calls, func() {
		for i, group := range groups {
			counts := readDayCounts(calls[i].Reply)
			for j, w := range group {
				w.StaleCount = counts[j].worker
				w.Flapping = w.StaleCount >= s.opts.FlappingThreshold
				w.MachineFlapping = counts[j].machine >= s.opts.FlappingThreshold
			}
		}
	}
}

// uptimeCalls read when earlier registrations of the workers were alive, once for each lineage; set takes the uptimes from the replies.
func (s *Service) uptimeCalls(workers []*model.Worker) (calls []*store.Call, set func()) {
	lineage := func(w *model.Worker) string { return w.Scope.String() + "/" + w.Lineage }
	of := make(map[string][]*model.Worker, len(workers))
	var first []*model.Worker
	for _, w := range workers {
		if of[lineage(w)] = append(of[lineage(w)], w); len(of[lineage(w)]) == 1 {
			first = append(first, w)
		}
	}
	groups := s.byHome(first, livesAtOnce)
	for _, group := range groups {
		shard, _ := s.store.WorkerShard(group[0].ID)
		calls = append(calls, s.livesCall(shard, group))
	}
	return calls, func() {
		for i, group := range groups {
			for j, one := range group {
				lives := readLives(calls[i].Reply, j)
				for _, w := range of[lineage(one)] {
					w.Uptime = w.UptimePercent(lives)
				}
			}
		}
	}
}
