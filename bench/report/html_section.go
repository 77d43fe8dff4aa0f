package report

import (
	"fmt"
	"html/template"
	"slices"
)

// cpuPlot stacks the CPU of a beat for server and Redis, by way; "" if no run has it.
func cpuPlot(scenarios []Scenario, head string) template.HTML {
	groups := groupsOf(scenarios, func(w way) (parts []float64, note string) {
		if w.server == nil && w.redis == nil {
			return nil, ""
		}
		note = Number(w.sum()) + " µs"
		if w.server != nil && w.redis != nil {
			note = fmt.Sprintf("%s + %s = %s µs", Number(*w.server), Number(*w.redis), Number(w.sum()))
		}
		return []float64{value(w.server), value(w.redis)}, note
	})
	if groups == nil {
		return ""
	}
	return barPlot("CPU per beat", "Microseconds of CPU that one acknowledged beat costs, less is better.", "µs",
		[]string{"server", "Redis"}, []int{1, 2}, groups, head)
}

// ratePlot shows the highest rate of each way; "" if no run has it.
func ratePlot(scenarios []Scenario) template.HTML {
	groups := groupsOf(scenarios, func(w way) (parts []float64, note string) {
		if value(w.beatsPerSecond) <= 0 {
			return nil, ""
		}
		rate := float64(int64(*w.beatsPerSecond))
		return []float64{rate}, Number(rate)
	})
	if groups == nil {
		return ""
	}
	return barPlot("Beats per second", "The most beats a second that were acknowledged, generator, server and Redis on one machine; more is "+
		"better.", "beats/s, all on this machine", []string{"beats/s"}, []int{1}, groups, "")
}

// groupsOf creates a group of bars for each scenario, with a bar for each way that has parts.
func groupsOf(scenarios []Scenario, of func(way) (parts []float64, note string)) (groups []barGroup) {
	for i := range scenarios {
		g := barGroup{heading: scenarios[i].Title}
		for _, w := range waysOf(&scenarios[i]) {
			if parts, note := of(w); parts != nil {
				g.bars = append(g.bars, stack{label: w.label, bold: w.ours, parts: parts, note: note})
			}
		}
		if g.bars != nil {
			groups = append(groups, g)
		}
	}
	return groups
}

// sectionOf returns everything about a scenario that the overview does not show.
func sectionOf(s *Scenario) section {
	sec := section{Title: s.Title, About: s.About, Failed: s.Failed, Notes: s.Notes}
	if sec.Title == "" {
		sec.Title = s.Name
	}
	if curves := latencies(s); curves != nil {
		sec.Plots = append(sec.Plots, percentilePlot("Latency by percentile",
			"How long requests took at a steady rate, from the moment they were due.", curves))
	}
	for i := range s.Timelines {
		sec.Plots = append(sec.Plots, timelinePlot(&s.Timelines[i]))
	}
	for i := range s.Distributions {
		d := &s.Distributions[i]
		if len(d.Quantiles.Curve) > 0 {
			sec.Plots = append(sec.Plots, percentilePlot(d.What, "", []curve{{name: d.Name, colour: 1, q: &d.Quantiles}}))
		} else {
			q := d.Quantiles
			sec.Figures = append(sec.Figures, named{d.What, fmt.Sprintf("p50 %s ms, p99 %s ms, longest %s ms", Number(q.P50Ms), Number(q.P99Ms),
				Number(q.MaxMs))})
		}
	}
	sec.Plots = append(sec.Plots, groupPlots(s.Figures)...)
	for _, f := range s.Figures {
		if f.Group == "" {
			sec.Figures = append(sec.Figures, named{f.What, WithUnit(f.Value, f.Unit)})
		}
	}
	for i := range s.Runs {
		sec.Runs = append(sec.Runs, runRowOf(&s.Runs[i]))
	}
	return sec
}

// latencies returns those of the open loops, which show how long a caller waits; of each kind of run the last round.
func latencies(s *Scenario) []curve {
	var curves []curve
	for i := range s.Runs {
		r := &s.Runs[i]
		if r.Loop != Open || r.Latency == nil || len(r.Latency.Curve) == 0 {
			continue
		}
		name := runName(r)
		at := slices.IndexFunc(curves, func(c curve) bool { return c.name == name })
		if at < 0 {
			at = len(curves)
			curves = append(curves, curve{name: name, colour: at%8 + 1})
		}
		curves[at].q = r.Latency
	}
	return curves
}

// groupPlots draws figures that are parts of a whole, such as the memory of a task by kind of key.
func groupPlots(figures []Figure) []template.HTML {
	var order []string
	parts := map[string][]Figure{}
	for _, f := range figures {
		if f.Group == "" {
			continue
		}
		if parts[f.Group] == nil {
			order = append(order, f.Group)
		}
		parts[f.Group] = append(parts[f.Group], f)
	}
	var plots []template.HTML
	for _, group := range order {
		var bars []stack
		title := group
		for _, f := range figures {
			if f.Name == group && f.Group == "" { // the whole that these are parts of
				title = f.What + ": " + WithUnit(f.Value, f.Unit)
			}
		}
		for _, f := range parts[group] {
			bars = append(bars, stack{label: f.What, parts: []float64{f.Value}, note: WithUnit(f.Value, f.Unit)})
		}
		unit := parts[group][0].Unit
		plots = append(plots, barPlot(title, "", unit, []string{unit}, []int{1}, []barGroup{{bars: bars}}, ""))
	}
	return plots
}
