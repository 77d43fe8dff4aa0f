package report

import (
	"fmt"
	"html/template"
	"math"
	"slices"
	"strconv"
	"strings"
)

// curve is one distribution in a plot.
type curve struct {
	name   string
	colour int
	q      *Quantiles
}

// percentilePlot draws latencies by percentile as HdrHistogram does: each nine of the percentile is as wide as the one before, so that
// the tail is visible.
func percentilePlot(title, about string, curves []curve) template.HTML {
	const top, height, bottom, left, right = 66, 260, 48, 62, 22
	least, most, nines := math.Inf(1), 0.0, 1.0
	var spoken []string
	for _, c := range curves {
		for _, p := range c.q.Curve {
			if p.Ms > 0 {
				least = min(least, p.Ms)
			}
			most = max(most, p.Ms)
		}
		nines = max(nines, min(math.Log10(max(float64(c.q.Count), 10)), 6))
		spoken = append(spoken, fmt.Sprintf("%s: p50 %s ms, p99 %s ms, longest %s ms", c.name, Number(c.q.P50Ms), Number(c.q.P99Ms),
			Number(c.q.MaxMs)))
	}
	if most == 0 {
		least, most = 0.1, 1
	}
	marks := logTicks(max(least, most/1e6), most)
	low, high := math.Log10(marks[0]), math.Log10(marks[len(marks)-1])
	d := drawing{width: plotWidth, height: top + height + bottom}
	d.text(0, 22, "t", "start", title)
	names, colours := make([]string, len(curves)), make([]int, len(curves))
	for i, c := range curves {
		names[i], colours[i] = c.name, c.colour
	}
	d.keys(0, 46, names, colours)

	y := func(ms float64) float64 {
		if ms < marks[0] {
			ms = marks[0]
		}
		return top + height*(1-(math.Log10(ms)-low)/(high-low))
	}
	x := func(percent float64) float64 {
		n := nines
		if percent < 100 {
			n = min(-math.Log10(1-percent/100), nines)
		}
		return left + n/nines*(plotWidth-left-right)
	}
	for _, m := range marks {
		d.line(left, y(m), plotWidth-right, y(m), "grid")
		d.text(left-8, y(m)+4, "muted", "end", Number(m)+" ms")
	}
	for _, p := range []float64{0, 50, 90, 99, 99.9, 99.99, 99.999, 99.9999} {
		if p > 0 && -math.Log10(1-p/100) > nines+1e-9 {
			break
		}
		d.line(x(p), top, x(p), top+height, "grid")
		d.text(x(p), top+height+18, "muted", "middle", strconv.FormatFloat(p, 'f', -1, 64)+" %")
	}
	d.line(left, top+height, plotWidth-right, top+height, "axis")
	d.text(plotWidth-right, top+height+38, "muted", "end", "share that took no longer")
	for _, c := range curves {
		var points []point
		for _, p := range c.q.Curve {
			points = append(points, point{x: x(p.Percent), y: y(p.Ms)})
		}
		d.path(points, fmt.Sprintf("l s%d", c.colour), c.name)
	}
	return d.done(title, strings.TrimSpace(about+" "+strings.Join(spoken, "; "))+".", "")
}

// timelinePlot draws series over time: those of one unit share a panel, and panels share the time axis, so that no two scales overlap.
func timelinePlot(t *Timeline) template.HTML {
	const top, panel, gap, bottom, left, right = 44, 150, 46, 40, 62, 22
	var units []string
	windows := 1
	for _, s := range t.Series {
		if !slices.Contains(units, s.Unit) {
			units = append(units, s.Unit)
		}
		windows = max(windows, len(s.Values))
	}
	d := drawing{width: plotWidth, height: float64(top + len(units)*(panel+gap) - gap + bottom)}
	d.text(0, 22, "t", "start", t.Title)
	span := float64(windows) * t.IntervalMs
	if span <= 0 {
		span = 1
	}
	x := func(ms float64) float64 { return left + (ms-t.FromMs)/span*(plotWidth-left-right) }
	var spoken []string
	colour := 0
	for u, unit := range units {
		markRow := 0.0 // above the first panel, for what the marks say
		if u == 0 && len(t.Marks) > 0 {
			markRow = 18
		}
		from := float64(top+u*(panel+gap)+22) + markRow
		height := panel - 22 - markRow
		most := 0.0
		var names []string
		var colours []int
		for _, s := range t.Series {
			if s.Unit != unit {
				continue
			}
			peak := 0.0
			for _, v := range s.Values {
				peak = max(peak, value(v))
			}
			most = max(most, peak)
			colour = colour%8 + 1
			names, colours = append(names, s.Name+" ("+unit+")"), append(colours, colour)
			spoken = append(spoken, s.Name+" up to "+WithUnit(peak, unit))
		}
		d.keys(left, from-10-markRow, names, colours)
		marks := ticks(most, 4)
		y := func(v float64) float64 { return from + height*(1-v/marks[len(marks)-1]) }
		for _, m := range marks {
			class := "grid"
			if m == 0 {
				class = "axis"
			}
			d.line(left, y(m), plotWidth-right, y(m), class)
			d.text(left-8, y(m)+4, "muted", "end", Number(m))
		}
		for _, m := range t.Marks {
			if m.AtMs >= t.FromMs && m.AtMs <= t.FromMs+span {
				d.line(x(m.AtMs), from, x(m.AtMs), from+height, "mark")
				if u == 0 {
					d.text(x(m.AtMs), from-6, "soft", "middle", m.Label)
				}
			}
		}
		n := 0
		for _, s := range t.Series {
			if s.Unit != unit {
				continue
			}
			var points []point
			missing := true
			for i, v := range s.Values {
				if v == nil {
					missing = true
					continue
				}
				points = append(points, point{x: x(t.FromMs + (float64(i)+0.5)*t.IntervalMs), y: y(*v), gap: missing})
				missing = false
			}
			d.path(points, fmt.Sprintf("l s%d", colours[n]), names[n])
			n++
		}
	}
	step := ticks(span, 8)[1]
	for at := math.Ceil(t.FromMs/step) * step; at <= t.FromMs+span*(1+1e-9); at += step {
		d.text(x(at), d.height-bottom+18, "muted", "middle", Number(at/1000)+" s")
	}
	return d.done(t.Title, strings.Join(spoken, "; ")+".", "")
}
