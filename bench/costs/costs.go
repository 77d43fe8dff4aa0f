// Package costs extracts the input of 'lubdub plan' from a report.
package costs

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/lubdub-io/lubdub/bench/report"
	"github.com/lubdub-io/lubdub/internal/capacity"
)

// FromReport returns the costs in a report. A missing value is an error.
func FromReport(name string, r *report.Report) (*capacity.Costs, error) {
	s := source{Report: r}
	c := &capacity.Costs{
		Source: name,
		Machine: fmt.Sprintf("%d cores, %s/%s, %s, Redis %s, Lubdub %s", r.Machine.Cores, r.Machine.OS, r.Machine.Arch, r.Machine.CPU,
			r.Redis.Version, r.Lubdub.Version),
	}
	single := s.runs("single", "lubdub", "")
	c.Single = cost(1, s.share(single))
	batch := s.runs("batch", "lubdub", "batch")
	c.Batch = cost(s.beats(batch), s.share(batch))

	worker := s.runs("worker-beat", "lubdub", "many workers")
	beat := cost(s.beats(worker), s.share(worker))
	c.Worker = &beat

	bare, full := s.share(s.runs("floor", "lubdub", "bare")), s.share(s.runs("floor", "lubdub", "with progress"))
	c.Progress = capacity.Share{ServerMicros: max(full.ServerMicros-bare.ServerMicros, 0),
		RedisMicros: max(full.RedisMicros-bare.RedisMicros, 0)}

	few, many := s.runs("growth", "lubdub", "few"), s.runs("growth", "lubdub", "many")
	small, large := s.share(few), s.share(many)
	c.Growth = capacity.Growth{FromTasks: s.tracked(few), ToTasks: s.tracked(many),
		Server: max(large.ServerMicros/small.ServerMicros, 1), Redis: max(large.RedisMicros/small.RedisMicros, 1)}

	if few != nil && many != nil && c.Growth.ToTasks <= c.Growth.FromTasks {
		s.missing("scenario growth compared %d tasks with %d: give more with --tracked", c.Growth.FromTasks, c.Growth.ToTasks)
	}

	// The naive baseline sends one beat per round trip.
	c.FlushMicros = s.share(s.runs("single", "naive", "")).RedisMicros - c.Single.RedisMicros

	c.TaskBytes = s.figure("populate", "redis-bytes-per-task", "bytes")
	// A life cycle of the benchmark has three beats.
	const beats = 3
	c.LifeServerMicros = s.figure("lifecycle", "life-cycle-server-cpu", "µs") - beats*c.Single.ServerMicros
	c.LifeRedisMicros = s.figure("lifecycle", "life-cycle-redis-cpu", "µs") - beats*c.Single.RedisMicros
	c.DeathsPerSecond = s.deaths()
	const mib = 1 << 20
	c.ReplicaBytes = s.figure("replica", "rss", "MiB") * mib
	c.TokenBytes = s.figure("replica", "rss-tokens", "MiB") * mib / 100_000
	c.ConnectionBytes = s.figure("replica", "rss-connections", "MiB") * mib / 10_000
	if !r.Complete {
		s.missing("the run did not come to its end")
	}
	if s.errs != nil {
		return nil, fmt.Errorf("%s does not hold all that a plan needs; run: lubdub-bench --report %s\n%w", name,
			strings.TrimSuffix(name, ".json"), errors.Join(s.errs...))
	}
	round(c)
	if err := c.Check(); err != nil {
		return nil, fmt.Errorf("%s: the measured costs make no sense; run lubdub-bench again on a quiet machine\n%w", name, err)
	}
	if r.Quick {
		c.Provisional, c.Note = true, "From a quick run, whose numbers prove little."
	}
	return c, nil
}

func cost(beats int, each capacity.Share) capacity.Cost {
	return capacity.Cost{Beats: beats, Share: each}
}

// source reads a report and collects missing values.
type source struct {
	*report.Report
	errs []error
}

func (s *source) missing(format string, args ...any) {
	s.errs = append(s.errs, fmt.Errorf(format, args...))
}

func (s *source) scenario(name string) *report.Scenario {
	for i := range s.Scenarios {
		if s.Scenarios[i].Name == name {
			return &s.Scenarios[i]
		}
	}
	return &report.Scenario{}
}

// runs are the closed loops of a program in a scenario, one for each round.
func (s *source) runs(scenario, program, variant string) (runs []report.Run) {
	for _, r := range s.scenario(scenario).Runs {
		if r.Program == program && r.Variant == variant && r.Loop == report.Closed {
			runs = append(runs, r)
		}
	}
	if runs == nil {
		s.missing("scenario %s: no run of %s %s", scenario, program, variant)
	}
	return runs
}

// share returns the median cost of beats in some runs.
func (s *source) share(runs []report.Run) capacity.Share {
	var server, redis []float64
	for _, r := range runs {
		if r.ServerMicros == nil || r.RedisMicros == nil {
			s.missing("no CPU of %s %s in round %d", r.Program, r.Variant, r.Round)
			continue
		}
		server, redis = append(server, *r.ServerMicros), append(redis, *r.RedisMicros)
	}
	return capacity.Share{ServerMicros: report.Median(server), RedisMicros: report.Median(redis)}
}

func (s *source) beats(runs []report.Run) int {
	if len(runs) == 0 {
		return 0
	}
	return runs[0].BeatsPerRequest
}

func (s *source) tracked(runs []report.Run) int {
	if len(runs) == 0 {
		return 0
	}
	return runs[0].Tracked
}

func (s *source) figure(scenario, name, unit string) float64 {
	for _, f := range s.scenario(scenario).Figures {
		if f.Name == name && f.Unit == unit {
			return f.Value
		}
	}
	s.missing("scenario %s: no figure %s in %s", scenario, name, unit)
	return 0
}

// deaths returns the rate of deaths per second, from their number and the time until the last was handled.
func (s *source) deaths() float64 {
	d := s.scenario("deaths")
	for _, l := range d.Distributions {
		if l.Name == "mass-detection-lag" && l.Quantiles.Count > 0 {
			return float64(l.Quantiles.Count) / s.figure("deaths", "handled", "s")
		}
	}
	s.missing("scenario deaths: no distribution mass-detection-lag")
	return 0
}

// round keeps three digits: measurements are not more precise.
func round(c *capacity.Costs) {
	for _, v := range []*float64{
		&c.Single.ServerMicros, &c.Single.RedisMicros, &c.Batch.ServerMicros, &c.Batch.RedisMicros, &c.Progress.ServerMicros,
		&c.Progress.RedisMicros,
		&c.Worker.ServerMicros, &c.Worker.RedisMicros, &c.Growth.Server, &c.Growth.Redis, &c.FlushMicros, &c.TaskBytes, &c.LifeServerMicros,
		&c.LifeRedisMicros, &c.DeathsPerSecond,
		&c.ReplicaBytes, &c.TokenBytes, &c.ConnectionBytes,
	} {
		if math.IsNaN(*v) || math.IsInf(*v, 0) {
			*v = 0 // Check refuses it
			continue
		}
		*v, _ = strconv.ParseFloat(strconv.FormatFloat(*v, 'g', 3, 64), 64)
	}
}
