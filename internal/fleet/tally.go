package fleet

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

// tally counts what the fleet did and observed.
type tally struct {
	playing, created, beats, retries, killed, recovered, mishaps atomic.Int64
	unclaimed                                                    atomic.Int64 // claims without an answer

	mu      sync.Mutex
	began   time.Time
	summary Summary // only what add and complain change
	lags    []time.Duration
}

// Summary counts a fleet's work so far.
type Summary struct {
	Elapsed   time.Duration
	Created   int
	Evaluated int
	Live      int // tasks under way
	Beats     int64
	Retries   int64 // calls that had to be repeated

	Succeeded, Failed, Cancelled, Unfinished int
	Reasons                                  map[string]int // of the failed ones
	Behaviours                               map[string]int

	Zombies              int
	Killed               int // workers
	Recovered            int // of their tasks, those that other workers have finished
	Lags                 int // verdicts of Lubdub; if there are very many, the newest
	LagP50, LagP99, Most time.Duration

	// DelayMost is the longest time in which nothing of this process ran although it was ready, and Delay the total time for which it was
	// held up.
	DelayMost, Delay time.Duration

	Wrong   []Verdict // the first hundred
	Wrongs  int
	Unclear int // tasks that prove nothing about Lubdub
	Mishaps int // workers that were themselves late, and calls without an answer
}

const (
	keepWrong = 100
	keepLags  = 20_000
)

func (t *tally) begin() {
	t.began = time.Now()
	t.summary.Reasons, t.summary.Behaviours = map[string]int{}, map[string]int{}
}

func (t *tally) add(v Verdict) {
	t.mu.Lock()
	defer t.mu.Unlock()
	j := &t.summary
	j.Evaluated++
	j.Behaviours[v.Behaviour]++
	switch v.State {
	case v1.Succeeded:
		j.Succeeded++
	case v1.Cancelled:
		j.Cancelled++
	case v1.Failed:
		j.Failed++
		j.Reasons[v.Reason]++
	default:
		j.Unfinished++
	}
	j.Zombies += v.Zombies
	if len(t.lags) >= keepLags { // a show may run for days
		t.lags = slices.Delete(t.lags, 0, keepLags/2)
	}
	for _, e := range v.Ended {
		t.lags = append(t.lags, e.Lag)
	}
	if v.Unclear != "" {
		j.Unclear++
	}
	t.wrong(v)
}

// complain counts an error that is not about a task.
func (t *tally) complain(v Verdict) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.wrong(v)
}

func (t *tally) wrong(v Verdict) {
	if len(v.Wrong) == 0 {
		return
	}
	t.summary.Wrongs++
	if len(t.summary.Wrong) < keepWrong {
		t.summary.Wrong = append(t.summary.Wrong, v)
	}
}

func (t *tally) snapshot() Summary {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.summary
	s.Reasons, s.Behaviours, s.Wrong = maps.Clone(s.Reasons), maps.Clone(s.Behaviours), slices.Clone(s.Wrong)
	s.Elapsed = time.Since(t.began)
	s.Created, s.Live = int(t.created.Load()), int(t.playing.Load())
	s.Beats, s.Retries = t.beats.Load(), t.retries.Load()
	s.Killed, s.Recovered, s.Mishaps = int(t.killed.Load()), int(t.recovered.Load()), int(t.mishaps.Load())
	s.Lags = len(t.lags)
	if s.Lags > 0 {
		sorted := slices.Sorted(slices.Values(t.lags))
		s.LagP50, s.LagP99, s.Most = quantile(sorted, 0.5), quantile(sorted, 0.99), sorted[len(sorted)-1]
	}
	return s
}

// quantile returns, from a sorted, non-empty list, the smallest value that at least this share lies at or below.
func quantile(sorted []time.Duration, q float64) time.Duration {
	i := int(q*float64(len(sorted))+0.9999999) - 1
	return sorted[min(max(i, 0), len(sorted)-1)]
}

// Summary returns the counts so far. It may be called at any time.
func (f *Fleet) Summary() Summary {
	s := f.tally.snapshot()
	s.DelayMost, s.Delay = f.delays.sum()
	return s
}
