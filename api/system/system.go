package system

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/lubdub-io/lubdub/api/convert"
	"github.com/lubdub-io/lubdub/api/httpapi"
	"github.com/lubdub-io/lubdub/api/token"
	"github.com/lubdub-io/lubdub/internal/judge"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/stats"
	"github.com/lubdub-io/lubdub/tracker/store"
)

// system answers GET /v1/system. The answer does not depend on the scope, except for the findings about its workers and queues; a token
// that does not allow the scope in the query is refused in any case.
func (h *Handlers) system(req *httpapi.Request) (int, any, error) {
	tenant, workspace, err := req.OpenScope()
	if err != nil {
		return 0, nil, err
	}
	began := time.Now()
	if nodes, responds := h.redisNow(req.Context()); !responds {
		return h.withoutRedis(req, nodes, httpapi.DefaultRetryAfter)
	}
	state := start(req.Context(), h.Stats.System)
	is, err := state.within(systemWait - time.Since(began))
	if err != nil {
		r := httpapi.RefusalOf(req.Route.Op, err)
		if r.Status != fasthttp.StatusServiceUnavailable {
			return 0, nil, r
		}
		nodes, responds := h.nodesNow(req.Context(), min(respondWait, longestWait-time.Since(began)))
		if !responds {
			return h.withoutRedis(req, nodes, r.RetryAfter)
		}
		if is, err = state.await(); err != nil {
			if down := slices.DeleteFunc(nodes, func(n store.NodeHealth) bool { return n.Err == nil }); len(down) > 0 {
				return h.withoutRedis(req, down, r.RetryAfter)
			}
			return 0, nil, err // this host or Redis is overloaded
		}
	}
	v := h.systemView(is)
	k := h.known(req, v, model.Scope{Tenant: tenant, Workspace: workspace})
	k.OutageEnded = outageEnded(is)
	for _, scope := range is.Braked {
		if (tenant == "" || scope.Tenant == tenant) && (workspace == "" || scope.Workspace == workspace) {
			k.Braked = append(k.Braked, judge.Scope(scope))
		}
	}
	v.Findings = judge.All(k)
	v.Summary = judge.Summarise(v.Findings)
	return fasthttp.StatusOK, v, nil
}

// outageEnded returns how long ago the newest outage of any shard ended.
func outageEnded(is *stats.System) (ago time.Duration) {
	for _, s := range is.Shards {
		if s.OutageCredit > 0 && (ago == 0 || s.OutageEnded < ago) {
			ago = s.OutageEnded
		}
	}
	return ago
}

// While no Redis server responds, GET /v1/system answers within respondWait, or within longestWait if the servers have stopped just now:
// the dashboard waits for three seconds. While one responds, it waits for the data as long as the store does.
const (
	respondWait = 1200 * time.Millisecond
	systemWait  = 2 * time.Second
	longestWait = 2800 * time.Millisecond
)

// pending is a call that continues without its callers.
type pending[T any] struct {
	done  chan struct{}
	value T
	err   error
}

func start[T any](ctx context.Context, call func(context.Context) (T, error)) *pending[T] {
	p := &pending[T]{done: make(chan struct{})}
	go func() {
		defer close(p.done)
		p.value, p.err = call(ctx)
	}()
	return p
}

func (p *pending[T]) await() (T, error) {
	<-p.done
	return p.value, p.err
}

// within is await for a limited time.
func (p *pending[T]) within(wait time.Duration) (T, error) {
	over := time.NewTimer(wait)
	defer over.Stop()
	select {
	case <-p.done:
		return p.value, p.err
	case <-over.C:
		var none T
		return none, context.DeadlineExceeded
	}
}

// redisNow checks whether the Redis servers respond when the server's own check has failed, since the cached state may be out of date.
// It returns false if none responds.
func (h *Handlers) redisNow(ctx context.Context) (nodes []store.NodeHealth, responds bool) {
	var evicts *store.EvictionError
	began := time.Now()
	if err := h.ready.await(); err == nil || errors.As(err, &evicts) {
		return nil, true
	}
	return h.nodesNow(ctx, respondWait-time.Since(began))
}

// nodesNow asks the Redis servers. It returns false if none responds in time.
func (h *Handlers) nodesNow(ctx context.Context, wait time.Duration) (nodes []store.NodeHealth, responds bool) {
	nodes, err := start(ctx, func(ctx context.Context) ([]store.NodeHealth, error) { return h.Store.NodesHealth(ctx), nil }).within(wait)
	return nodes, err == nil && slices.ContainsFunc(nodes, func(n store.NodeHealth) bool { return n.Err == nil })
}

// withoutRedis answers with what is known while no Redis responds.
func (h *Handlers) withoutRedis(req *httpapi.Request, nodes []store.NodeHealth, retryAfter time.Duration) (int, any, error) {
	v := v1.SystemUnavailable{Error: v1.CodeStoreUnavailable, System: *h.systemView(&stats.System{At: req.Now, Nodes: nodes})}
	v.Findings, v.Summary = judge.NoRedis(v.Redis)
	v.Message = v.Summary.Message
	req.Ctx.Response.Header.Set(fasthttp.HeaderRetryAfter, strconv.Itoa(int((retryAfter+time.Second-1)/time.Second)))
	return fasthttp.StatusServiceUnavailable, v, nil
}

// known returns the data for the evaluation of the deployment. If a part cannot be read, the rest is still used.
func (h *Handlers) known(req *httpapi.Request, v *v1.System, scope model.Scope) judge.Known {
	k := judge.Known{System: v, Reader: reader(req)}
	_, health := h.state()
	k.Health = &health
	if scope.Tenant != "" || scope.Workspace == "" {
		is, err := h.Stats.Get(req.Context(), scope)
		if err != nil {
			k.Unread = "the numbers of tasks, workers and beats cannot be read."
			return k
		}
		k.Stats = statsView(is, scope, judge.StepsLookedAt, false)
	}
	if scope.Tenant == "" || scope.Workspace == "" {
		return k // queues have names only within a workspace
	}
	lost, err := h.Stats.RecentlyLost(req.Context(), scope)
	if err != nil {
		k.Unread = "the lost workers cannot be read."
	}
	if lost != nil {
		for _, w := range lost.Newest {
			v.RecentlyLost = append(v.RecentlyLost, lostView(w))
		}
		v.RecentlyLostTotal = lost.Total
	}
	poison, err := h.Stats.PoisonTasks(req.Context(), scope)
	if err != nil {
		k.Unread = "the tasks that lost workers cannot be read."
	}
	for _, p := range poison {
		v.PoisonTasks = append(v.PoisonTasks, poisonView(&p))
	}
	failures, err := h.Stats.RecentFailures(req.Context(), scope)
	if err != nil {
		k.Unread = "the failures that workers reported cannot be read."
	} else {
		v.RecentFailures = failuresView(failures)
	}
	queues, err := h.Stats.QueuesNow(req.Context(), scope)
	if err != nil {
		k.Unread = "the queues cannot be read."
	}
	for _, q := range queues {
		k.Queues = append(k.Queues, convert.Queue(scope, q))
	}
	return k
}

// reader returns what the request's token allows.
func reader(req *httpapi.Request) judge.Reader {
	c := req.Caller.Claims
	return judge.Reader{
		AllScopes: c.Tenant == token.Wildcard && c.Workspace == token.Wildcard,
		Operates:  httpapi.Permitted[c.Role]&httpapi.MayOperate != 0, Cancels: httpapi.Permitted[c.Role]&httpapi.MayCancel != 0,
	}
}

func lostView(w *model.Worker) v1.LostWorker {
	r := w.Recovery
	return v1.LostWorker{
		WorkerID: w.ID, Name: convert.OrNull(w.Name), MachineID: w.MachineID, Hostname: convert.OrNull(w.Hostname), Queue: w.Queue,
		LastHeartbeatAt: v1.At(w.LastHeartbeatAt), LostAt: v1.At(w.DeregisteredAt), Reason: string(w.EndReason),
		Attempts: r.Attempts, Requeued: r.Attempts - r.Failed, Failed: r.Failed - r.Exhausted, Exhausted: r.Exhausted,
		StaleCount24h: w.StaleCount, Flapping: w.Flapping, MachineFlapping: w.MachineFlapping,
	}
}

func poisonView(p *stats.PoisonTask) v1.PoisonTask {
	t := p.Task
	v := v1.PoisonTask{
		TaskID: t.ID, Queue: convert.OrNull(t.Queue), Type: convert.OrNull(t.Type), State: v1.State(t.State), LastLostAt: v1.At(p.Last),
		Workers: []v1.LostWorker{}, Errors: []v1.ErrorGroup{},
	}
	for _, w := range p.Workers {
		v.Workers = append(v.Workers, lostView(w))
	}
	for i := range t.History {
		text := endOf(&t.History[i])
		at := slices.IndexFunc(v.Errors, func(g v1.ErrorGroup) bool { return g.Error == text })
		if at < 0 {
			at = len(v.Errors)
			v.Errors = append(v.Errors, v1.ErrorGroup{Error: text})
		}
		v.Errors[at].Count++
	}
	slices.SortStableFunc(v.Errors, func(a, b v1.ErrorGroup) int { return cmp.Compare(b.Count, a.Count) })
	return v
}

func failuresView(f *stats.Failures) v1.Failures {
	v := v1.Failures{Total: f.Total, LastFiveMinutes: f.Recent, Succeeded: f.Succeeded, Truncated: f.Truncated, Groups: []v1.FailureGroup{}}
	for _, g := range f.Groups {
		of := v1.FailureGroup{
			Queue: convert.OrNull(g.Queue), Type: convert.OrNull(g.Type), Error: g.Error, Count: g.Count, LastFiveMinutes: g.Recent,
			FirstAt: v1.At(g.First), LastAt: v1.At(g.Last), TaskID: g.TaskID, Versions: append([]string{}, g.Versions...),
		}
		if s := g.Suspect; s != nil {
			of.SuspectVersion = &v1.SuspectVersion{Version: s.Version, Workers: s.Workers, Of: s.Among}
		}
		v.Groups = append(v.Groups, of)
	}
	return v
}

// longestError is how many bytes of a worker's message identify a group of errors.
const longestError = 200

// endOf describes how an attempt ended, in the same words for attempts that ended for the same reason.
func endOf(h *model.HistoryEntry) string {
	var e v1.TaskError
	switch {
	case h.Evidence != nil && h.Evidence.WorkerReason != "":
		return h.Outcome + ": " + string(h.Reason) + " (" + string(h.Evidence.WorkerReason) + ")"
	case len(h.Error) > 0 && json.Unmarshal(h.Error, &e) == nil && e.Category != "":
		message, _, _ := strings.Cut(e.Message, "\n")
		return strings.ToValidUTF8(h.Outcome+": "+string(e.Category)+" "+message[:min(len(message), longestError)], "")
	}
	return h.Outcome + ": " + string(h.Reason)
}

func (h *Handlers) systemView(is *stats.System) *v1.System {
	v := &v1.System{
		Time: v1.At(is.At), Replicas: make([]v1.SystemReplica, len(is.Replicas)), Shards: make([]v1.SystemShard, len(is.Shards)),
		Redis: make([]v1.SystemRedis, len(is.Nodes)), DifferingSettings: convert.OrEmpty(is.Differing), RecentlyLost: []v1.LostWorker{},
		PoisonTasks: []v1.PoisonTask{}, RecentFailures: v1.Failures{Groups: []v1.FailureGroup{}}, LogsURL: convert.OrNull(h.LogsURL),
		Brake:      v1.SystemBrake{Enabled: is.BrakeShare > 0, SharePct: is.BrakeShare, Held: is.Held},
		Reconciler: v1.SystemReconciler{RatePerSecond: is.ReconcileRate, ExaminedLastHour: is.Examined, RepairedLastHour: is.Repaired},
		Webhooks:   v1.SystemWebhooks{DroppedLastHour: is.Dropped},
	}
	for i, r := range is.Replicas {
		v.Replicas[i] = v1.SystemReplica{ReplicaID: r.ID, Version: r.Version, Commit: convert.OrNull(r.Commit), Roles: convert.OrEmpty(r.Roles),
			Since: v1.At(r.Since), HeardAt: v1.At(r.LastReport)}
	}
	for i, s := range is.Shards {
		v.Shards[i] = v1.SystemShard{Shard: s.Number, Sweeper: convert.OrNull(s.Sweeper), LagMs: s.Overdue.Milliseconds(),
			StoppedMs: s.Stopped.Milliseconds(), OutageCreditMs: s.OutageCredit.Milliseconds(), Recoveries: s.Recoveries, Events: s.Events,
			EventsAgeMs: s.EventsFor.Milliseconds()}
	}
	for i, n := range is.Nodes {
		v.Redis[i] = RedisView(&n)
	}
	return v
}

// RedisView converts a Redis server to its wire type.
func RedisView(n *store.NodeHealth) v1.SystemRedis {
	v := v1.SystemRedis{
		Address: convert.OrNull(n.Address), Version: convert.OrNull(n.Version), Role: convert.OrNull(n.Role), Replicas: n.Replicas,
		MemoryBytes: n.Memory, MaxMemoryBytes: n.MaxMemory, MaxMemoryPolicy: convert.OrNull(n.Policy), AppendOnly: n.Append,
		LastSaveAt: v1.At(n.SavedAt), RoundTripMs: float64(n.RoundTrip.Microseconds()) / 1000,
		ClockOffsetMs: float64(n.ClockOffset.Microseconds()) / 1000,
	}
	if n.Err != nil {
		why := "it does not answer"
		v.Error = &why
	}
	return v
}
