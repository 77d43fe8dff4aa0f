package stats

import (
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// The counters of a step are those of /metrics, under names of this package; the label's value follows a colon.
const (
	beatsName    = "beats"
	refusedName  = "refused:"
	verdictsName = "verdicts:"
	claimsName   = "claims:"
	claimedName  = "claimed"
	examinedName = "examined"
	repairedName = "repaired"
	droppedName  = "dropped"
	tookName     = "took:" // heartbeats that took up to that many seconds, without those below the previous bound
	gapsName     = "gap:"  // gaps between heartbeats of tasks up to that part of their timeouts, likewise
	workerGaps   = "workergap:"
)

// counters are the metric families that are read, with the label that is kept of each.
var counters = map[string]struct{ name, label string }{
	"lubdub_http_beats_accepted_total": {beatsName, ""},
	"lubdub_http_beats_refused_total":  {refusedName, "code"},
	"lubdub_verdicts_total":            {verdictsName, "reason"},
	"lubdub_claims_total":              {claimsName, "result"},
	"lubdub_claimed_tasks_total":       {claimedName, ""},
	"lubdub_reconciled_entries_total":  {examinedName, ""},
	"lubdub_repairs_total":             {repairedName, ""},
	"lubdub_webhook_dropped_total":     {droppedName, ""},
}

const (
	requestSeconds = "lubdub_http_request_seconds"
	gapRatio       = "lubdub_beat_gap_ratio"
	sweepLag       = "lubdub_sweep_lag_seconds"
	beatRoute      = "heartbeat" // the suffix of the routes of heartbeats, apart from a plural
)

// gapNames are the names of gaps by the label kind.
var gapNames = map[string]string{KindTask: gapsName, KindWorker: workerGaps}

// counted are the counters of a replica.
type counted struct {
	counts   map[string]int64
	sweepLag time.Duration
}

// gather reads the counters of this replica.
func gather(g prometheus.Gatherer) (*counted, error) {
	c := &counted{counts: map[string]int64{}}
	if g == nil {
		return c, nil
	}
	families, err := g.Gather()
	if err != nil {
		return nil, err
	}
	for _, f := range families {
		switch of, known := counters[f.GetName()]; {
		case known:
			for _, m := range f.GetMetric() {
				c.counts[of.name+labelOf(m, of.label)] += int64(m.GetCounter().GetValue())
			}
		case f.GetName() == requestSeconds:
			for _, m := range f.GetMetric() {
				if strings.HasSuffix(strings.TrimSuffix(labelOf(m, "route"), "s"), beatRoute) {
					c.addBuckets(tookName, m)
				}
			}
		case f.GetName() == gapRatio:
			for _, m := range f.GetMetric() {
				c.addBuckets(gapNames[labelOf(m, "kind")], m)
			}
		case f.GetName() == sweepLag:
			for _, m := range f.GetMetric() {
				c.sweepLag = time.Duration(m.GetGauge().GetValue() * float64(time.Second))
			}
		}
	}
	return c, nil
}

func labelOf(m *dto.Metric, name string) string {
	for _, l := range m.GetLabel() {
		if l.GetName() == name {
			return l.GetValue()
		}
	}
	return ""
}

// addBuckets adds the number of samples between each bound and the one before it.
func (c *counted) addBuckets(name string, m *dto.Metric) {
	before := uint64(0)
	for _, b := range m.GetHistogram().GetBucket() {
		c.counts[name+strconv.FormatFloat(b.GetUpperBound(), 'g', -1, 64)] += int64(b.GetCumulativeCount() - before)
		before = b.GetCumulativeCount()
	}
	c.counts[name+"+Inf"] += int64(m.GetHistogram().GetSampleCount() - before)
}

// since returns what was counted since an earlier reading. The counters of a process only rise. An empty bucket is included since
// it is the lower bound of the next one.
func (c *counted) since(before map[string]int64) *counted {
	d := &counted{counts: map[string]int64{}, sweepLag: c.sweepLag}
	for name, n := range c.counts {
		if n > before[name] || strings.HasPrefix(name, tookName) {
			d.counts[name] = n - before[name]
		}
	}
	return d
}
