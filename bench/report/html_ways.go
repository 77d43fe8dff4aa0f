package report

import (
	"fmt"
	"slices"
	"strings"
)

// way is one way of receiving beats: the rounds of one program under one load, by their medians.
type way struct {
	label          string
	ours           bool
	beatsPerSecond *float64
	server, redis  *float64 // CPU µs per beat
}

func (w *way) sum() float64 { return value(w.server) + value(w.redis) }

// waysOf returns the closed loops of a scenario, in the order in which they first ran, ours first.
func waysOf(s *Scenario) []way {
	type key struct {
		program, variant string
		perRequest       int
		tracked          int
	}
	var order []key
	runs := map[key][]Run{}
	programs, tracked := map[string]bool{}, map[int]bool{}
	for _, r := range s.Runs {
		if r.Loop != Closed {
			continue
		}
		k := key{r.Program, r.Variant, r.BeatsPerRequest, r.Tracked}
		if runs[k] == nil {
			order = append(order, k)
		}
		runs[k] = append(runs[k], r)
		programs[r.Program], tracked[r.Tracked] = true, true
	}
	slices.SortStableFunc(order, func(a, b key) int { return rank(a.program) - rank(b.program) })
	same := map[string]int{} // labels without the number of tasks
	label := func(k key) string {
		parts := []string{programName(k.program)}
		if k.variant != "" {
			parts = append(parts, k.variant)
		}
		if k.perRequest > 1 {
			parts = append(parts, together(k.program, k.perRequest))
		}
		return strings.Join(parts, ", ")
	}
	for _, k := range order {
		same[label(k)]++
	}
	var ways []way
	for _, k := range order {
		w := way{label: label(k), ours: k.program == "lubdub"}
		if same[w.label] > 1 && k.tracked > 0 {
			w.label += ", " + Number(float64(k.tracked)) + " tracked"
		}
		w.beatsPerSecond = medianOf(runs[k], func(r Run) *float64 { return &r.BeatsPerSecond })
		w.server = medianOf(runs[k], func(r Run) *float64 { return r.ServerMicros })
		w.redis = medianOf(runs[k], func(r Run) *float64 { return r.RedisMicros })
		ways = append(ways, w)
	}
	return ways
}

func rank(program string) int {
	if program == "lubdub" {
		return 0
	}
	return 1
}

// programName returns the display name of a program of a report.
func programName(program string) string {
	switch program {
	case "lubdub":
		return "Lubdub"
	case "empty":
		return "empty handler"
	case "naive":
		return "naive way"
	case "autopipeline":
		return "go-redis AutoPipeline"
	case "zadd":
		return "bulk ZADD"
	}
	return program
}

// together describes how many beats are sent at once.
func together(program string, beats int) string {
	if program == "zadd" {
		return Number(float64(beats)) + " members a command"
	}
	return Number(float64(beats)) + " beats a request"
}

// medianOf returns the median of the rounds that measured a value; nil if none did.
func medianOf(runs []Run, of func(Run) *float64) *float64 {
	var all []float64
	for _, r := range runs {
		if v := of(r); v != nil {
			all = append(all, *v)
		}
	}
	if len(all) == 0 {
		return nil
	}
	return new(Median(all))
}

func value(p *float64) float64 {
	if p == nil {
		return 0
	}
	return *p
}

// runName returns a name of a run that is unique in its scenario.
func runName(r *Run) string {
	name := programName(r.Program)
	if r.Variant != "" {
		name += ", " + r.Variant
	}
	if r.BeatsPerRequest > 1 {
		name += ", " + together(r.Program, r.BeatsPerRequest)
	}
	if r.Loop == Open && r.TargetPerSecond > 0 {
		name += fmt.Sprintf(" at %s/s", Number(r.TargetPerSecond))
	}
	return name
}
