package report

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// WriteMarkdown writes the report for readers, at a terminal or as a page: the bars, and each scenario with its runs and figures.
func (r *Report) WriteMarkdown(w io.Writer) error {
	b := &strings.Builder{}
	fmt.Fprintf(b, "# Benchmark of Lubdub, %s\n\n", r.StartedAt.UTC().Format(time.DateOnly))
	fmt.Fprintf(b, "`%s`: Lubdub %s (%s), Redis %s, on %s; %s s, %d connections, rounds: %d.\n\n", r.Command, r.Lubdub.Version, r.Lubdub.Go,
		r.Redis.Version, r.Machine.String(), Number(r.Seconds), r.Settings.Connections, r.Settings.Rounds)
	if !r.Complete {
		b.WriteString("**The run did not complete; results are missing.**\n\n")
	}
	if r.Quick {
		b.WriteString("**A quick run: it shows that everything works, and its numbers prove little.**\n\n")
	}
	for _, note := range r.Notes {
		fmt.Fprintf(b, "%s\n\n", note)
	}
	b.WriteString(BarTable(r.Bars))
	for i := range r.Scenarios {
		r.Scenarios[i].markdown(b)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (s *Scenario) markdown(b *strings.Builder) {
	fmt.Fprintf(b, "\n## %s\n\n%s (%s, %.0f s)\n", cmp.Or(s.Title, s.Name), s.About, s.Name, s.Seconds)
	if s.Failed != "" {
		fmt.Fprintf(b, "\n**It failed: %s**\n", s.Failed)
	}
	for _, note := range s.Notes {
		fmt.Fprintf(b, "\n%s\n", note)
	}
	var runs, figures [][]string
	for i := range s.Runs {
		runs = append(runs, s.Runs[i].row())
	}
	if runs != nil {
		b.WriteString("\n" + table([]string{"program", "round", "loop", "tracked", "beats/s", "server µs", "Redis µs", "beats/flush", "p50 ms",
			"p99 ms", "max ms", "late p99 ms", "not OK"}, runs))
	}
	for _, d := range s.Distributions {
		q := &d.Quantiles
		figures = append(figures, []string{d.What, fmt.Sprintf("p50 %s, p90 %s, p99 %s, max %s ms", Number(q.P50Ms), Number(q.P90Ms),
			Number(q.P99Ms), Number(q.MaxMs))})
	}
	for _, f := range s.Figures {
		what := f.What
		if f.Group != "" { // it is a part of the figure with that name
			what = "– " + what
		}
		figures = append(figures, []string{what, WithUnit(f.Value, f.Unit)})
	}
	if figures != nil {
		b.WriteString("\n" + table([]string{"figure", "value"}, figures))
	}
}

func (r *Run) row() []string {
	p50, p99, most, late := "–", "–", "–", "–"
	if q := r.Latency; q != nil {
		p50, p99, most = fmt.Sprintf("%.2f", q.P50Ms), fmt.Sprintf("%.2f", q.P99Ms), fmt.Sprintf("%.2f", q.MaxMs)
	}
	if r.OwnLateness != nil {
		late = fmt.Sprintf("%.2f", r.OwnLateness.P99Ms)
	}
	return []string{strings.TrimSpace(r.Program + " " + r.Variant), fmt.Sprint(r.Round), string(r.Loop), fmt.Sprint(r.Tracked),
		fmt.Sprintf("%.0f", r.BeatsPerSecond), orDash(r.ServerMicros), orDash(r.RedisMicros), orDash(r.FlushBeats), p50, p99, most, late,
		cmp.Or(Refusals(r.NotOK), "0")}
}

func orDash(v *float64) string {
	if v == nil {
		return "–"
	}
	return fmt.Sprintf("%.2f", *v)
}

// BarTable returns the bars as a table in Markdown.
func BarTable(bars []Bar) string {
	var rows [][]string
	for i := range bars {
		rows = append(rows, bars[i].row())
	}
	return table([]string{"what", "bar", "aim", "measured", "met?"}, rows)
}

func (b *Bar) row() []string {
	relation := "≤ "
	if b.AtLeast {
		relation = "≥ "
	}
	aim, measured, verdict := "–", "–", string(b.Verdict)
	if b.Aim != nil {
		aim = relation + WithUnit(*b.Aim, b.Unit)
	}
	if b.Measured != nil {
		measured = WithUnit(*b.Measured, b.Unit)
	}
	if len(b.Rounds) > 1 {
		measured += fmt.Sprintf(" (%s to %s)", Number(slices.Min(b.Rounds)), Number(slices.Max(b.Rounds)))
	}
	if b.Verdict == Missed {
		verdict = "**missed**"
	}
	if b.Note != "" {
		verdict += " (" + b.Note + ")"
	}
	return []string{b.What, relation + WithUnit(b.Bar, b.Unit), aim, measured, verdict}
}

var cells = strings.NewReplacer("|", `\|`, "\n", " ", "\t", " ")

// table returns a table in Markdown whose columns are aligned, so that it can be read as it is too.
func table(head []string, rows [][]string) string {
	var b strings.Builder
	t := tabwriter.NewWriter(&b, 0, 0, 1, ' ', 0)
	line := func(row []string) {
		for i, cell := range row {
			if i > 0 {
				fmt.Fprint(t, "\t")
			}
			fmt.Fprintf(t, "| %s", cells.Replace(cell))
		}
		fmt.Fprintln(t, " |")
	}
	line(head)
	line(slices.Repeat([]string{"---"}, len(head)))
	for _, row := range rows {
		line(row)
	}
	_ = t.Flush() // a strings.Builder takes everything
	return b.String()
}
