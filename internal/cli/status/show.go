package status

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/lubdub-io/lubdub/internal/cli/deployment"
	"github.com/lubdub-io/lubdub/internal/cli/output"
	"github.com/lubdub-io/lubdub/internal/cli/resource"
	"github.com/lubdub-io/lubdub/internal/cli/session"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

// show answers people; failed are the newest failed tasks.
func show(s *session.Session, st *deployment.State, all []v1.Finding, failed *resource.Page[v1.Task]) {
	headline := s.Paint(output.Good, "HEALTHY")
	switch v1.Worst(all) {
	case v1.SeverityFail:
		warnings := ""
		if n := count(all, v1.SeverityWarn); n > 0 {
			warnings = ", " + output.Count(n, "warning")
		}
		headline = s.Paint(output.Bad, "UNHEALTHY ("+output.Count(count(all, v1.SeverityFail), "failure")+warnings+")")
	case v1.SeverityWarn:
		headline = s.Paint(output.Doubtful, "DEGRADED ("+output.Count(count(all, v1.SeverityWarn), "warning")+")")
	}
	fmt.Fprintf(s.W, "%s  %s  %s\n", headline, s.Scope(), session.FormatTime(v1.At(s.Now())))
	heading(s, "Heartbeats")
	showSilent(s, st)
	heading(s, "Findings")
	if st.System != nil && st.System.Summary.Title != "" {
		fmt.Fprintf(s.W, "  %s.\n", output.Clean(st.System.Summary.Title))
	}
	showFindings(s, st, all)
	heading(s, "Declared dead in the last hour")
	showLost(s, st)
	showFailures(s, st)
	heading(s, "What to do")
	showWhatToDo(s, st, all, failed)
}

// count counts the findings of a severity.
func count(all []v1.Finding, how v1.Severity) (n int) {
	for _, f := range all {
		if f.Severity == how {
			n++
		}
	}
	return n
}

func heading(s *session.Session, text string) { fmt.Fprintf(s.W, "\n%s\n", s.Bold(text)) }

// unknown is shown where an answer is missing.
const unknown = "  Not available now."

func showSilent(s *session.Session, st *deployment.State) {
	if st.Stats == nil {
		fmt.Fprintln(s.W, unknown)
		return
	}
	w := st.Stats.Workers
	overdue := "sweepers are on time"
	if st.Stats.OldestOverdueMs > 0 {
		overdue = "sweepers are " + output.Milliseconds(st.Stats.OldestOverdueMs) + " late"
	}
	fmt.Fprintf(s.W, "  %s fresh, %d late, %d silent past the timeout; %s.\n", output.Count(w.Fresh, "worker"), w.Late, w.Lost, overdue)
	for _, e := range st.Silent {
		w := e.Value
		how := "late"
		if w.Liveness == v1.LivenessLost {
			how = "past the timeout"
		}
		fmt.Fprintf(s.W, "  %s: %s%s on %s: silent for %s (timeout %s), holds %s\n", s.Paint(output.Word(w.Liveness).Mood, how), w.WorkerID,
			output.Parenthesized(w.Name), output.Clean(w.MachineID), resource.Silence(w).Text, output.Milliseconds(w.HeartbeatTimeoutMs),
			output.Count(w.HeldCount, "task"))
	}
	if st.MoreSilent > 0 {
		fmt.Fprintf(s.W, "  and %d more: lubdub worker ls --silent\n", st.MoreSilent)
	}
}

// showFindings shows what is not well, failures first, and for a party without problems that there are none.
func showFindings(s *session.Session, st *deployment.State, all []v1.Finding) {
	wrong := map[string]bool{}
	for _, f := range all {
		if f.Severity != v1.SeverityOK {
			wrong[party(&f)] = true
			fmt.Fprintf(s.W, "  %-8s %s %s\n", party(&f)+":", s.Paint(output.SeverityMoods[f.Severity], fmt.Sprintf("%-4s", f.Severity)),
				output.Clean(f.Message))
		}
	}
	for _, who := range []string{"Lubdub", "workers"} {
		switch {
		case wrong[who]:
		case who == "workers" && !st.Responds:
			fmt.Fprintln(s.W, "  workers: not available now")
		default:
			fmt.Fprintf(s.W, "  %-8s %s   no problems found.", who+":", s.Paint(output.Good, "ok"))
			for _, f := range all {
				if party(&f) == who && (f.Code == "replicas" || f.Code == "shards" || f.Code == "shard-time" || f.Code == "redis-round-trip") {
					fmt.Fprintf(s.W, " %s", output.Clean(f.Message))
				}
			}
			fmt.Fprintln(s.W)
		}
	}
}

// party is what a finding is about: Lubdub with its Redis, or the workers.
func party(f *v1.Finding) string {
	if f.About == v1.Them {
		return "workers"
	}
	return "Lubdub"
}

// maxLostWorkers is how many lost workers are shown.
const maxLostWorkers = 5

func showLostWorkers(s *session.Session, st *deployment.State) {
	if st.System == nil || !st.Responds {
		return
	}
	lost := st.System.RecentlyLost
	for _, w := range lost[:min(maxLostWorkers, len(lost))] {
		last := "no heartbeat"
		if !w.LastHeartbeatAt.IsZero() {
			last = "last heartbeat " + output.Age(w.LastHeartbeatAt.Time, s.Now()).Text + " ago"
		}
		fmt.Fprintf(s.W, "  Worker %s%s on %s (queue %s) lost %s ago (%s), %s; it held %s.\n", w.WorkerID, output.Parenthesized(w.Name),
			output.Clean(w.MachineID), output.Clean(w.Queue), output.Age(w.LostAt.Time, s.Now()).Text, w.Reason, last,
			output.Count(w.Attempts, "attempt"))
	}
	if more := max(len(lost), st.System.RecentlyLostTotal) - maxLostWorkers; more > 0 {
		fmt.Fprintf(s.W, "  and %d more workers: lubdub status -o json\n", more)
	}
}

// maxLosses is how many groups of losses are shown.
const maxLosses = 5

func showLost(s *session.Session, st *deployment.State) {
	showLostWorkers(s, st)
	v := st.Verdicts
	if v == nil {
		fmt.Fprintln(s.W, unknown)
		return
	}
	if v.Total == 0 && (st.System == nil || len(st.System.RecentlyLost) == 0) {
		fmt.Fprintln(s.W, "  None.")
	}
	if v.Total == 0 {
		return
	}
	fmt.Fprintf(s.W, "  Lubdub ended %s:\n", output.Count(v.Total, "attempt"))
	for _, g := range v.Groups[:min(maxLosses, len(v.Groups))] {
		where := ""
		for _, part := range []struct {
			name  string
			value *string
		}{{"machine", g.MachineID}, {"version", g.Version}, {"queue", g.Queue}} {
			if part.value != nil && *part.value != "" {
				where += ", " + part.name + " " + output.Clean(*part.value)
			}
		}
		fmt.Fprintf(s.W, "  %5d  %s%s, most recently %s ago\n", g.Count, output.Optional(g.Reason).Text, where, output.Age(g.LastAt.Time,
			s.Now()).Text)
	}
	if more := len(v.Groups) - maxLosses; more > 0 {
		fmt.Fprintf(s.W, "  and %d more groups: lubdub status -o json\n", more)
	}
}

// maxFailures is how many groups of failures are shown.
const maxFailures = 5

// showFailures shows the failures that workers reported, if there are any.
func showFailures(s *session.Session, st *deployment.State) {
	if st.System == nil || st.System.RecentFailures.Total == 0 {
		return
	}
	heading(s, "Reported as failed in the last hour")
	f := &st.System.RecentFailures
	for _, g := range f.Groups[:min(maxFailures, len(f.Groups))] {
		versions := ""
		if len(g.Versions) > 0 {
			versions = ", version " + output.Clean(strings.Join(g.Versions, ", "))
		}
		fmt.Fprintf(s.W, "  %5d  %s, queue %s, type %s%s, most recently %s ago: task %s\n", g.Count,
			output.Clean(cmp.Or(g.Error, "no error given")), output.Optional(g.Queue).Text, output.Optional(g.Type).Text, versions,
			output.Age(g.LastAt.Time, s.Now()).Text, g.TaskID)
	}
	if more := len(f.Groups) - maxFailures; more > 0 {
		fmt.Fprintf(s.W, "  and %d more groups: lubdub status -o json\n", more)
	}
	if f.Truncated {
		fmt.Fprintln(s.W, "  There may have been more: the server keeps the newest 1,000 in each shard.")
	}
}

func showWhatToDo(s *session.Session, st *deployment.State, all []v1.Finding, failed *resource.Page[v1.Task]) {
	shown := 0
	seen := map[string]bool{"": true} // several findings may have the same remedy
	for _, f := range all {
		if !seen[f.Remedy] {
			seen[f.Remedy] = true
			shown++
			fmt.Fprintf(s.W, "  - %s\n", output.Clean(f.Remedy))
		}
	}
	if len(st.Silent) > 0 {
		shown++
		fmt.Fprintf(s.W, "  - lubdub why %s\n", st.Silent[0].Value.WorkerID)
	}
	if len(failed.Entries) > 0 {
		shown++
		id := failed.Entries[0].Value.TaskID
		which, retry := "", "lubdub task retry "+id
		if more := st.Stats.Tasks[string(v1.Failed)] - 1; more > 0 {
			which = fmt.Sprintf(" (and %s: lubdub task ls --state failed --since 1h)", output.Count(more, "more failed task"))
			retry = "lubdub task retry --since 1h --dry-run, then without --dry-run"
		}
		if !s.Credential.MayOperate() {
			retry = "ask an operator to run " + retry
		}
		fmt.Fprintf(s.W, "  - lubdub why %s%s; once the cause is fixed: %s\n", id, which, retry)
	}
	if shown == 0 {
		fmt.Fprintln(s.W, "  Nothing.")
	}
}
