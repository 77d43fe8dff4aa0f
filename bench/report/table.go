package report

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// WriteTable writes the report for people at a terminal: what was measured, then the bars.
func (r *Report) WriteTable(w io.Writer) error {
	b := &strings.Builder{}
	fmt.Fprintf(b, "lubdub %s (%s), Redis %s, %s/%s, %d cores, %s\n", r.Lubdub.Version, r.Lubdub.Go, r.Redis.Version, r.Machine.OS,
		r.Machine.Arch, r.Machine.Cores, r.Machine.CPU)
	for i := range r.Scenarios {
		r.Scenarios[i].table(b)
	}
	r.barTable(b)
	for _, note := range r.Notes {
		fmt.Fprintf(b, "\n%s\n", note)
	}
	for _, s := range r.Scenarios {
		if s.Failed != "" {
			fmt.Fprintf(b, "\nscenario %s FAILED: %s\n", s.Name, s.Failed)
		}
	}
	if r.Quick {
		fmt.Fprint(b, "\nA quick run: it shows that all works, and its numbers prove little.\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// barTable is what | bar | measured | met?
func (r *Report) barTable(b *strings.Builder) {
	fmt.Fprintln(b)
	t := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "what\tbar\taim\tmeasured\tmet?\t")
	for i := range r.Bars {
		row := rowOf(&r.Bars[i])
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t\n", row.What, row.Bar, row.Aim, row.Measured, row.verdict("MISSED"))
	}
	_ = t.Flush()
	if r.HasMissed() {
		fmt.Fprintln(b, "\nWhat profiles say of the bars that are missed is in bench/README.md.")
	}
}

func (s *Scenario) table(b *strings.Builder) {
	fmt.Fprintf(b, "\n%s (%.0f s)\n", s.Title, s.Seconds)
	t := tabwriter.NewWriter(b, 0, 0, 2, ' ', tabwriter.AlignRight)
	if len(s.Runs) > 0 {
		fmt.Fprintln(t, "program\tround\tloop\ttracked\tbeats/s\tserver µs\tRedis µs\tbeats/flush\tp50 ms\tp99 ms\tmax ms\tlate p99 ms\tnot OK\t")
	}
	for _, r := range s.Runs {
		name := r.Program
		if r.Variant != "" {
			name += " " + r.Variant
		}
		p50, p99, most := "–", "–", "–"
		if q := r.Latency; q != nil {
			p50, p99, most = fmt.Sprintf("%.2f", q.P50Ms), fmt.Sprintf("%.2f", q.P99Ms), fmt.Sprintf("%.2f", q.MaxMs)
		}
		late := "–"
		if r.OwnLateness != nil {
			late = fmt.Sprintf("%.2f", r.OwnLateness.P99Ms)
		}
		fmt.Fprintf(t, "%s\t%d\t%s\t%d\t%.0f\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t\n", name, r.Round, r.Loop, r.Tracked, r.BeatsPerSecond,
			orDash(r.ServerMicros), orDash(r.RedisMicros), orDash(r.FlushBeats), p50, p99, most, late, cmp.Or(Refusals(r.NotOK), "0"))
	}
	_ = t.Flush() // a strings.Builder takes everything
	for _, d := range s.Distributions {
		q := &d.Quantiles
		fmt.Fprintf(b, "  %s: p50 %s, p90 %s, p99 %s, max %s ms\n", d.What, Number(q.P50Ms), Number(q.P90Ms), Number(q.P99Ms), Number(q.MaxMs))
	}
	group := ""
	for _, f := range s.Figures {
		indent := "  "
		if f.Group != "" {
			indent = "    "
			if f.Group != group {
				fmt.Fprintf(b, "  of which\n")
			}
		}
		group = f.Group
		fmt.Fprintf(b, "%s%s: %s\n", indent, f.What, WithUnit(f.Value, f.Unit))
	}
	for _, note := range s.Notes {
		fmt.Fprintf(b, "  %s\n", note)
	}
}

func orDash(v *float64) string {
	if v == nil {
		return "–"
	}
	return fmt.Sprintf("%.2f", *v)
}
