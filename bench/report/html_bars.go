package report

import (
	"html/template"
	"strings"
)

const plotWidth = 800

// barGroup is a heading with its bars; a bar is a stack of parts.
type barGroup struct {
	heading string
	bars    []stack
}

type stack struct {
	label string
	bold  bool
	parts []float64 // by series; a part that was not measured is 0
	note  string    // after the bar
}

// barPlot draws stacks from left to right, one below the other.
func barPlot(title, about, unit string, series []string, colours []int, groups []barGroup, head string) template.HTML {
	const rowHeight, barHeight, headingHeight, top, bottom = 30, 18, 32, 66, 44
	gutter, most, rows := 60.0, 0.0, 0
	var spoken []string
	for _, g := range groups {
		for _, b := range g.bars {
			rows++
			gutter = max(gutter, widthOf(b.label)*1.1+14) // bold is wider
			sum := 0.0
			for _, p := range b.parts {
				sum += p
			}
			most = max(most, sum)
			spoken = append(spoken, b.label+": "+b.note)
		}
	}
	gutter = min(gutter, plotWidth*0.45)
	marks := ticks(most, 5)
	noteWidth := 150.0
	if len(series) > 1 {
		noteWidth = 185
	}
	scale := (plotWidth - gutter - noteWidth) / marks[len(marks)-1]
	headings := 0
	for _, g := range groups {
		if g.heading != "" {
			headings++
		}
	}
	d := drawing{width: plotWidth, height: float64(top + bottom + rows*rowHeight + headings*headingHeight)}
	if head != "" { // on a separate page of any colour
		d.printf(`<rect x="0" y="0" width="%.0f" height="%.0f" rx="8" class="page"/>`, d.width, d.height)
	}
	left := 0.0
	if head != "" {
		left = 18
	}
	d.text(left, 22, "t", "start", title)
	if len(series) > 1 {
		d.legend(left, 46, series, colours)
	} else {
		d.text(left, 46, "soft", "start", unit)
	}
	gutter += left
	end := d.height - bottom + 6
	for _, m := range marks {
		x := gutter + m*scale
		class := "grid"
		if m == 0 {
			class = "axis"
		}
		d.line(x, top-8, x, end, class)
		d.text(x, end+18, "muted", "middle", Number(m))
	}
	if len(series) > 1 {
		d.text(gutter+marks[len(marks)-1]*scale+14, end+18, "muted", "start", unit)
	}
	y := float64(top)
	for _, g := range groups {
		if g.heading != "" {
			d.text(left, y+20, "muted", "start", g.heading)
			y += headingHeight
		}
		for _, b := range g.bars {
			class := "ink"
			if b.bold {
				class = "b"
			}
			d.text(left, y+barHeight-4, class, "start", b.label)
			x := gutter
			for i, p := range b.parts {
				if w := p * scale; w > 0 {
					fill := "f1"
					if i < len(colours) {
						fill = "f" + string(rune('0'+colours[i]))
					}
					name := b.label
					if len(series) > 1 {
						name += ", " + series[i]
					}
					d.rect(x, y, max(w-1, 1), barHeight, fill, name+": "+WithUnit(p, unit))
					x += max(w, 2)
				}
			}
			d.text(x+7, y+barHeight-4, class, "start", b.note)
			y += rowHeight
		}
	}
	return d.done(title, strings.TrimSpace(about+" "+strings.Join(spoken, "; "))+".", head)
}

// bullet draws a measured value with its bar and aim, small, for a row of the table.
func bullet(b *Bar) template.HTML {
	if b.Measured == nil {
		return ""
	}
	most := max(*b.Measured, b.Bar) * 1.12
	if most <= 0 {
		return ""
	}
	d := drawing{width: 150, height: 18}
	d.line(0, 17.5, 150, 17.5, "grid")
	d.rect(0, 4, max(*b.Measured/most*150, 1), 10, "f1", "measured")
	d.line(b.Bar/most*150, 0, b.Bar/most*150, 18, "tick")
	if b.Aim != nil {
		d.line(*b.Aim/most*150, 1, *b.Aim/most*150, 17, "aim")
	}
	return d.done("Measured "+WithUnit(*b.Measured, b.Unit), "The thick line is the bar, the dashed one the aim.", "")
}
