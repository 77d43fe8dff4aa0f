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

// maxUnclear is the share of unclear tasks above which the whole check proves nothing.
const maxUnclear = 0.05

// ErrTooBusy means that the machine was too busy for the check to prove anything.
var ErrTooBusy = errors.New("this machine is too busy to prove anything")

// Check returns nil if everything observed was correct, and enough was observed.
func (s Summary) Check() error {
	switch {
	case s.Wrongs > 0:
		return fmt.Errorf("%d of %d verdicts were wrong", s.Wrongs, s.Evaluated)
	case s.Evaluated == 0:
		return errors.New("no task was checked, so nothing is proved")
	case s.Evaluated < s.Created:
		return fmt.Errorf("only %d of %d tasks were checked", s.Evaluated, s.Created)
	case float64(s.Unclear+s.Mishaps) > max(1, maxUnclear*float64(s.Evaluated)):
		return fmt.Errorf("with %d tasks, %d workers were themselves late or calls had no answer: %w", s.Evaluated, s.Unclear+s.Mishaps,
			ErrTooBusy)
	}
	return nil
}

// Status returns the summary in one line, for a show that is under way.
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
	if s.Elapsed > 0 {
		row("held up itself", "%s at most, %.1f %% of the time", milliseconds(s.DelayMost), 100*s.Delay.Seconds()/s.Elapsed.Seconds())
	}
	row("beats sent", "%d in %.1f s", s.Beats, s.Elapsed.Seconds())
	if s.Retries > 0 {
		row("calls made again", "%d", s.Retries)
	}
	if s.Unclear > 0 {
		row("unclear", "%d, whose worker was late itself or whose time was held back", s.Unclear)
	}
	if s.Mishaps > 0 {
		row("mishaps", "%d, of a worker or call that was late itself", s.Mishaps)
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

// String returns the table that Write prints.
func (s Summary) String() string {
	b := &strings.Builder{}
	_ = s.Write(b) // a Builder does not fail
	return b.String()
}

// String returns the verdict in one line.
func (v Verdict) String() string {
	b := &strings.Builder{}
	about := []string{v.TaskID, v.Behaviour, outcome(v.State, v.Reason)}
	b.WriteString(strings.Join(slices.DeleteFunc(about, func(s string) bool { return s == "" }), "  "))
	for _, e := range v.Ended {
		if e.Outcome == "ZOMBIE" {
			fmt.Fprintf(b, "  silent %d ms of %d", e.Evidence.SilentMs, e.Evidence.TimeoutMs)
		}
		fmt.Fprintf(b, "  detected %s late", milliseconds(e.Lag))
		if e.Delay >= time.Millisecond {
			fmt.Fprintf(b, " (%s held up)", milliseconds(e.Delay))
		}
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
