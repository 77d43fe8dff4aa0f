package fleet

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

// Expect is the result that a script expects for its task.
type Expect struct {
	State    v1.State
	Reason   string           // of a FAILED task
	Category v1.ErrorCategory // of the error that a worker reported
	Attempts []ExpectAttempt  // every ended attempt, in order
}

// ExpectAttempt is the expected record of one ended attempt.
type ExpectAttempt struct {
	Outcome  string
	Reason   string
	WorkerID string // whose it was; empty: any worker's

	// For a verdict of Lubdub; zero if the worker ended the attempt itself.
	Due     time.Time     // by the server's clock: the earliest time at which it may come
	DueHere time.Time     // the same by this process's clock
	Unsure  time.Duration // how much earlier than Due it may really have been due: as long as the call took from which Due is computed
	Timeout time.Duration // the exceeded timeout, which the evidence must name; zero: none, since a deadline is no timeout
}

// Seen is the observed result of a task, and what is known of its worker.
type Seen struct {
	Task   *v1.Task // nil: the API does not know it any more
	Waited time.Duration
	// Silence is the longest time that may have passed between two signs of life of a worker that was meant to live.
	Silence time.Duration
	Timeout time.Duration // of its heartbeat
	// Complaints are answers that the script did not expect.
	Complaints []string
	// Delay returns for how long of a period this process was kept from running; nil: never.
	Delay func(from, until time.Time) time.Duration
	// Excused reports whether an attempt may have been taken from a registered worker that was meant to live: one that may have been
	// silent for its timeout, left without deregistering, or never knew of the attempt; nil: none may.
	Excused func(v1.HistoryEntry) bool
	// Unread is why the task could not be read back although it may exist; empty: it was.
	Unread string
}

// Verdict is the judgement of one task.
type Verdict struct {
	TaskID    string
	Behaviour string
	State     v1.State
	Reason    string
	Ended     []Ended // each verdict of Lubdub about the task
	Zombies   int

	Wrong   []string // what Lubdub did wrong; empty: nothing
	Unclear string   // why the task proves nothing about Lubdub; empty: it does
}

// Ended is an attempt that Lubdub itself ended.
type Ended struct {
	Outcome  string
	Evidence v1.Evidence
	Lag      time.Duration // from the time it was due: the longer of the evidence's value and the fleet's
	Delay    time.Duration // of that, the time in which this process itself was kept from running
}

// Bounds are the limits of a correct verdict.
type Bounds struct {
	// MaxLag is the longest time between the due time and the verdict, not counting the time in which this process itself was kept from
	// running.
	MaxLag time.Duration
	// Early is how far before the due time a verdict may seem to come: the fleet knows that time to the millisecond, from answers that
	// were written a little after the beat was applied.
	Early time.Duration

	// Credit is the precision of the evidence about time that was held back: shard time then runs at a tenth of its speed.
	Credit time.Duration
}

// DefaultBounds are what Lubdub promises.
var DefaultBounds = Bounds{MaxLag: 250 * time.Millisecond, Early: 20 * time.Millisecond, Credit: 50 * time.Millisecond}

// Evaluate compares a task's result with the expected one.
func (b Bounds) Evaluate(want Expect, seen Seen) Verdict {
	v := Verdict{}
	for _, c := range seen.Complaints {
		v.wrongf("%s", c)
	}
	t := seen.Task
	if t == nil {
		switch {
		case seen.Unread != "" && (len(v.Wrong) == 0 || seen.Silence >= seen.Timeout):
			v.Unclear, v.Wrong = seen.Unread, nil // complaints of a worker that was late follow from that
		case len(v.Wrong) > 0: // that is more informative
		default:
			v.wrongf("the task is gone")
		}
		return v
	}
	v.TaskID, v.State, v.Reason = t.TaskID, t.State, text(t.Reason)
	for _, h := range t.History {
		if h.Outcome == "ZOMBIE" {
			v.Zombies++
		}
	}
	if !terminal(t.State) {
		v.wrongf("missed: still %s %v after its end was due", t.State, seen.Waited.Round(time.Millisecond))
		return v
	}
	excused := (v.Zombies > want.count("ZOMBIE") || len(seen.Complaints) > 0) && v.excuseLateWorker(seen)
	v.checkNumbers(t.History)
	if excused {
		return v
	}
	if v.Zombies > want.count("ZOMBIE") {
		v.wrongf("a live task was failed: its worker was never silent for longer than %v of %v", seen.Silence.Round(time.Millisecond),
			seen.Timeout)
	}
	history := seen.withoutExcused(t.History)
	if lost := lostBy(history); len(lost) > want.count("LOST") {
		v.wrongf("a live worker's task was taken from it: %s were never silent for their timeout", strings.Join(lost, ", "))
		return v
	}
	if len(history) < len(t.History) && t.State == v1.Failed && (v.Reason == "WORKER_LOST" || v.Reason == "START_TIMEOUT") {
		v.Unclear = "its workers were themselves late, one after the other"
		return v
	}
	if t.State != want.State || v.Reason != want.Reason {
		v.wrongf("%s, and should be %s", outcome(t.State, v.Reason), outcome(want.State, want.Reason))
	}
	if want.Category != "" && category(t.Error) != string(want.Category) {
		v.wrongf("error category %q, and should be %q", category(t.Error), want.Category)
	}
	b.checkHistory(&v, want.Attempts, history, seen)
	return v
}

// checkNumbers finds attempts that ended twice, or that have no record.
func (v *Verdict) checkNumbers(history []v1.HistoryEntry) {
	ends := map[int]int{}
	for _, h := range history {
		ends[h.Attempt]++
	}
	for _, n := range slices.Sorted(maps.Keys(ends)) {
		if ends[n] > 1 {
			v.wrongf("attempt %d ended %d times", n, ends[n])
		}
	}
	for n := 1; n <= len(history) && len(v.Wrong) == 0; n++ {
		if history[n-1].Attempt != n {
			v.wrongf("entry %d of its history is of attempt %d", n, history[n-1].Attempt)
		}
	}
}

// withoutExcused omits the attempts that were rightly taken from a registered worker that was meant to live.
func (s *Seen) withoutExcused(history []v1.HistoryEntry) (rest []v1.HistoryEntry) {
	for _, h := range history {
		if h.Outcome != "LOST" && text(h.Reason) != "START_TIMEOUT" || s.Excused == nil || !s.Excused(h) {
			rest = append(rest, h)
		}
	}
	return rest
}

// lostBy names the registered workers that attempts were taken from.
func lostBy(history []v1.HistoryEntry) (workers []string) {
	for _, h := range history {
		if h.Outcome == "LOST" {
			workers = append(workers, text(h.WorkerID))
		}
	}
	return workers
}

func (b Bounds) checkHistory(v *Verdict, want []ExpectAttempt, have []v1.HistoryEntry, seen Seen) {
	if len(have) != len(want) {
		v.wrongf("%d ended attempts in its history, and should be %d", len(have), len(want))
		return
	}
	for i, w := range want {
		h := have[i]
		if h.Outcome != w.Outcome || text(h.Reason) != w.Reason {
			v.wrongf("attempt %d of its history ended %s %s, and should be %s %s", h.Attempt, h.Outcome, text(h.Reason), w.Outcome, w.Reason)
			continue
		}
		if w.WorkerID != "" && text(h.WorkerID) != w.WorkerID {
			v.wrongf("attempt %d was that of %s, and should be that of %s", h.Attempt, text(h.WorkerID), w.WorkerID)
		}
		switch {
		case w.Due.IsZero() && h.Evidence != nil:
			v.wrongf("attempt %d has evidence of a verdict, and its worker ended it", h.Attempt)
		case !w.Due.IsZero() && h.Evidence == nil:
			v.wrongf("attempt %d has no evidence of its verdict", h.Attempt)
		case !w.Due.IsZero():
			b.checkEvidence(v, w, h, seen)
		}
	}
}

// checkEvidence trusts neither the evidence nor the fleet's own measurement alone: both lags must be in bounds. The part of a lag that
// this process's own delay explains does not count.
func (b Bounds) checkEvidence(v *Verdict, w ExpectAttempt, h v1.HistoryEntry, seen Seen) {
	e := h.Evidence
	credit := time.Duration(e.OutageCreditMs) * time.Millisecond
	if w.Timeout == 0 {
		credit = 0 // a deadline follows the wall clock, which no outage stops
	}
	reported, measured := time.Duration(e.DetectionLagMs)*time.Millisecond, e.DetectedAt.Sub(w.Due)-credit
	lag, delay := max(reported, measured), time.Duration(0)
	if seen.Delay != nil {
		delay = min(lag, seen.Delay(w.DueHere, w.DueHere.Add(lag+credit)))
	}
	v.Ended = append(v.Ended, Ended{h.Outcome, *e, lag, delay})
	early := max(b.Early, w.Unsure)
	if credit > 0 {
		early = max(early, b.Credit)
	}
	switch {
	case e.DetectedAt.IsZero():
		v.wrongf("attempt %d: the evidence has no time", h.Attempt)
	case measured < -early || reported < 0:
		v.wrongf("attempt %d: %s came %v early", h.Attempt, w.Reason, (-min(measured, reported)).Round(time.Millisecond))
	case b.heldBack(w, reported, lag, delay):
		v.Unclear = fmt.Sprintf("%s came %v late, %v by its own evidence, and this process was held up for %v of it", w.Reason,
			lag.Round(time.Millisecond), reported, delay.Round(time.Millisecond))
	case lag-delay > b.MaxLag:
		v.wrongf("attempt %d: %s came %v late, %v by its own evidence, and may be %v at most plus the %v for which this process itself was "+
			"held up",
			h.Attempt, w.Reason, lag.Round(time.Millisecond), reported, b.MaxLag, delay.Round(time.Millisecond))
	}
	if w.Timeout > 0 && time.Duration(e.TimeoutMs)*time.Millisecond != w.Timeout {
		v.wrongf("attempt %d: the evidence has a timeout of %d ms, want %d", h.Attempt, e.TimeoutMs, w.Timeout.Milliseconds())
	}
	if w.Outcome == "ZOMBIE" && e.SilentMs < e.TimeoutMs {
		v.wrongf("attempt %d: failed after %d ms of silence, and %d are allowed", h.Attempt, e.SilentMs, e.TimeoutMs)
	}
}

// heldBack excuses a start, run or cancel timeout that is late only by the fleet's own measurement, on a machine that held the process up
// for a good part of that. Such a machine also holds back shard time, which these timeouts follow, and their evidence does not include what
// was held back before the last beat.
func (b Bounds) heldBack(w ExpectAttempt, reported, lag, delay time.Duration) bool {
	return w.Outcome == "TIMED_OUT" && w.Timeout > 0 && reported <= b.MaxLag && lag-delay > b.MaxLag && delay > lag/4
}

// excuseLateWorker excuses a zombie whose worker may really have been silent for too long, as happens on a busy machine. Such a task
// proves nothing for or against Lubdub.
func (v *Verdict) excuseLateWorker(seen Seen) bool {
	if seen.Silence < seen.Timeout {
		return false
	}
	v.Unclear = fmt.Sprintf("the worker itself may have been silent for %v of %v", seen.Silence.Round(time.Millisecond), seen.Timeout)
	v.Wrong = nil // what is left are complaints about the consequences
	return true
}

func (v *Verdict) wrongf(format string, args ...any) {
	v.Wrong = append(v.Wrong, fmt.Sprintf(format, args...))
}

func (e Expect) count(outcome string) (n int) {
	for _, a := range e.Attempts {
		if a.Outcome == outcome {
			n++
		}
	}
	return n
}

func terminal(s v1.State) bool { return s == v1.Succeeded || s == v1.Failed || s == v1.Cancelled }

func outcome(s v1.State, reason string) string {
	if reason == "" {
		return string(s)
	}
	return string(s) + " " + reason
}

func category(taskError json.RawMessage) string {
	var e v1.TaskError
	_ = json.Unmarshal(taskError, &e) // none: no category
	return string(e.Category)
}

func text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
