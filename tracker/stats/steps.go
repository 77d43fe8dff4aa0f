package stats

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/schema"
	"github.com/lubdub-io/lubdub/tracker/store"
)

// Step is the activity of ten seconds, on all replicas that reported.
type Step struct {
	Began    time.Time
	Replicas int     // that reported
	Levels   *Counts // counts of all scopes; nil: no replica stored them
	Beats    int64   // accepted
	Refused  map[string]int64
	Verdicts map[string]int64 // by reason
	Claims   map[string]int64 // by result
	Claimed  int64            // tasks
	Examined int64            // entries by the reconciler
	Repaired int64
	Dropped  int64 // pending deliveries to webhooks
	SweepLag time.Duration
	BeatP99  time.Duration // of the requests of heartbeats; 0: there were none

	gaps map[string]map[float64]int64 // between heartbeats, by kind and the upper bound of their part of the timeout
}

// MaxSteps is how many steps the series has: an hour.
const MaxSteps = 360

const (
	stepsOpen  = 8 // the newest, to which a replica may still report
	lateReport = 2 // steps after which one is shown that not all replicas reported to
)

type lastHour struct {
	now   time.Time
	steps []*Step
	gaps  Gaps
}

// readHour reads the steps of the last hour, and caches those to which no replica reports any more.
func (s *Service) readHour(ctx context.Context) (*lastHour, error) {
	fleet, err := s.store.Do(ctx, "stats", s.fleetCall(nil))
	if err != nil {
		return nil, err
	}
	now, live := readFleet(fleet).now, len(readFleet(fleet).lastReport)
	newest := now.UnixMilli()/stepMillis - 1
	s.series.mu.Lock()
	defer s.series.mu.Unlock()
	var missing []int64
	for step := newest - MaxSteps + 1; step <= newest; step++ {
		if _, known := s.series.steps[step]; !known || step > newest-stepsOpen {
			missing = append(missing, step)
		}
	}
	if err := s.readInto(ctx, missing); err != nil {
		return nil, err
	}
	hour := &lastHour{now: now}
	for step, is := range s.series.steps {
		switch {
		case step <= newest-MaxSteps || step > newest:
			delete(s.series.steps, step)
		case is != nil && (step <= newest-lateReport || is.Replicas >= live):
			hour.steps = append(hour.steps, is)
		}
	}
	slices.SortFunc(hour.steps, func(a, b *Step) int { return a.Began.Compare(b.Began) })
	hour.gaps = gapsOf(hour.steps)
	return hour, nil
}

func (s *Service) readInto(ctx context.Context, steps []int64) error {
	var calls []*store.Call
	var parts [][]int64
	for part := range slices.Chunk(steps, stepsAtOnce) {
		calls, parts = append(calls, s.stepsCall(part)), append(parts, part)
	}
	s.store.DoBulk(ctx, "stats", calls)
	if err := store.FirstError(calls); err != nil {
		return err
	}
	for i, part := range parts {
		for j, fields := range readSteps(calls[i].Reply, len(part)) {
			s.series.steps[part[j]] = newStep(part[j], fields)
		}
	}
	return nil
}

// newStep reads a step; nil if no replica reported to it.
func newStep(number int64, fields map[string]string) *Step {
	if len(fields) == 0 {
		return nil
	}
	s := &Step{Began: time.UnixMilli(number * stepMillis).UTC(), Refused: map[string]int64{}, Verdicts: map[string]int64{},
		Claims: map[string]int64{}, gaps: map[string]map[float64]int64{KindTask: {}, KindWorker: {}}}
	took := map[float64]int64{}
	for name, text := range fields {
		n := schema.ParseInt(text)
		kind, of, _ := strings.Cut(name, ":")
		switch kind + ":" {
		case refusedName:
			s.Refused[of] = n
		case verdictsName:
			s.Verdicts[of] = n
		case claimsName:
			s.Claims[of] = n
		case tookName:
			bound, _ := strconv.ParseFloat(of, 64)
			took[bound] = n
		case gapsName:
			bound, _ := strconv.ParseFloat(of, 64)
			s.gaps[KindTask][bound] = n
		case workerGaps:
			bound, _ := strconv.ParseFloat(of, 64)
			s.gaps[KindWorker][bound] = n
		case "r:":
			s.Replicas++
		case "beats:":
			s.Beats = n
		case "claimed:":
			s.Claimed = n
		case "examined:":
			s.Examined = n
		case "repaired:":
			s.Repaired = n
		case "dropped:":
			s.Dropped = n
		case "lag:":
			s.SweepLag = millis(n)
		case "told:":
			s.Levels = levelsOf(fields)
		}
	}
	s.BeatP99 = time.Duration(quantile(took, 0.99) * float64(time.Second))
	return s
}

// levelsOf reads the levels of a step.
func levelsOf(fields map[string]string) *Counts {
	c := newCounts()
	for _, state := range model.States {
		c.Tasks[state] = schema.Atoi(fields[tasksLevel+string(state)])
	}
	for _, status := range model.WorkerStatuses {
		c.Workers[status] = schema.Atoi(fields[workersLevel+string(status)])
		c.Machines[status] = schema.Atoi(fields[machinesLevel+string(status)])
	}
	for _, liveness := range []model.Liveness{model.Fresh, model.Late, model.Lost} {
		c.Liveness[liveness] = schema.Atoi(fields[livenessLevel+string(liveness)])
	}
	c.Only = fields[onlyLevel]
	c.OldestOverdue = millis(schema.ParseInt(fields[overdueLevel]))
	return c
}
