package stats

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/lubdub-io/lubdub/tracker/events"
	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/schema"
	"github.com/lubdub-io/lubdub/tracker/store"
)

// VerdictQuery selects verdicts on attempts of a scope, counted by groups. Zero fields do not filter.
type VerdictQuery struct {
	Scope  model.Scope
	Since  time.Duration // how far back
	By     []string      // of VerdictGroups, or ByLabel and the name of a label
	Reason model.Reason
	Queue  string
	Type   string
}

// VerdictGroups are the fields by which verdicts can be grouped.
var VerdictGroups = []string{"machineId", "version", "type", "queue", "reason", "workerId"}

// ByLabel is the prefix of a group by a label of the tasks, such as label:team.
const ByLabel = "label:"

// VerdictGroup is the number of verdicts with these values.
type VerdictGroup struct {
	Of    []string // in the order of VerdictQuery.By; "": not set, or no longer known
	Count int
	Last  time.Time
}

// Verdicts is the result of a VerdictQuery.
type Verdicts struct {
	Since     time.Time
	Total     int
	Truncated bool           // there are more than MaxVerdicts, or MaxLabelled with a label: the oldest are left out
	Groups    []VerdictGroup // most first, 100 at most
}

const (
	MaxVerdicts      = 100_000 // in one result
	MaxLabelled      = 10_000  // in one result that is grouped by a label, since the tasks are read
	maxVerdictGroups = 100
)

// Verdicts counts verdicts. The result may be a second old, or fifty times as old as its computation took if that is longer, and
// is shared: the caller must not change it. Queries with one group each share one read.
func (s *Service) Verdicts(ctx context.Context, q VerdictQuery) (*Verdicts, error) {
	ctx = s.store.Within(ctx, 0)
	groupings, of := [][]string{q.By}, 0
	if i := slices.Index(VerdictGroups, strings.Join(q.By, ",")); i >= 0 {
		groupings, of = singleGroups, i
	}
	question := q
	question.By = groupings[0]
	name, _ := json.Marshal(question) // plain values
	compute := func() ([]*Verdicts, error) { return s.countVerdicts(ctx, &q, groupings) }
	found, err := answer(ctx, s.snapshots, "verdicts "+string(name), compute)
	if err != nil {
		return nil, s.refused(err)
	}
	return found[of], nil
}

// singleGroups are all groupings by a single field.
var singleGroups = func() (all [][]string) {
	for _, by := range VerdictGroups {
		all = append(all, []string{by})
	}
	return all
}()

// countVerdicts reads once and counts by each grouping.
func (s *Service) countVerdicts(ctx context.Context, q *VerdictQuery, groupings [][]string) (all []*Verdicts, err error) {
	re, err := s.store.Do(ctx, "stats", s.fleetCall(nil))
	if err != nil {
		return nil, err
	}
	since := readFleet(re).now.Add(-q.Since)
	entries, truncated, err := s.verdictsSince(ctx, q, since)
	if err != nil {
		return nil, err
	}
	var hosts map[events.WorkerName]events.Host
	named := func(by []string) bool { return slices.Contains(by, "machineId") || slices.Contains(by, "version") }
	if slices.ContainsFunc(groupings, named) {
		hosts, err = s.events.Hosts(ctx, "stats", func(yield func(events.WorkerName) bool) {
			for _, v := range entries {
				if !yield(events.WorkerName{Scope: q.Scope, ID: v.WorkerID}) {
					return
				}
			}
		})
		if err != nil {
			return nil, err
		}
	}
	var labels map[string]map[string]string
	if slices.ContainsFunc(q.By, func(name string) bool { return strings.HasPrefix(name, ByLabel) }) {
		if len(entries) > MaxLabelled {
			slices.SortFunc(entries, func(a, b schema.Verdict) int { return b.At.Compare(a.At) })
			entries, truncated = entries[:MaxLabelled], true
		}
		if labels, err = s.labelsOf(ctx, q.Scope, entries); err != nil {
			return nil, err
		}
	}
	for _, by := range groupings {
		all = append(all, &Verdicts{
			Since: since, Total: len(entries), Truncated: truncated, Groups: group(q.Scope, entries, hosts, by, labels)})
	}
	return all, nil
}

// labelsOf reads the labels of the tasks of verdicts, each task once.
func (s *Service) labelsOf(ctx context.Context, scope model.Scope, entries []schema.Verdict) (map[string]map[string]string, error) {
	ids := make([]string, len(entries))
	for i, v := range entries {
		ids[i] = v.TaskID
	}
	slices.Sort(ids)
	return s.opts.LabelsOf(ctx, "stats", scope, slices.Compact(ids))
}

// group counts entries with equal values, most first; labels are those of their tasks if a label is requested.
func group(
	scope model.Scope, entries []schema.Verdict, hosts map[events.WorkerName]events.Host, by []string, labels map[string]map[string]string,
) (found []VerdictGroup) {
	groups := map[string]*VerdictGroup{}
	for _, v := range entries {
		of := make([]string, len(by))
		for i, name := range by {
			if label, ok := strings.CutPrefix(name, ByLabel); ok {
				of[i] = labels[v.TaskID][label]
			} else {
				of[i] = valueOf(&v, hosts[events.WorkerName{Scope: scope, ID: v.WorkerID}], name)
			}
		}
		key := strings.Join(of, "\t")
		if groups[key] == nil {
			groups[key] = &VerdictGroup{Of: of}
		}
		g := groups[key]
		g.Count++
		if v.At.After(g.Last) {
			g.Last = v.At
		}
	}
	for _, g := range groups {
		found = append(found, *g)
	}
	slices.SortFunc(found, func(a, b VerdictGroup) int { return cmp.Or(cmp.Compare(b.Count, a.Count), slices.Compare(a.Of, b.Of)) })
	return found[:min(len(found), maxVerdictGroups)]
}

const never = "9999999999999" // a time as in entries, after all others

// verdictsSince reads the verdicts of every shard page by page, latest first.
func (s *Service) verdictsSince(ctx context.Context, q *VerdictQuery, since time.Time) (found []schema.Verdict, truncated bool, err error) {
	before, read := map[int]string{}, 0
	for shard := range s.store.Keys {
		before[shard] = never
	}
	for len(before) > 0 && read < MaxVerdicts {
		var calls []*store.Call
		for shard, name := range before {
			calls = append(calls, s.verdictsCall(shard, q.Scope, since, name))
		}
		s.store.DoBulk(ctx, "stats", calls)
		if err := store.FirstError(calls); err != nil {
			return nil, false, err
		}
		clear(before)
		for _, c := range calls {
			page := readVerdicts(c.Reply)
			if read += len(page); len(page) == verdictsAtOnce {
				before[c.Shard] = page[len(page)-1]
			}
			for _, text := range page {
				v, ok := schema.ParseVerdict(text)
				if ok && (q.Reason == "" || v.Reason == q.Reason) && (q.Queue == "" || v.Queue == q.Queue) && (q.Type == "" || v.Type == q.Type) {
					found = append(found, v)
				}
			}
		}
	}
	return found, len(before) > 0, nil
}

// valueOf returns the value by which a verdict is grouped.
func valueOf(v *schema.Verdict, h events.Host, by string) string {
	switch by {
	case "type":
		return v.Type
	case "queue":
		return v.Queue
	case "reason":
		return string(v.Reason)
	case "workerId":
		return v.WorkerID
	}
	if by == "version" {
		return h.Version
	}
	return h.Machine
}
