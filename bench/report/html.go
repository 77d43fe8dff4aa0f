package report

import (
	_ "embed"
	"errors"
	"fmt"
	"html/template"
	"io"
	"slices"
	"strings"
)

//go:embed html.tmpl
var pageText string

//go:embed html.css
var pageCSS string

//go:embed html_plot.css
var plotCSS string

var page = template.Must(template.New("page").Parse(pageText))

// WriteHTML writes the report as one self-contained page without scripts. It is light or dark according to the reader's system.
func WriteHTML(w io.Writer, r *Report) error {
	return page.Execute(w, pageOf(r))
}

// ErrNoPicture is returned for a report of which no picture can be drawn.
var ErrNoPicture = errors.New("the report has no CPU per beat of two programs side by side; run lubdub-bench with a scenario that has " +
	"baselines")

// WriteSVG writes the picture of a report: CPU per beat of each way that ran alongside another.
func WriteSVG(w io.Writer, r *Report) error {
	var side []Scenario
	for _, s := range r.Scenarios {
		programs := map[string]bool{}
		for _, run := range s.Runs {
			programs[run.Program] = true
		}
		if len(programs) > 1 {
			side = append(side, s)
		}
	}
	head := template.HTML("<style>" + svgColours() + plotCSS + ".plot .page { fill: var(--surface); stroke: var(--grid); }</style>")
	svg := cpuPlot(side, string(head))
	if svg == "" {
		return ErrNoPicture
	}
	_, err := fmt.Fprintf(w, "%s\n", svg)
	return err
}

// svgColours returns the colours of the page, for a stand-alone picture.
func svgColours() string {
	end := strings.Index(pageCSS, "* {")
	return strings.ReplaceAll(pageCSS[:end], "  color-scheme: light dark;\n", "")
}

type pageData struct {
	Day, Summary string
	CSS          template.CSS
	Warnings     []string
	Facts        []named
	Contents     []entry
	Bars         []barRow
	Overview     []template.HTML
	Scenarios    []section
}

type named struct{ Name, Text string }

type entry struct{ ID, Title string }

type barRow struct {
	What, Note, Bar, Aim, Measured, Rounds string
	Verdict                                Verdict
	Class, Sign                            string
	Bullet                                 template.HTML
}

type section struct {
	ID, Title, About, Failed string
	Notes                    []string
	Plots                    []template.HTML
	Figures                  []named
	Runs                     []runRow
}

type runRow struct {
	Name                                         string
	Round                                        int
	Loop                                         Loop
	Tracked, Rate, Server, Redis, P50, P99, Late string
	NotOK                                        string
}

func pageOf(r *Report) pageData {
	p := pageData{
		Day: r.StartedAt.UTC().Format("2006-01-02"), CSS: template.CSS(pageCSS + plotCSS),
		Summary: summary(r), Warnings: slices.Clone(r.Notes), Facts: facts(r),
	}
	if !r.Complete {
		p.Warnings = append(p.Warnings, "This run did not come to its end; what is missing is marked.")
	}
	if r.Quick {
		p.Warnings = append(p.Warnings, "This was a quick run, with small counts and few rounds: its numbers prove little.")
	}
	for i := range r.Bars {
		p.Bars = append(p.Bars, rowOf(&r.Bars[i]))
	}
	if p.Bars != nil {
		p.Contents = append(p.Contents, entry{"bars", "Promises"})
	}
	for _, plot := range []template.HTML{cpuPlot(r.Scenarios, ""), ratePlot(r.Scenarios)} {
		if plot != "" {
			p.Overview = append(p.Overview, plot)
		}
	}
	if p.Overview != nil {
		p.Contents = append(p.Contents, entry{"ways", "Ways to take a beat"})
	}
	for i := range r.Scenarios {
		s := sectionOf(&r.Scenarios[i])
		s.ID = fmt.Sprintf("scenario-%d", i+1)
		p.Scenarios = append(p.Scenarios, s)
		p.Contents = append(p.Contents, entry{s.ID, s.Title})
	}
	return p
}

func summary(r *Report) string {
	count := map[Verdict]int{}
	for _, b := range r.Bars {
		count[b.Verdict]++
	}
	var parts []string
	for _, v := range []Verdict{AimReached, Met, Missed, NotMeasured} {
		if count[v] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", count[v], v))
		}
	}
	if parts == nil {
		return "No promise was checked."
	}
	text := fmt.Sprintf("%d promises: %s.", len(r.Bars), strings.Join(parts, ", "))
	if r.HasMissed() {
		text += " What profiles say of those that are missed is in bench/README.md."
	}
	return text
}

// String describes a machine, as far as it is known.
func (m *Machine) String() string {
	machine := fmt.Sprintf("%d cores, %s/%s", m.Cores, m.OS, m.Arch)
	if m.CPU != "" {
		machine += ", " + m.CPU
	}
	if m.MemoryBytes > 0 {
		machine += fmt.Sprintf(", %s GiB", Number(float64(m.MemoryBytes>>20)/1024))
	}
	return machine
}

func facts(r *Report) []named {
	redis := r.Redis.Version
	if redis == "" {
		redis = "unknown"
	}
	if r.Redis.Private {
		redis += ", started by the run"
	}
	all := []named{
		{"Run", fmt.Sprintf("%s, %s s", r.StartedAt.UTC().Format("2006-01-02 15:04 UTC"), Number(r.Seconds))},
		{"Command", r.Command},
		{"Kept as", r.Name},
		{"Lubdub", strings.TrimSpace(r.Lubdub.Version+" "+r.Lubdub.URL) + ", " + r.Lubdub.Go},
		{"Redis", redis},
		{"Machine", r.Machine.String()},
		{"Load", fmt.Sprintf("%d connections, %s s each, rounds: %d, %s tracked tasks", r.Settings.Connections,
			Number(r.Settings.ForSeconds), r.Settings.Rounds, Number(float64(r.Settings.Tracked)))},
	}
	return slices.DeleteFunc(all, func(n named) bool { return n.Text == "" })
}

func rowOf(b *Bar) barRow {
	relation := "≤ "
	if b.AtLeast {
		relation = "≥ "
	}
	row := barRow{
		What: b.What, Note: b.Note, Verdict: b.Verdict, Bullet: bullet(b),
		Bar: relation + WithUnit(b.Bar, b.Unit), Aim: "–", Measured: "–",
		Class: strings.ReplaceAll(string(b.Verdict), " ", "-"),
		Sign:  map[Verdict]string{AimReached: "★", Met: "✓", Missed: "✗", NotMeasured: "–"}[b.Verdict],
	}
	if b.Aim != nil {
		row.Aim = relation + WithUnit(*b.Aim, b.Unit)
	}
	if b.Measured != nil {
		row.Measured = WithUnit(*b.Measured, b.Unit)
	}
	if len(b.Rounds) > 1 {
		row.Rounds = Number(slices.Min(b.Rounds)) + " to " + Number(slices.Max(b.Rounds))
	}
	return row
}

// verdict returns the verdict of a bar with its note; missed is the text for a missed one.
func (r *barRow) verdict(missed string) string {
	text := string(r.Verdict)
	if r.Verdict == Missed {
		text = missed
	}
	if r.Note != "" {
		text += " (" + r.Note + ")"
	}
	return text
}

func runRowOf(r *Run) runRow {
	row := runRow{
		Name: runName(r), Round: r.Round, Loop: r.Loop, Rate: Number(float64(int64(r.BeatsPerSecond))),
		Server: optional(r.ServerMicros), Redis: optional(r.RedisMicros), NotOK: Refusals(r.NotOK),
	}
	if r.Tracked > 0 {
		row.Tracked = Number(float64(r.Tracked))
	}
	if r.Latency != nil {
		row.P50, row.P99 = Number(r.Latency.P50Ms), Number(r.Latency.P99Ms)
	}
	if r.OwnLateness != nil {
		row.Late = Number(r.OwnLateness.P99Ms)
	}
	return row
}

func optional(v *float64) string {
	if v == nil {
		return "–"
	}
	return Number(*v)
}
