package fleet

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// maxUnclear is the share of tasks that may say nothing before the whole check says nothing.
const maxUnclear = 0.05

// Check is nil when everything that was seen was right, and enough was seen to say so.
func (s Summary) Check() error {
	switch {
	case s.Wrongs > 0:
		return fmt.Errorf("%d of %d verdicts were wrong", s.Wrongs, s.Judged)
	case s.Judged == 0:
		return errors.New("no task was judged, so nothing is proved")
	case s.Judged < s.Created:
		return fmt.Errorf("only %d of %d tasks were judged", s.Judged, s.Created)
	case float64(s.Unclear) > max(1, maxUnclear*float64(s.Judged)):
		return fmt.Errorf("%d of %d workers were themselves late: this machine is too busy to prove anything", s.Unclear, s.Judged)
	}
	return nil
}

// Status is the summary in one line, for a show that is under way.
func (s Summary) Status() string {
	line := fmt.Sprintf("%3.0fs  live %d  succeeded %d  failed %d  cancelled %d  zombies %d  beats %d",
		s.Elapsed.Seconds(), s.Live, s.Succeeded, s.Failed, s.Cancelled, s.Zombies, s.Beats)
	if s.Lags > 0 {
		line += fmt.Sprintf("  lag p50 %s max %s", milliseconds(s.LagP50), milliseconds(s.Most))
	}
	return line + fmt.Sprintf("  wrong %d", s.Wrongs)
}

// Write prints the summary as a table.
func (s Summary) Write(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	row := func(name string, format string, args ...any) {
		fmt.Fprintf(t, "  %s\t%s\n", name, fmt.Sprintf(format, args...))
	}
	row("tasks created", "%d", s.Created)
	row("succeeded", "%d", s.Succeeded)
	row("failed", "%d", s.Failed)
	for _, reason := range slices.Sorted(maps.Keys(s.Reasons)) {
		row("  "+reason, "%d", s.Reasons[reason])
	}
	row("cancelled", "%d", s.Cancelled)
	if s.Unfinished > 0 {
		row("unfinished", "%d", s.Unfinished)
	}
	row("zombies", "%d", s.Zombies)
	if s.Killed > 0 {
		row("workers killed", "%d, of whose tasks %d were recovered", s.Killed, s.Recovered)
	}
	row("detection lag", "p50 %s  p99 %s  max %s  (%d verdicts)", milliseconds(s.LagP50), milliseconds(s.LagP99), milliseconds(s.Most), s.Lags)
	row("beats sent", "%d in %.1f s", s.Beats, s.Elapsed.Seconds())
	if s.Retries > 0 {
		row("calls made again", "%d", s.Retries)
	}
	if s.Unclear > 0 {
		row("unclear", "%d, whose worker was late itself", s.Unclear)
	}
	row("wrong verdicts", "%d", s.Wrongs)
	if err := t.Flush(); err != nil {
		return err
	}
	for _, v := range s.Wrong {
		if _, err := fmt.Fprintf(w, "  WRONG  %s\n", v); err != nil {
			return err
		}
	}
	return nil
}

// String is the table that Write prints.
func (s Summary) String() string {
	b := &strings.Builder{}
	_ = s.Write(b) // a Builder takes everything
	return b.String()
}

// String tells the verdict in one line.
func (v Verdict) String() string {
	b := &strings.Builder{}
	fmt.Fprintf(b, "%s  %s  %s", v.TaskID, v.Behaviour, outcome(v.State, v.Reason))
	for _, e := range v.Ended {
		if e.Outcome == "ZOMBIE" {
			fmt.Fprintf(b, "  silent %d ms of %d", e.Evidence.SilentMs, e.Evidence.TimeoutMs)
		}
		fmt.Fprintf(b, "  detected %s late", milliseconds(e.Lag))
	}
	for _, w := range v.Wrong {
		b.WriteString("  wrong: " + w)
	}
	if v.Unclear != "" {
		b.WriteString("  unclear: " + v.Unclear)
	}
	return b.String()
}

func milliseconds(d time.Duration) string { return fmt.Sprintf("%d ms", d.Milliseconds()) }
