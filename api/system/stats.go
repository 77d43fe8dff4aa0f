package system

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/lubdub-io/lubdub/api/convert"
	"github.com/lubdub-io/lubdub/api/httpapi"
	"github.com/lubdub-io/lubdub/api/token"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/stats"
)

// stats answers GET /v1/stats.
func (h *Handlers) stats(req *httpapi.Request) (int, any, error) {
	tenant, workspace, err := req.OpenScope()
	if err != nil {
		return 0, nil, err
	}
	if tenant == "" && workspace != "" {
		return 0, nil, httpapi.InvalidField("tenantId", "tenantId is missing; workspaceId alone names no scope")
	}
	newest, err := newestSteps(req)
	if err != nil {
		return 0, nil, err
	}
	scope := model.Scope{Tenant: tenant, Workspace: workspace}
	is, err := h.Stats.Get(req.Context(), scope)
	if err != nil {
		return 0, nil, err
	}
	all := req.Caller.Claims.Tenant == token.Wildcard && req.Caller.Claims.Workspace == token.Wildcard
	return fasthttp.StatusOK, statsView(is, scope, newest, all), nil
}

// statsView returns so many steps of the series, with the levels of each step if they are allowed or concern only this scope.
func statsView(is *stats.Stats, scope model.Scope, newest int, levels bool) *v1.Stats {
	v := &v1.Stats{
		Time: v1.At(is.At), TenantID: convert.OrNull(scope.Tenant), WorkspaceID: convert.OrNull(scope.Workspace), Levels: *levelsView(is.Counts),
		LastHour: v1.StatsCounts{Refused: map[string]int64{}, Verdicts: map[string]int64{}, Claims: map[string]int64{}},
		Series:   v1.StatsSeries{StepMs: stats.StepLength.Milliseconds(), Steps: []v1.StatsStep{}},
	}
	for i, step := range is.Steps {
		if i >= len(is.Steps)-newest {
			v.Series.Steps = append(v.Series.Steps, stepView(step, levels || step.Levels != nil && step.Levels.Only == scope.String()))
		}
		addStep(&v.LastHour, step)
	}
	if n := len(is.Steps); n > 0 {
		v.Rates = ratesView(is.Steps[n-1])
	}
	if g := is.Gaps; g.Samples > 0 {
		v.BeatGapRatio = &v1.BeatGapRatio{Kind: g.Kind, P50: g.P50, P99: g.P99, Max: g.Most, Samples: g.Samples}
	}
	return v
}

// newestSteps returns how many steps of the series are requested.
func newestSteps(req *httpapi.Request) (int, error) {
	if !req.Query.Has("steps") {
		return stats.MaxSteps, nil
	}
	text := req.Query.Get("steps")
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > stats.MaxSteps {
		return 0, httpapi.InvalidField("steps",
			fmt.Sprintf("steps is %q; use 1 to %d, or leave it away for all", httpapi.Clip(text), stats.MaxSteps))
	}
	return n, nil
}

func levelsView(c *stats.Counts) *v1.Levels {
	l := &v1.Levels{
		Tasks: map[string]int{}, OldestOverdueMs: c.OldestOverdue.Milliseconds(),
		Workers: v1.WorkerLevels{
			Online: c.Workers[model.Online], Draining: c.Workers[model.Draining], Offline: c.Workers[model.Offline],
			Fresh: c.Liveness[model.Fresh], Late: c.Liveness[model.Late], Lost: c.Liveness[model.Lost],
		},
		Machines: v1.MachineCounts{
			Online: c.Machines[model.Online], Draining: c.Machines[model.Draining], Offline: c.Machines[model.Offline],
		},
	}
	for _, state := range model.States {
		l.Tasks[string(state)] = c.Tasks[state]
	}
	return l
}

// stepView converts a step to its wire type, with its levels if they may be shown.
func stepView(s *stats.Step, levels bool) v1.StatsStep {
	v := v1.StatsStep{
		At: v1.At(s.Began), Replicas: s.Replicas, SweepLagMs: s.SweepLag.Milliseconds(), BeatP99Ms: inMillis(s.BeatP99),
		StatsCounts: v1.StatsCounts{Beats: s.Beats, Refused: s.Refused, Verdicts: s.Verdicts, Claims: s.Claims, ClaimedTasks: s.Claimed},
	}
	if levels && s.Levels != nil {
		v.Levels = levelsView(s.Levels)
	}
	return v
}

// inMillis returns null for a zero duration.
func inMillis(d time.Duration) *float64 {
	if d == 0 {
		return nil
	}
	ms := float64(d.Microseconds()) / 1000
	return &ms
}

func addStep(to *v1.StatsCounts, s *stats.Step) {
	to.Beats += s.Beats
	to.ClaimedTasks += s.Claimed
	for _, of := range []struct{ to, from map[string]int64 }{{to.Refused, s.Refused}, {to.Verdicts, s.Verdicts}, {to.Claims, s.Claims}} {
		for name, n := range of.from {
			of.to[name] += n
		}
	}
}

func ratesView(s *stats.Step) v1.StatsRates {
	rate := func(n int64) float64 { return float64(n) / stats.StepLength.Seconds() }
	sum := func(of map[string]int64) (n int64) {
		for _, part := range of {
			n += part
		}
		return n
	}
	return v1.StatsRates{
		BeatsPerSecond: rate(s.Beats), RefusedPerSecond: rate(sum(s.Refused)), ClaimsPerSecond: rate(sum(s.Claims)),
		ClaimedPerSecond: rate(s.Claimed), VerdictsPerSecond: rate(sum(s.Verdicts)),
		SweepLagMs: s.SweepLag.Milliseconds(), BeatP99Ms: inMillis(s.BeatP99),
	}
}

// Limits of the period over which verdicts are counted.
const (
	defaultVerdictsMs = int64(time.Hour / time.Millisecond)
	maxVerdictsMs     = int64(365 * 24 * time.Hour / time.Millisecond)
)

// verdicts answers GET /v1/stats/verdicts.
func (h *Handlers) verdicts(req *httpapi.Request) (int, any, error) {
	scope, err := req.Scope("", "")
	if err != nil {
		return 0, nil, err
	}
	p := httpapi.Parameters{Values: req.Query}
	q := stats.VerdictQuery{
		Scope: scope, By: groupsOf(&p), Reason: httpapi.WordOf(&p, "reason", model.Reasons...),
		Queue: p.ID("queue"), Type: p.ID("type"),
	}
	since := defaultVerdictsMs
	if text := p.Get("sinceMs"); p.Has("sinceMs") {
		if since, err = strconv.ParseInt(text, 10, 64); err != nil || since < 1 || since > maxVerdictsMs {
			p.Refuse(httpapi.InvalidField("sinceMs", fmt.Sprintf("sinceMs is %q; use milliseconds from 1 to %d", httpapi.Clip(text), maxVerdictsMs)))
		}
	}
	if p.Err != nil {
		return 0, nil, p.Err
	}
	q.Since = time.Duration(since) * time.Millisecond
	found, err := h.Stats.Verdicts(req.Context(), q)
	if err != nil {
		return 0, nil, err
	}
	v := v1.VerdictCounts{Since: v1.At(found.Since), Total: found.Total, Truncated: found.Truncated,
		Groups: make([]v1.VerdictGroup, len(found.Groups))}
	for i, g := range found.Groups {
		of := &v.Groups[i]
		of.Count, of.LastAt = g.Count, v1.At(g.Last)
		for name, field := range map[string]**string{"machineId": &of.MachineID, "version": &of.Version, "type": &of.Type, "queue": &of.Queue,
			"reason": &of.Reason, "workerId": &of.WorkerID} {
			if at := slices.Index(q.By, name); at >= 0 {
				*field = &g.Of[at]
			}
		}
		for at, name := range q.By {
			if label, ok := strings.CutPrefix(name, stats.ByLabel); ok {
				if of.Labels == nil {
					of.Labels = map[string]string{}
				}
				of.Labels[label] = g.Of[at]
			}
		}
	}
	return fasthttp.StatusOK, &v, nil
}

// groupsOf returns the keys to group verdicts by: words, and labels as label:<name>.
func groupsOf(p *httpapi.Parameters) []string {
	words := slices.Clone(stats.VerdictGroups)
	for _, name := range strings.Split(p.Get("by"), ",") {
		if label, ok := strings.CutPrefix(name, stats.ByLabel); ok && model.ValidLabelKey(label) {
			words = append(words, name)
		}
	}
	return httpapi.WordsOf(p, "by", words...)
}

// scopes answers GET /v1/scopes. Only a token for several scopes may list them.
func (h *Handlers) scopes(req *httpapi.Request) (int, any, error) {
	p := httpapi.Parameters{Values: req.Query}
	f := stats.ScopeFilter{Descending: p.Descending()}
	claims := req.Caller.Claims
	switch {
	case claims.Workspace != token.Wildcard:
		return 0, nil, httpapi.Forbidden("This token is valid for one workspace; to list workspaces, use a token whose workspace is *")
	case claims.Tenant != token.Wildcard:
		f.Tenant = claims.Tenant
	}
	if req.Query.Has("tenantId") {
		tenant, err := req.ScopePart("tenantId", "", claims.Tenant)
		if err != nil {
			return 0, nil, err
		}
		f.Tenant = tenant
	}
	if req.Query.Has("workspaceId") {
		return 0, nil, httpapi.InvalidField("workspaceId", "workspaceId is not a parameter of this path; it lists workspaces")
	}
	paged := f
	if paged.PageSize, paged.After = p.Page(f); p.Err != nil {
		return 0, nil, p.Err
	}
	if f.Tenant != "" {
		if full := req.TakeCall(f.Tenant); full != nil {
			return 0, nil, full
		}
	}
	page, err := h.Stats.Scopes(req.Context(), paged)
	if err != nil {
		return 0, nil, err
	}
	list := v1.ScopeList{Scopes: make([]v1.Scope, len(page.Scopes)), NextPageToken: httpapi.PageToken(f, page.Next)}
	for i, s := range page.Scopes {
		list.Scopes[i] = v1.Scope{TenantID: s.Tenant, WorkspaceID: s.Workspace}
	}
	return fasthttp.StatusOK, &list, nil
}
