package api

import (
	"github.com/valyala/fasthttp"

	"github.com/lubdub-io/lubdub/internal/judge"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
	"github.com/lubdub-io/lubdub/tracker"
)

// system answers GET /v1/system. What it shows is nobody's, but for what is found of the workers and queues of a scope; a token
// that does not open what the query names is refused all the same.
func (req *request) system() (int, any, error) {
	tenant, workspace, err := req.eventScope()
	if err != nil {
		return 0, nil, err
	}
	is, err := req.s.tracker.System(req.context())
	if err != nil {
		return 0, nil, err
	}
	v := systemView(is)
	v.Findings = judge.All(req.known(v, tracker.Scope{Tenant: tenant, Workspace: workspace}))
	v.Summary = judge.Summarise(v.Findings)
	return fasthttp.StatusOK, v, nil
}

// known is what the deployment is judged by. What cannot be read does not keep the rest from being told.
func (req *request) known(v *v1.System, scope tracker.Scope) judge.Known {
	k := judge.Known{System: v}
	_, health := req.s.standing()
	k.Health = &health
	if scope.Tenant != "" || scope.Workspace == "" {
		is, err := req.s.tracker.Stats(req.context(), scope)
		if err != nil {
			k.Unread = "the numbers of tasks, workers and beats cannot be read."
			return k
		}
		k.Stats = statsView(is, scope, judge.StepsLookedAt, false)
	}
	if scope.Tenant == "" || scope.Workspace == "" {
		return k // queues are named within a workspace only
	}
	lost, err := req.s.tracker.RecentlyLost(req.context(), scope)
	if err != nil {
		k.Unread = "the lost workers cannot be read."
	}
	if lost != nil {
		for _, w := range lost.Newest {
			v.RecentlyLost = append(v.RecentlyLost, lostView(w))
		}
		v.RecentlyLostTotal = lost.Total
	}
	queues, err := req.s.tracker.QueuesNow(req.context(), scope)
	if err != nil {
		k.Unread = "the queues cannot be read."
	}
	for _, q := range queues {
		k.Queues = append(k.Queues, queueView(scope, q))
	}
	return k
}

func lostView(w *tracker.Worker) v1.LostWorker {
	r := w.Recovery
	return v1.LostWorker{
		WorkerID: w.ID, Name: orNull(w.Name), MachineID: w.MachineID, Hostname: orNull(w.Hostname), Queue: w.Queue,
		LastHeartbeatAt: v1.At(w.LastHeartbeatAt), LostAt: v1.At(w.DeregisteredAt), Reason: string(w.EndReason),
		Attempts: r.Attempts, Requeued: r.Attempts - r.Failed, Failed: r.Failed - r.Exhausted, Exhausted: r.Exhausted,
		StaleCount24h: w.StaleCount, Flapping: w.Flapping, MachineFlapping: w.MachineFlapping,
	}
}

func systemView(is *tracker.System) *v1.System {
	v := &v1.System{
		Time: v1.At(is.At), Replicas: make([]v1.SystemReplica, len(is.Replicas)), Shards: make([]v1.SystemShard, len(is.Shards)),
		Redis: make([]v1.SystemRedis, len(is.Nodes)), DifferingSettings: orEmpty(is.Differing), RecentlyLost: []v1.LostWorker{},
		Brake:      v1.SystemBrake{Enabled: is.BrakeShare > 0, SharePct: is.BrakeShare, Held: is.Held},
		Reconciler: v1.SystemReconciler{RatePerSecond: is.ReconcileRate, ExaminedLastHour: is.Examined, RepairedLastHour: is.Repaired},
		Webhooks:   v1.SystemWebhooks{DroppedLastHour: is.Dropped},
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
		v.Redis[i] = RedisView(&n)
	}
	return v
}

// RedisView is a Redis server as the wire has it.
func RedisView(n *tracker.NodeHealth) v1.SystemRedis {
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
