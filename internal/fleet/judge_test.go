package fleet

import (
	"strings"
	"testing"
	"time"

	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

// A verdict that is right in every way, to be spoilt in one way at a time.
func rightZombie() (Expect, Seen) {
	due := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	reason := "HEARTBEAT_TIMEOUT"
	want := Expect{State: v1.Failed, Reason: reason, Attempts: []ExpectAttempt{{Outcome: "ZOMBIE", Reason: reason, Due: due,
		Timeout: time.Second}}}
	task := &v1.Task{TaskID: "t", State: v1.Failed, Reason: &reason, History: []v1.HistoryEntry{{
		Attempt: 1, Outcome: "ZOMBIE", Reason: &reason,
		Evidence: &v1.Evidence{SilentMs: 1003, TimeoutMs: 1000, DetectedAt: v1.At(due.Add(3 * time.Millisecond)), DetectionLagMs: 3},
	}}}
	return want, Seen{Task: task, Silence: 300 * time.Millisecond, Timeout: time.Second}
}

func TestEvaluate(t *testing.T) {
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
		{"late, and the process was held up so long", func(_ *Expect, s *Seen) {
			s.Task.History[0].Evidence.DetectionLagMs, s.Delay = 700, held(450*time.Millisecond)
		}, ""},
		{"later than the process was held up", func(_ *Expect, s *Seen) {
			s.Task.History[0].Evidence.DetectionLagMs, s.Delay = 701, held(450*time.Millisecond)
		}, "701ms late, 701ms by its own evidence, and may be 250ms at most plus the 450ms"},
		{"held up for longer than it was late", func(_ *Expect, s *Seen) { s.Delay = held(time.Hour) }, ""},
		{"early, and held up", func(w *Expect, s *Seen) {
			w.Attempts[0].Due, s.Delay = w.Attempts[0].Due.Add(24*time.Millisecond), held(time.Second)
		}, "21ms early"},
		{"early by less than its last beat took", func(w *Expect, _ *Seen) {
			w.Attempts[0].Due, w.Attempts[0].Unsure = w.Attempts[0].Due.Add(24*time.Millisecond), 21*time.Millisecond
		}, ""},
		{"an outage is credited", func(_ *Expect, s *Seen) {
			e := s.Task.History[0].Evidence
			e.DetectedAt, e.OutageCreditMs = v1.At(e.DetectedAt.Add(5*time.Second)), 5000
		}, ""},
		{"an outage is credited 53 ms too much, of which 3 are its lag",
			func(_ *Expect, s *Seen) { s.Task.History[0].Evidence.OutageCreditMs = 53 }, ""},
		{"and one more", func(_ *Expect, s *Seen) { s.Task.History[0].Evidence.OutageCreditMs = 54 }, "51ms early"},
		{"an outage before a deadline", func(w *Expect, s *Seen) {
			w.Attempts[0].Timeout, s.Task.History[0].Evidence.OutageCreditMs = 0, 5000
		}, ""},
		{"an outage is credited too much", func(_ *Expect, s *Seen) { s.Task.History[0].Evidence.OutageCreditMs = 5000 }, "4.997s early"},
		{"early by our own clock", func(w *Expect, _ *Seen) { w.Attempts[0].Due = w.Attempts[0].Due.Add(24 * time.Millisecond) }, "21ms early"},
		{"early by the evidence", func(_ *Expect, s *Seen) { s.Task.History[0].Evidence.DetectionLagMs = -1 }, "1ms early"},
		{"not silent for long enough", func(_ *Expect, s *Seen) { s.Task.History[0].Evidence.SilentMs = 999 }, "after 999 ms of silence"},
		{"another timeout", func(w *Expect, s *Seen) { w.Attempts[0].Timeout = 2 * time.Second }, "a timeout of 1000 ms, want 2000"},
		{"no time in the evidence", func(_ *Expect, s *Seen) { s.Task.History[0].Evidence.DetectedAt = v1.Time{} }, "the evidence has no time"},
		{"no evidence", func(_ *Expect, s *Seen) { s.Task.History[0].Evidence = nil }, "has no evidence"},
		{"evidence of nothing", func(w *Expect, _ *Seen) { w.Attempts[0].Due = time.Time{} }, "its worker ended it"},
		{"gone", func(_ *Expect, s *Seen) { s.Task = nil }, "gone"},
		{"missed", func(_ *Expect, s *Seen) { s.Task.State, s.Waited = v1.Running, 5*time.Second }, "still RUNNING 5s after"},
		{"another state", func(_ *Expect, s *Seen) { s.Task.State = v1.Cancelled }, "CANCELLED HEARTBEAT_TIMEOUT, and should be FAILED"},
		{"another reason", func(w *Expect, _ *Seen) { w.Reason = "RUN_TIMEOUT" }, "should be FAILED RUN_TIMEOUT"},
		{"another attempt", func(_ *Expect, s *Seen) { s.Task.History[0].Attempt = 2 }, "entry 1 of its history is of attempt 2"},
		{"another outcome", func(_ *Expect, s *Seen) { s.Task.History[0].Outcome = "TIMED_OUT" },
			"ended TIMED_OUT HEARTBEAT_TIMEOUT, and should be ZOMBIE"},
		{"one attempt too many", func(_ *Expect, s *Seen) {
			s.Task.History = append(s.Task.History, v1.HistoryEntry{Attempt: 2, Outcome: "SUCCEEDED"})
		}, "2 ended attempts"},
		{"an attempt that ended twice", func(w *Expect, s *Seen) {
			w.Attempts = append(w.Attempts, w.Attempts[0])
			s.Task.History = append(s.Task.History, s.Task.History[0])
		}, "attempt 1 ended 2 times"},
		{"not read back for an outage", func(_ *Expect, s *Seen) { s.Task, s.Unread = nil, "503" }, ""},
		{"a complaint of a late worker, and not read back", func(_ *Expect, s *Seen) {
			s.Task, s.Unread, s.Complaints, s.Silence = nil, "503", []string{"an odd answer"}, time.Second
		}, ""},
		{"a complaint, and not read back", func(_ *Expect, s *Seen) { s.Task, s.Unread, s.Complaints = nil, "503", []string{"an odd answer"} },
			"an odd answer"},
		{"a complaint", func(_ *Expect, s *Seen) { s.Complaints = []string{"an odd answer"} }, "an odd answer"},
	} {
		t.Run(c.name, func(t *testing.T) {
			want, seen := rightZombie()
			c.spoil(&want, &seen)
			v := DefaultBounds.Evaluate(want, seen)
			if c.want == "" && len(v.Wrong) > 0 {
				t.Errorf("wrong: %q", v.Wrong)
			}
			if c.want != "" && (len(v.Wrong) != 1 || !strings.Contains(v.Wrong[0], c.want)) {
				t.Errorf("%q, want one complaint with %q", v.Wrong, c.want)
			}
		})
	}
}

// A run timeout that is late by the fleet's own estimate alone proves nothing where the host held up the process, and so shard time.
func TestEvaluateTimeThatWasHeldBack(t *testing.T) {
	for _, c := range []struct {
		name, outcome   string
		delay, reported time.Duration
		wrong           bool
	}{
		{"held up", "TIMED_OUT", 300 * time.Millisecond, 0, false},
		{"held up too briefly", "TIMED_OUT", 250 * time.Millisecond, 0, true},
		{"not held up", "TIMED_OUT", 0, 0, true},
		{"late by its own evidence", "TIMED_OUT", 300 * time.Millisecond, 251 * time.Millisecond, true},
		{"of silence, whose evidence shows the delay", "ZOMBIE", 300 * time.Millisecond, 0, true},
	} {
		want, seen := rightZombie()
		e := seen.Task.History[0].Evidence
		want.Attempts[0].Outcome, seen.Task.History[0].Outcome = c.outcome, c.outcome
		e.DetectedAt, e.DetectionLagMs = v1.At(want.Attempts[0].Due.Add(time.Second)), c.reported.Milliseconds()
		seen.Delay = held(c.delay)
		if v := DefaultBounds.Evaluate(want, seen); (len(v.Wrong) > 0) != c.wrong || (v.Unclear != "") == c.wrong {
			t.Errorf("%s: %+v", c.name, v)
		}
	}
}

// Whether a live worker was killed, or was late itself, hangs on its silence alone.
func TestEvaluateLiveOrLate(t *testing.T) {
	_, seen := rightZombie()
	want := Expect{State: v1.Succeeded, Attempts: []ExpectAttempt{{Outcome: "SUCCEEDED"}}}
	seen.Silence = 999 * time.Millisecond
	if v := DefaultBounds.Evaluate(want, seen); len(v.Wrong) < 2 || !strings.Contains(v.Wrong[0], "a live task was failed") ||
		v.Unclear != "" {
		t.Errorf("%+v", v)
	}
	seen.Silence = time.Second
	seen.Complaints = []string{"beat: 410"}
	if v := DefaultBounds.Evaluate(want, seen); len(v.Wrong) > 0 || v.Unclear == "" {
		t.Errorf("%+v", v)
	}
	// Late or not: a wrong end that is no zombie's is not excused.
	want, seen = rightZombie()
	want.Reason, seen.Silence = "RUN_TIMEOUT", time.Hour
	if v := DefaultBounds.Evaluate(want, seen); len(v.Wrong) == 0 {
		t.Errorf("%+v", v)
	}
}

// held is a delay function that returns d for any period.
func held(d time.Duration) func(from, until time.Time) time.Duration {
	return func(time.Time, time.Time) time.Duration { return d }
}

// An attempt that ended twice is wrong however late its worker was.
func TestEvaluateEndsTwice(t *testing.T) {
	_, seen := rightZombie()
	want := Expect{State: v1.Succeeded, Attempts: []ExpectAttempt{{Outcome: "SUCCEEDED"}}}
	seen.Silence, seen.Task.History = time.Hour, append(seen.Task.History, seen.Task.History[0])
	if v := DefaultBounds.Evaluate(want, seen); len(v.Wrong) != 1 || v.Wrong[0] != "attempt 1 ended 2 times" {
		t.Errorf("%+v", v)
	}
}

// A job may be taken from a worker that was killed, or that was late itself, and from no other.
func TestEvaluateLostJobs(t *testing.T) {
	lost, victim, other := "WORKER_LOST", "wkr_victim", "wkr_other"
	due := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	loss := func(attempt int, worker string) v1.HistoryEntry {
		return v1.HistoryEntry{Attempt: attempt, WorkerID: &worker, Outcome: "LOST", Reason: &lost,
			Evidence: &v1.Evidence{SilentMs: 1500, TimeoutMs: 1500, DetectedAt: v1.At(due)}}
	}
	done := Expect{State: v1.Succeeded, Attempts: []ExpectAttempt{{Outcome: "SUCCEEDED"}}}
	killed := Expect{State: v1.Succeeded, Attempts: []ExpectAttempt{
		{Outcome: "LOST", Reason: lost, WorkerID: victim, Due: due, Timeout: 1500 * time.Millisecond}, {Outcome: "SUCCEEDED"},
	}}
	wasLate := func(h v1.HistoryEntry) bool { return *h.WorkerID == other }
	for _, c := range []struct {
		name    string
		want    Expect
		lost    []string // the workers of the attempts before the last
		failed  bool     // in the end
		excused func(v1.HistoryEntry) bool
		wrong   string
		unclear bool
	}{
		{"done at once", done, nil, false, nil, "", false},
		{"lost by one that was killed", killed, []string{victim}, false, wasLate, "", false},
		{"lost by one that was late", done, []string{other}, false, wasLate, "", false},
		{"by one that was late, then by the killed one", killed, []string{other, victim}, false, wasLate, "", false},
		{"lost by one that beat in time", done, []string{victim}, false, wasLate, "a live worker's task was taken from it: wkr_victim", false},
		{"by the killed one, then by one that beat in time", killed, []string{victim, other}, false, nil, "taken from it: wkr_victim, wkr_other",
			false},
		{"by another than the killed one", killed, []string{"wkr_third"}, false, wasLate,
			"was that of wkr_third, and should be that of wkr_victim", false},
		{"the killed one lost nothing", killed, nil, false, wasLate, "1 ended attempts in its history, and should be 2", false},
		{"lost too often by those that were late", done, []string{other, other}, true, wasLate, "", true},
		{"lost too often by those that beat in time", done, []string{victim, victim}, true, wasLate, "taken from it", false},
	} {
		task := &v1.Task{TaskID: "t", State: v1.Succeeded}
		for i, w := range c.lost {
			task.History = append(task.History, loss(i+1, w))
		}
		if c.failed {
			task.State, task.Reason = v1.Failed, &lost
		} else {
			task.History = append(task.History, v1.HistoryEntry{Attempt: len(c.lost) + 1, Outcome: "SUCCEEDED"})
		}
		v := DefaultBounds.Evaluate(c.want, Seen{Task: task, Excused: c.excused})
		if (len(v.Wrong) > 0) != (c.wrong != "") || (v.Unclear != "") != c.unclear || c.wrong != "" && !strings.Contains(v.Wrong[0], c.wrong) {
			t.Errorf("%s: %+v", c.name, v)
		}
	}
}

func TestSummaryCheck(t *testing.T) {
	for _, c := range []struct {
		s    Summary
		want string
	}{
		{Summary{Created: 100, Evaluated: 100}, ""},
		{Summary{Created: 100, Evaluated: 100, Unclear: 5}, ""},
		{Summary{Created: 5, Evaluated: 5, Unclear: 1}, ""},
		{Summary{Created: 100, Evaluated: 100, Wrongs: 1}, "1 of 100 verdicts were wrong"},
		{Summary{Created: 100, Evaluated: 99}, "only 99 of 100"},
		{Summary{}, "no task was checked"},
		{Summary{Created: 100, Evaluated: 100, Unclear: 6}, "too busy"},
		{Summary{Created: 100, Evaluated: 100, Unclear: 2, Mishaps: 3}, ""},
		{Summary{Created: 100, Evaluated: 100, Unclear: 2, Mishaps: 4}, "too busy"},
	} {
		err := c.s.Check()
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v", c.s, err)
		}
	}
}

func TestSummaryWrite(t *testing.T) {
	var b strings.Builder
	s := Summary{Created: 3, Evaluated: 3, Failed: 2, Reasons: map[string]int{"HEARTBEAT_TIMEOUT": 2}, Zombies: 2, Lags: 2,
		LagP50: 3 * time.Millisecond, Most: 9 * time.Millisecond,
		Wrongs: 1, Wrong: []Verdict{{TaskID: "task_1", Behaviour: "steady", State: v1.Failed, Reason: "HEARTBEAT_TIMEOUT",
			Wrong: []string{"a live task was failed"}}}}
	if err := s.Write(&b); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"HEARTBEAT_TIMEOUT", "max 9 ms", "wrong verdicts",
		"WRONG  task_1  steady  FAILED HEARTBEAT_TIMEOUT  wrong: a live task was failed"} {
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
