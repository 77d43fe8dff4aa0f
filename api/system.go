package api

import (
	"time"

	"github.com/valyala/fasthttp"

	"github.com/lubdub-io/lubdub/api/token"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
	"github.com/lubdub-io/lubdub/tracker"
)

// sweep answers POST /v1/system:sweep. A sweep is about every tenant, so a token that opens all need name none; its
// counts are told to any admin, names only to whom the token opens them.
func (req *request) sweep() (int, any, error) {
	if err := req.optionalBody(&struct{}{}); err != nil {
		return 0, nil, err
	}
	if req.who.claims.Tenant != token.Wildcard || len(req.query) > 0 {
		if _, err := req.scope("", ""); err != nil {
			return 0, nil, err
		}
	}
	r, err := req.s.tracker.Sweep(req.context())
	if err != nil {
		return 0, nil, err
	}
	machines := []string{}
	for _, m := range r.Machines {
		if opens(req.who.claims.Tenant, m.Scope.Tenant) && opens(req.who.claims.Workspace, m.Scope.Workspace) {
			machines = append(machines, m.ID)
		}
	}
	return fasthttp.StatusOK, &v1.SweepResponse{Success: true, Results: v1.SweepResults{
		Zombies: v1.SweptTasks{
			Success: true, ZombieCount: r.Zombies, TimedOutCount: r.TimedOut, RequeuedCount: r.Requeued, ReadyCount: r.Ready,
			DeletedCount: r.Removed,
		},
		StaleWorkers: v1.SweptWorkers{
			Success: true, DeletedCount: r.RemovedWorkers, MarkedOfflineCount: r.StaleWorkers, DrainedCount: r.DrainedWorkers,
			RecoveredCount: r.Recovered, AffectedMachineIDs: machines,
		},
	}}, nil
}

// opens reports whether a token for one half of a scope, or for all, is for this one.
func opens(own, half string) bool { return own == token.Wildcard || own == half }

// release answers POST /v1/system:release.
func (req *request) release() (int, any, error) {
	var body v1.ReleaseRequest
	scope, err := req.optional(&body)
	if err != nil {
		return 0, nil, err
	}
	var d durations
	lasts := d.positive("durationMs", body.DurationMs, time.Millisecond)
	if d.err != nil {
		return 0, nil, d.err
	}
	r, err := req.s.tracker.Release(req.context(), scope, lasts)
	if err != nil {
		return 0, nil, err
	}
	return fasthttp.StatusOK, &v1.ReleaseResponse{TasksReleased: r.Tasks, WorkersReleased: r.Workers, ReleasedUntil: v1.At(r.Until)}, nil
}

// system answers GET /v1/system.
func (req *request) system() (int, any, error) {
	if _, _, err := req.eventScope(); err != nil { // it is nobody's; a token that does not open what the query names is refused all the same
		return 0, nil, err
	}
	is, err := req.s.tracker.System(req.context())
	if err != nil {
		return 0, nil, err
	}
	v := v1.System{
		Time: v1.At(is.At), Replicas: make([]v1.SystemReplica, len(is.Replicas)), Shards: make([]v1.SystemShard, len(is.Shards)),
		Redis: make([]v1.SystemRedis, len(is.Nodes)), DifferingSettings: orEmpty(is.Differing),
		Brake:      v1.SystemBrake{Enabled: is.BrakeShare > 0, SharePct: is.BrakeShare, Held: is.Held},
		Reconciler: v1.SystemReconciler{RatePerSecond: is.ReconcileRate, ExaminedLastHour: is.Examined, RepairedLastHour: is.Repaired},
	}
	for i, r := range is.Replicas {
		v.Replicas[i] = v1.SystemReplica{ReplicaID: r.ID, Version: r.Version, Commit: orNull(r.Commit), Roles: orEmpty(r.Roles),
			Since: v1.At(r.Since), HeardAt: v1.At(r.Heard)}
	}
	for i, s := range is.Shards {
		v.Shards[i] = v1.SystemShard{Shard: s.Number, Sweeper: orNull(s.Sweeper), LagMs: s.Overdue.Milliseconds(),
			StoppedMs: s.Stopped.Milliseconds(), OutageCreditMs: s.OutageCredit.Milliseconds(), Recoveries: s.Recoveries, Events: s.Events,
			EventsAgeMs: s.EventsFor.Milliseconds()}
	}
	for i, n := range is.Nodes {
		v.Redis[i] = redisView(&n)
	}
	return fasthttp.StatusOK, &v, nil
}

func redisView(n *tracker.NodeHealth) v1.SystemRedis {
	v := v1.SystemRedis{
		Address: orNull(n.Address), Version: orNull(n.Version), Role: orNull(n.Role), Replicas: n.Replicas, MemoryBytes: n.Memory,
		MaxMemoryBytes: n.MaxMemory, MaxMemoryPolicy: orNull(n.Policy), AppendOnly: n.Append, LastSaveAt: v1.At(n.SavedAt),
		RoundTripMs: float64(n.RoundTrip.Microseconds()) / 1000, ClockOffsetMs: float64(n.ClockOffset.Microseconds()) / 1000,
	}
	if n.Err != nil {
		why := "it does not answer"
		v.Error = &why
	}
	return v
}
