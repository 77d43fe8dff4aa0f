package report

import (
	"fmt"
	"html/template"
	"strings"
)

// drawing is an SVG under construction. Every text is escaped, so that a name in a report cannot become markup.
type drawing struct {
	b             strings.Builder
	width, height float64
}

func escape(s string) string { return template.HTMLEscapeString(s) }

func (d *drawing) printf(format string, args ...any) { fmt.Fprintf(&d.b, format, args...) }

// text draws s with its baseline at y. anchor is start, middle or end.
func (d *drawing) text(x, y float64, class, anchor, s string) {
	d.printf(`<text x="%.1f" y="%.1f" class="%s" text-anchor="%s">%s</text>`, x, y, class, anchor, escape(s))
}

func (d *drawing) rect(x, y, w, h float64, class, title string) {
	d.printf(`<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" rx="2" class="%s"><title>%s</title></rect>`, x, y, max(w, 0), h, class,
		escape(title))
}

func (d *drawing) line(x1, y1, x2, y2 float64, class string) {
	d.printf(`<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" class="%s"/>`, x1, y1, x2, y2, class)
}

// point is a point of a path; a gap interrupts the line before it.
type point struct {
	x, y float64
	gap  bool
}

func (d *drawing) path(points []point, class, title string) {
	if len(points) == 0 {
		return
	}
	d.printf(`<path class="%s" d="`, class)
	for i, p := range points {
		step := "L"
		if i == 0 || p.gap {
			step = "M"
		}
		d.printf("%s%.1f %.1f", step, p.x, p.y)
		if (i == len(points)-1 || points[i+1].gap) && step == "M" {
			d.printf("h.1") // so that a single point is visible
		}
	}
	d.printf(`"><title>%s</title></path>`, escape(title))
}

// legend draws the colours and names of series in one row from x on.
func (d *drawing) legend(x, y float64, names []string, colours []int) {
	for i, name := range names {
		d.printf(`<rect x="%.1f" y="%.1f" width="10" height="10" rx="2" class="f%d"/>`, x, y-9, colours[i])
		d.text(x+15, y, "soft", "start", name)
		x += 15 + widthOf(name) + 18
	}
}

// keys draws the strokes and names of lines in one row from x on.
func (d *drawing) keys(x, y float64, names []string, strokes []int) {
	for i, name := range names {
		d.printf(`<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" class="l s%d"/>`, x, y-4, x+26, y-4, strokes[i])
		d.text(x+32, y, "soft", "start", name)
		x += 32 + widthOf(name) + 18
	}
}

// widthOf estimates the width of a text of 13 px; browsers differ, so it is generous.
func widthOf(s string) float64 { return 7 * float64(len([]rune(s))) }

// done returns the complete drawing, with a title and a description for screen readers, and with head inside.
func (d *drawing) done(title, about, head string) template.HTML {
	return template.HTML(fmt.Sprintf(
		`<svg xmlns="http://www.w3.org/2000/svg" class="plot" role="img" viewBox="0 0 %.0f %.0f" width="%.0f" height="%.0f"><title>%s</title><desc>%s</desc>%s%s</svg>`,
		d.width, d.height, d.width, d.height, escape(title), escape(about), head, d.b.String()))
}
