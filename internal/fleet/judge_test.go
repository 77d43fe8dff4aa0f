package fleet

import (
	"strings"
	"testing"
	"time"

	v1 "github.com/lubdub-io/lubdub/api/v1"
)

// A verdict that is right in every way, to be spoilt in one way at a time.
func rightZombie() (Expect, Seen) {
	due := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	reason := "HEARTBEAT_TIMEOUT"
	want := Expect{State: v1.Failed, Reason: reason, Attempts: []ExpectAttempt{{Outcome: "ZOMBIE", Reason: reason, Due: due, Timeout: time.Second}}}
	task := &v1.Task{TaskID: "t", State: v1.Failed, Reason: &reason, History: []v1.HistoryEntry{{
		Attempt: 1, Outcome: "ZOMBIE", Reason: &reason,
		Evidence: &v1.Evidence{SilentMs: 1003, TimeoutMs: 1000, DetectedAt: v1.At(due.Add(3 * time.Millisecond)), DetectionLagMs: 3},
	}}}
	return want, Seen{Task: task, Silence: 300 * time.Millisecond, Timeout: time.Second}
}

func TestJudge(t *testing.T) {
	for _, c := range []struct {
		name  string
		spoil func(*Expect, *Seen)
		want  string // part of the only complaint; empty: none
	}{
		{"right", func(*Expect, *Seen) {}, ""},
		{"just in time", func(_ *Expect, s *Seen) {
			e := s.Task.History[0].Evidence
			e.DetectionLagMs, e.DetectedAt = 250, v1.At(e.DetectedAt.Add(247*time.Millisecond))
		}, ""},
		{"lag in the evidence", func(_ *Expect, s *Seen) { s.Task.History[0].Evidence.DetectionLagMs = 251 }, "251ms late"},
		{"lag by our own clock", func(_ *Expect, s *Seen) {
			e := s.Task.History[0].Evidence
			e.DetectedAt = v1.At(e.DetectedAt.Add(248 * time.Millisecond))
		}, "251ms late"},
		{"an outage is credited", func(_ *Expect, s *Seen) {
			e := s.Task.History[0].Evidence
			e.DetectedAt, e.OutageCreditMs = v1.At(e.DetectedAt.Add(5*time.Second)), 5000
		}, ""},
		{"an outage is credited too much", func(_ *Expect, s *Seen) { s.Task.History[0].Evidence.OutageCreditMs = 5000 }, "4.997s early"},
		{"early by our own clock", func(w *Expect, _ *Seen) { w.Attempts[0].Due = w.Attempts[0].Due.Add(24 * time.Millisecond) }, "21ms early"},
		{"early by the evidence", func(_ *Expect, s *Seen) { s.Task.History[0].Evidence.DetectionLagMs = -1 }, "1ms early"},
		{"not silent for long enough", func(_ *Expect, s *Seen) { s.Task.History[0].Evidence.SilentMs = 999 }, "after 999 ms of silence"},
		{"another timeout", func(w *Expect, s *Seen) { w.Attempts[0].Timeout = 2 * time.Second }, "a timeout of 1000 ms, and should of 2000"},
		{"no time in the evidence", func(_ *Expect, s *Seen) { s.Task.History[0].Evidence.DetectedAt = v1.Time{} }, "does not say when"},
		{"no evidence", func(_ *Expect, s *Seen) { s.Task.History[0].Evidence = nil }, "has no evidence"},
		{"evidence of nothing", func(w *Expect, _ *Seen) { w.Attempts[0].Due = time.Time{} }, "its worker ended it"},
		{"gone", func(_ *Expect, s *Seen) { s.Task = nil }, "gone"},
		{"missed", func(_ *Expect, s *Seen) { s.Task.State, s.Waited = v1.Running, 5*time.Second }, "still RUNNING 5s after"},
		{"another state", func(_ *Expect, s *Seen) { s.Task.State = v1.Cancelled }, "CANCELLED HEARTBEAT_TIMEOUT, and should be FAILED"},
		{"another reason", func(w *Expect, _ *Seen) { w.Reason = "RUN_TIMEOUT" }, "should be FAILED RUN_TIMEOUT"},
		{"another attempt", func(_ *Expect, s *Seen) { s.Task.History[0].Attempt = 2 }, "attempt 2 of its history"},
		{"another outcome", func(_ *Expect, s *Seen) { s.Task.History[0].Outcome = "LOST" }, "ended LOST HEARTBEAT_TIMEOUT, and should be attempt 1, ZOMBIE"},
		{"one attempt too many", func(_ *Expect, s *Seen) {
			s.Task.History = append(s.Task.History, v1.HistoryEntry{Attempt: 2, Outcome: "SUCCEEDED"})
		}, "2 ended attempts"},
		{"a complaint", func(_ *Expect, s *Seen) { s.Complaints = []string{"an odd answer"} }, "an odd answer"},
	} {
		t.Run(c.name, func(t *testing.T) {
			want, seen := rightZombie()
			c.spoil(&want, &seen)
			v := DefaultBounds.Judge(want, seen)
			if c.want == "" && len(v.Wrong) > 0 {
				t.Errorf("wrong: %q", v.Wrong)
			}
			if c.want != "" && (len(v.Wrong) != 1 || !strings.Contains(v.Wrong[0], c.want)) {
				t.Errorf("%q, want one complaint with %q", v.Wrong, c.want)
			}
		})
	}
}

// Whether a live worker was killed, or was late itself, hangs on its silence alone.
func TestJudgeLiveOrLate(t *testing.T) {
	_, seen := rightZombie()
	want := Expect{State: v1.Succeeded, Attempts: []ExpectAttempt{{Outcome: "SUCCEEDED"}}}
	seen.Silence = 999 * time.Millisecond
	if v := DefaultBounds.Judge(want, seen); len(v.Wrong) < 2 || !strings.Contains(v.Wrong[0], "a live task was failed") || v.Unclear != "" {
		t.Errorf("%+v", v)
	}
	seen.Silence = time.Second
	seen.Complaints = []string{"beat: 410"}
	if v := DefaultBounds.Judge(want, seen); len(v.Wrong) > 0 || v.Unclear == "" {
		t.Errorf("%+v", v)
	}
	// Late or not: a wrong end that is no zombie's is not excused.
	want, seen = rightZombie()
	want.Reason, seen.Silence = "RUN_TIMEOUT", time.Hour
	if v := DefaultBounds.Judge(want, seen); len(v.Wrong) == 0 {
		t.Errorf("%+v", v)
	}
}

func TestSummaryCheck(t *testing.T) {
	for _, c := range []struct {
		s    Summary
		want string
	}{
		{Summary{Created: 100, Judged: 100}, ""},
		{Summary{Created: 100, Judged: 100, Unclear: 5}, ""},
		{Summary{Created: 5, Judged: 5, Unclear: 1}, ""},
		{Summary{Created: 100, Judged: 100, Wrongs: 1}, "1 of 100 verdicts were wrong"},
		{Summary{Created: 100, Judged: 99}, "only 99 of 100"},
		{Summary{}, "no task was judged"},
		{Summary{Created: 100, Judged: 100, Unclear: 6}, "too busy"},
	} {
		err := c.s.Check()
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v", c.s, err)
		}
	}
}

func TestSummaryWrite(t *testing.T) {
	var b strings.Builder
	s := Summary{Created: 3, Judged: 3, Failed: 2, Reasons: map[string]int{"HEARTBEAT_TIMEOUT": 2}, Zombies: 2, Lags: 2, LagP50: 3 * time.Millisecond, Most: 9 * time.Millisecond,
		Wrongs: 1, Wrong: []Verdict{{TaskID: "task_1", Behaviour: "steady", State: v1.Failed, Reason: "HEARTBEAT_TIMEOUT", Wrong: []string{"a live task was failed"}}}}
	if err := s.Write(&b); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"HEARTBEAT_TIMEOUT", "max 9 ms", "wrong verdicts", "WRONG  task_1  steady  FAILED HEARTBEAT_TIMEOUT  wrong: a live task was failed"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("%q is missing in\n%s", want, b.String())
		}
	}
}

func TestQuantile(t *testing.T) {
	var l []time.Duration
	for i := range 100 {
		l = append(l, time.Duration(i+1))
	}
	for q, want := range map[float64]time.Duration{0.5: 50, 0.99: 99, 1: 100, 0: 1} {
		if got := quantile(l, q); got != want {
			t.Errorf("%v: %v, want %v", q, got, want)
		}
	}
	if quantile(l[:1], 0.99) != 1 {
		t.Error("of one")
	}
}
