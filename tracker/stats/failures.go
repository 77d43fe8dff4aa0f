package stats

import (
	"cmp"
	"context"
	"math"
	"slices"
	"time"

	"github.com/lubdub-io/lubdub/tracker/events"
	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/schema"
	"github.com/lubdub-io/lubdub/tracker/store"
	"github.com/lubdub-io/lubdub/tracker/workers"
)

const (
	// MaxFailureGroups is how many groups of failures a result lists.
	MaxFailureGroups = 20
	// justNow is the period of recent failures.
	justNow = 5 * time.Minute
	// chance is the probability below which it is no accident that all failures of a group are of one version.
	chance = 0.01
	// maxVersions is how many versions a group lists.
	maxVersions = 5
)

// Failures are the attempts of a workspace that workers reported as failed in the last hour.
type Failures struct {
	Total     int
	Truncated bool           // there are more: the oldest are left out
	Recent    int            // those of the last five minutes
	Succeeded int            // tasks that succeeded in the last five minutes
	Groups    []FailureGroup // most recent failures first, then most failures; MaxFailureGroups at most
}

// FailureGroup are failures of one queue and type of task with similar errors.
type FailureGroup struct {
	Queue, Type string // "": none
	Error       string // as schema.ErrorGroup returns it
	Count       int
	Recent      int // those of the last five minutes
	First, Last time.Time
	TaskID      string   // of the last
	Versions    []string // of the workers, most failures first, 5 at most
	Suspect     *Suspect // nil: none

	failing int  // tasks among the recent failures
	unknown bool // the version of some is not known
}

// Suspect is the version of workers that all recent failures of a group are of, although few of those that could run its tasks have it.
type Suspect struct {
	Version        string
	Workers, Among int // workers of the version, and all that could run the tasks; OFFLINE ones are not counted
}

// RecentFailures returns the failures of a workspace that workers reported in the last hour. The result may be a second old and is
// shared: the caller must not change it.
func (s *Service) RecentFailures(ctx context.Context, scope model.Scope) (*Failures, error) {
	ctx = s.store.Within(ctx, 0)
	found, err := answer(ctx, s.snapshots, "failures "+scope.String(), func() (*Failures, error) { return s.readFailures(ctx, scope) })
	if err != nil {
		return nil, s.refused(err)
	}
	return found, nil
}

func (s *Service) readFailures(ctx context.Context, scope model.Scope) (*Failures, error) {
	re, err := s.store.Do(ctx, "stats", s.fleetCall(nil))
	if err != nil {
		return nil, err
	}
	now := readFleet(re).now
	shards := len(s.store.Keys)
	calls := make([]*store.Call, 2*shards)
	for shard := range shards {
		calls[shard] = s.failuresCall(shard, scope, now.Add(-recently))
		calls[shards+shard] = s.succeededCall(shard, scope, now.Add(-justNow))
	}
	s.store.DoBulk(ctx, "stats", calls)
	if err := store.FirstError(calls); err != nil {
		return nil, err
	}
	found := &Failures{}
	var all []schema.Verdict
	for i, c := range calls {
		entries, total := readNewest(c.Reply)
		if i >= shards {
			found.Succeeded += total
			continue
		}
		found.Total += total
		found.Truncated = found.Truncated || total >= schema.MaxFailures
		for _, text := range entries {
			if v, ok := schema.ParseVerdict(text); ok {
				all = append(all, v)
			}
		}
	}
	if len(all) == 0 {
		return found, nil
	}
	hosts, err := s.events.Hosts(ctx, "stats", func(yield func(events.WorkerName) bool) {
		for _, v := range all {
			if !yield(events.WorkerName{Scope: scope, ID: v.WorkerID}) {
				return
			}
		}
	})
	if err != nil {
		return nil, err
	}
	version := func(v *schema.Verdict) string { return hosts[events.WorkerName{Scope: scope, ID: v.WorkerID}].Version }
	found.Groups = groupFailures(all, now.Add(-justNow), version)
	for _, g := range found.Groups {
		found.Recent += g.Recent
	}
	found.Groups = found.Groups[:min(len(found.Groups), MaxFailureGroups)]
	found.Groups[0].Suspect = s.suspect(ctx, scope, &found.Groups[0])
	return found, nil
}

// groupFailures groups failures by queue, type and error.
func groupFailures(all []schema.Verdict, recent time.Time, version func(*schema.Verdict) string) (found []FailureGroup) {
	slices.SortFunc(all, func(a, b schema.Verdict) int { return b.At.Compare(a.At) })
	type key struct{ queue, kind, err string }
	at, versions, tasks := map[key]int{}, []map[string]int{}, []map[string]bool{}
	for i := range all {
		v := &all[i]
		k := key{v.Queue, v.Type, v.Error}
		n, ok := at[k]
		if !ok {
			n = len(found)
			at[k] = n
			found = append(found, FailureGroup{Queue: v.Queue, Type: v.Type, Error: v.Error, Last: v.At, TaskID: v.TaskID})
			versions, tasks = append(versions, map[string]int{}), append(tasks, map[string]bool{})
		}
		g := &found[n]
		g.Count++
		g.First = v.At
		if !v.At.Before(recent) {
			g.Recent++
			tasks[n][v.TaskID] = true
		}
		if text := version(v); text != "" {
			versions[n][text]++
		} else {
			g.unknown = true
		}
	}
	for n := range found {
		found[n].Versions, found[n].failing = mostOf(versions[n]), len(tasks[n])
	}
	slices.SortStableFunc(found, func(a, b FailureGroup) int {
		return cmp.Or(cmp.Compare(b.Recent, a.Recent), cmp.Compare(b.Count, a.Count))
	})
	return found
}

// mostOf returns the names with the highest counts, the highest first.
func mostOf(counts map[string]int) (names []string) {
	for name := range counts {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int { return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b)) })
	return names[:min(len(names), maxVersions)]
}

// tasksToSuspect is how many tasks must fail before a version is suspected: one that is retried proves nothing.
const tasksToSuspect = 3

// suspect returns the suspected version of a group: all its failures are of one version, which so few of the workers for these tasks have
// that chance is unlikely. It returns nil if no version is suspected or the workers cannot be read: the failures are shown without it.
func (s *Service) suspect(ctx context.Context, scope model.Scope, g *FailureGroup) *Suspect {
	if len(g.Versions) != 1 || g.unknown || g.failing < tasksToSuspect {
		return nil
	}
	f := workers.WorkerFilter{
		Scope: scope, Queue: g.Queue, Type: g.Type, Statuses: []model.WorkerStatus{model.Online, model.Draining}, PageSize: 1,
	}
	all, err := s.workers.List(ctx, f)
	if err != nil {
		return nil
	}
	f.Version = g.Versions[0]
	of, err := s.workers.List(ctx, f)
	if err != nil || of.Total == 0 || math.Pow(float64(of.Total)/float64(all.Total), float64(g.failing)) >= chance {
		return nil
	}
	return &Suspect{Version: g.Versions[0], Workers: of.Total, Among: all.Total}
}
