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

// newWorker returns a worker from its record, nil if there is none.
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
		w.Hold = &model.Hold{} // readHolds completes it
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
	case f[schema.WorkerProbes] != "" && w.Status != model.Offline: // it responded to a probe: not lost until the last response is too old
		w.Liveness = model.Late
	case w.Silent >= w.Timeout:
	case 2*w.Silent >= 3*w.Interval:
		w.Liveness = model.Late
	default:
		w.Liveness = model.Fresh
	}
	return w
}

// machineDrained is shown as the reason of a drain with the machine if the request had none.
const machineDrained = "MACHINE_DRAINED"

// endedFor returns the reason from the request that ended the worker, or from the drain that ended with it; without one it returns
// the code.
func endedFor(f map[string]string) string {
	reason := f[schema.WorkerGivenReason]
	switch model.WorkerReason(f[schema.WorkerReason]) {
	case model.WorkerDrained, model.WorkerDrainDeadline, model.WorkerDeregistered:
		if f[schema.WorkerDrainReason] != machineDrained {
			reason = cmp.Or(reason, f[schema.WorkerDrainReason])
		}
	}
	return cmp.Or(reason, f[schema.WorkerReason])
}

// splitNames splits the comma-separated names of a record.
func splitNames(names string) []string {
	if names == "" {
		return nil
	}
	return strings.Split(names, ",")
}

// complete adds data from other keys: the loads of workers in every shard, how often they were declared stale, and their uptime.
func (s *views) complete(ctx context.Context, op string, workers []*model.Worker) error {
	stales, setStales := s.staleCalls(workers)
	loads, setLoads := s.loads.LoadCalls(workers)
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

// How many workers' lineage data one script reads.
const (
	stalesAtOnce = 500
	livesAtOnce  = 50
	holdsAtOnce  = 100
)

// staleCalls count how often workers and their machines were declared stale within a day; set takes the counts from the replies.
func (s *views) staleCalls(workers []*model.Worker) (calls []*store.Call, set func()) {
	groups := s.reader.byHome(workers, stalesAtOnce)
	for _, group := range groups {
		shard, _ := s.store.WorkerShard(group[0].ID)
		calls = append(calls, s.scripts.dayCountsCall(shard, group))
	}
	return calls, func() {
		for i, group := range groups {
			counts := readDayCounts(calls[i].Reply)
			for j, w := range group {
				w.StaleCount = counts[j].worker
				w.Flapping = w.StaleCount >= model.FlappingThreshold
				w.MachineFlapping = counts[j].machine >= model.FlappingThreshold
			}
		}
	}
}

// uptimeCalls read when earlier registrations of the workers were alive, once for each lineage; set takes the uptimes from the
// replies.
func (s *views) uptimeCalls(workers []*model.Worker) (calls []*store.Call, set func()) {
	lineage := func(w *model.Worker) string { return w.Scope.String() + "/" + w.Lineage }
	of := make(map[string][]*model.Worker, len(workers))
	var first []*model.Worker
	for _, w := range workers {
		if of[lineage(w)] = append(of[lineage(w)], w); len(of[lineage(w)]) == 1 {
			first = append(first, w)
		}
	}
	groups := s.reader.byHome(first, livesAtOnce)
	for _, group := range groups {
		shard, _ := s.store.WorkerShard(group[0].ID)
		calls = append(calls, s.scripts.livesCall(shard, group))
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

// ReadLost reads only the records of ended workers, the result of their recoveries, and how often they were declared stale; it
// leaves out those that are gone.
func (s *views) ReadLost(ctx context.Context, op string, refs []*schema.WorkerRef) ([]*model.Worker, error) {
	fields := []string{schema.WorkerStatus, schema.WorkerName, schema.WorkerQueue, schema.WorkerMachine, schema.WorkerHostname,
		schema.WorkerLastBeatWall, schema.WorkerEnded, schema.WorkerReason, schema.WorkerRecovered, schema.WorkerRecoverFailed,
		schema.WorkerExhausted, schema.WorkerLineage}
	lost, err := s.reader.readSome(ctx, s.store.DoBulk, op, refs, nil, fields, func(*model.Worker) bool { return true })
	if err != nil {
		return nil, err
	}
	calls, set := s.staleCalls(lost)
	s.store.DoBulk(ctx, op, calls)
	if err := store.FirstError(calls); err != nil {
		return nil, err
	}
	set()
	return lost, nil
}
