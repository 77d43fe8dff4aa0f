package judge

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

// Limits of the failures that workers report, in five minutes: a few failures among many successes are what retries are for.
const (
	failuresAtLeast = 5
	failuresShare   = 0.1 // of all attempts that ended, unless one version is the likely cause
	failuresShown   = 3   // groups that a message names

	fiveMinutes = 5 * time.Minute
)

// failures warns about attempts that workers report as failed, and names the version of workers that is the likely cause.
func (v *verdict) failures(f *v1.Failures, now time.Time) {
	if f.LastFiveMinutes < failuresAtLeast || len(f.Groups) == 0 {
		return
	}
	first := f.Groups[0]
	suspect := first.SuspectVersion
	// The server lists the newest failures only: if all of these are of the last five minutes, there were more.
	more := f.Truncated && f.LastFiveMinutes == f.Total
	failed := float64(f.LastFiveMinutes)
	if more {
		failed *= float64(fiveMinutes) / float64(max(time.Second, now.Sub(oldest(f.Groups))))
	}
	if suspect == nil && failed < failuresShare*(failed+float64(f.Succeeded)) {
		return
	}
	var groups []string
	unnamed := 0
	for i, g := range f.Groups {
		switch {
		case g.LastFiveMinutes == 0:
		case i < failuresShown:
			groups = append(groups, fmt.Sprintf("%d x %s (queue %s, type %s)", g.LastFiveMinutes, errorOf(&g), orNone(g.Queue), orNone(g.Type)))
		default:
			unnamed++
		}
	}
	if unnamed > 0 {
		groups = append(groups, "and "+count(unnamed, "more group"))
	}
	says := fmt.Sprintf("Workers reported %s%s as failed in the last five minutes, and %s: %s.", either(more, "at least ", ""),
		count(f.LastFiveMinutes, "attempt"), haveSucceeded(f.Succeeded), strings.Join(groups, "; "))
	remedy := "lubdub why " + first.TaskID
	if suspect != nil {
		says += fmt.Sprintf(" All of the first group ran on version %s, which %d of the %s for such tasks %s.", suspect.Version, suspect.Workers,
			count(suspect.Of, "worker"), either(suspect.Workers == 1, "runs", "run"))
		remedy += "; if that version is the cause: " + either(v.reader.Operates, "", "ask an operator to run ") +
			"lubdub worker cordon --version=" + shellWord(suspect.Version) + queueFlag(first.Queue) + ", and roll it back"
	}
	v.warn("failures", says, remedy)
}

// oldest returns when the first of some failures was.
func oldest(all []v1.FailureGroup) time.Time {
	return slices.MinFunc(all, func(a, b v1.FailureGroup) int { return a.FirstAt.Compare(b.FirstAt.Time) }).FirstAt.Time
}

func errorOf(g *v1.FailureGroup) string {
	if g.Error == "" {
		return "no error given"
	}
	return g.Error
}

func haveSucceeded(n int) string {
	if n == 0 {
		return "no task succeeded"
	}
	return count(n, "task") + " succeeded"
}

func queueFlag(queue *string) string {
	if queue == nil {
		return ""
	}
	return " --queue " + *queue
}

// plainWord is text that a shell takes as it is.
var plainWord = regexp.MustCompile(`^[\w.:+@%,/-]+$`)

// shellWord returns text as one word of a shell command: workers choose their version freely.
func shellWord(s string) string {
	if plainWord.MatchString(s) {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
