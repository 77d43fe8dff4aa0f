package store_test

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/tracker"
	"github.com/lubdub-io/lubdub/tracker/beats"
	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/trackertest"
)

// Load is workers that create, begin and complete tasks in sequence, and repeat requests that failed with 503. It records what was
// acknowledged.
type Load struct {
	Tr      *tracker.Tracker
	answers answers
	Stop    context.CancelFunc
	Running sync.WaitGroup

	mu        sync.Mutex
	Completed []string // acknowledged, in the order of the responses
	checked   int      // of these, those that were looked up
	Lost      map[string]bool
}

// answers counts refusals. Any error but a 503 is wrong.
type answers struct {
	mu      sync.Mutex
	refused int
	wrong   []error
}

// again reports whether to repeat the request.
func (a *answers) again(err error) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	code := model.CodeOf(err)
	switch {
	case err == nil:
		return false
	case code == model.Unavailable || code == model.Overloaded:
		a.refused++
		if text := err.(*model.Error).Message; strings.Contains(text, "TRYAGAIN") || strings.Contains(text, "MOVED") {
			a.wrong = append(a.wrong, fmt.Errorf("a user sees an error of Redis: %s", text))
		}
		if strings.Contains(err.Error(), "CROSSSLOT") {
			a.wrong = append(a.wrong, err)
		}
		return true
	}
	if len(a.wrong) < 10 {
		a.wrong = append(a.wrong, err)
	}
	return false
}

// End stops the workers, each after its request.
func (l *Load) End() {
	l.Stop()
	l.Running.Wait()
}

func (l *Load) Life(ctx context.Context, id string) {
	n := model.NewTask{Scope: trackertest.Scope, TaskID: id, IdempotencyKey: id, IdempotencyHash: id}
	if err := n.Validate(time.Now()); err != nil {
		panic(err)
	}
	var a *model.Attempt
	if !l.insist(ctx, func() error {
		c, err := l.Tr.Tasks.Create(ctx, n)
		if err == nil {
			a = c.Envelope.Attempt
		}
		return err
	}) {
		return
	}
	if !l.insist(ctx, func() error { b := &beats.Beat{Attempt: a}; l.Tr.Beats.Beat(b); return b.Err }) {
		return
	}
	done := model.Completion{Outcome: model.Succeeded, Output: json.RawMessage(`"` + id + `"`)}
	if l.insist(ctx, func() error { _, err := l.Tr.Beats.Complete(ctx, a, done); return err }) {
		l.mu.Lock()
		l.Completed = append(l.Completed, id)
		l.mu.Unlock()
	}
}

// insist repeats a request until its result is not 503, or ctx ends.
func (l *Load) insist(ctx context.Context, request func() error) bool {
	for {
		err := request()
		if err == nil {
			return true
		}
		if !l.answers.again(err) || ctx.Err() != nil {
			return false
		}
		select { // Retry-After is a second; here the failover is what the test waits for
		case <-ctx.Done():
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func (l *Load) Acknowledged() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.Completed)
}

// More waits until n more completions are acknowledged than now.
func (l *Load) More(t *testing.T, n int) {
	t.Helper()
	from := l.Acknowledged()
	trackertest.Eventually(t, "completions continue", func() bool { return l.Acknowledged() >= from+n })
}

// Check looks up what was acknowledged since the last check, and records a task in any other state as lost.
func (l *Load) Check(t *testing.T) {
	t.Helper()
	l.mu.Lock()
	ids := slices.Clone(l.Completed[l.checked:])
	l.checked = len(l.Completed)
	l.mu.Unlock()
	l.verify(t, ids)
}

// CheckAll looks up everything again.
func (l *Load) CheckAll(t *testing.T) {
	t.Helper()
	l.verify(t, l.Completed)
}

func (l *Load) verify(t *testing.T, ids []string) {
	t.Helper()
	next := make(chan string)
	var looking sync.WaitGroup
	for range 32 {
		looking.Go(func() {
			for id := range next {
				var task *model.Task
				var err error
				for deadline := time.Now().Add(time.Minute); ; {
					task, err = l.Tr.Tasks.Get(t.Context(), trackertest.Scope, id)
					if model.CodeOf(err) != model.Unavailable || time.Now().After(deadline) {
						break
					}
					<-time.After(20 * time.Millisecond)
				}
				if err != nil || task.State != model.Succeeded || string(task.Output) != `"`+id+`"` {
					l.mu.Lock()
					l.Lost[id] = true
					l.mu.Unlock()
				}
			}
		})
	}
	for _, id := range ids {
		next <- id
	}
	close(next)
	looking.Wait()
}

// WantSound ends the load and fails the test for lost completions, and for results other than success or 503.
func (l *Load) WantSound(t *testing.T) {
	t.Helper()
	l.End()
	l.CheckAll(t)
	for _, err := range l.answers.wrong {
		t.Errorf("answered neither success nor 503: %v", err)
	}
	if len(l.Lost) > 0 {
		t.Errorf("%d of %d acknowledged completions are lost", len(l.Lost), len(l.Completed))
	}
	if len(l.Completed) == 0 {
		t.Error("nothing was completed")
	}
	t.Logf("%d completions acknowledged, %d lost, %d requests answered 503", len(l.Completed), len(l.Lost), l.answers.refused)
}

// Hearts are running tasks, each of which beats until the end, with a sweeper that would declare silent ones dead.
type Hearts struct {
	Tr      *tracker.Tracker
	Tasks   []*model.Attempt
	Fresh   []atomic.Int64 // by task: when its last successful beat returned, ms
	answers answers
	Stop    context.CancelFunc
	Running sync.WaitGroup

	mu      sync.Mutex
	Results [][]BeatResult // by task
}

// BeatResult is the result of one beat.
type BeatResult struct {
	at   time.Time
	took time.Duration
	ok   bool
}

func (h *Hearts) End() {
	h.Stop()
	h.Running.Wait()
}

func (h *Hearts) MustBeat(ctx context.Context, i int) {
	for {
		b := &beats.Beat{Attempt: h.Tasks[i]}
		start := time.Now()
		h.Tr.Beats.Beat(b)
		now := time.Now()
		failed := h.answers.again(b.Err)
		if b.Err == nil {
			h.Fresh[i].Store(now.UnixMilli())
		}
		h.mu.Lock()
		h.Results[i] = append(h.Results[i], BeatResult{at: start, took: now.Sub(start), ok: !failed && b.Err == nil})
		h.mu.Unlock()
		select {
		case <-ctx.Done():
			return
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// AllAgain waits until a beat of every task has succeeded since the call, and returns how long that took.
func (h *Hearts) AllAgain(t *testing.T) time.Duration {
	t.Helper()
	from := time.Now()
	trackertest.Eventually(t, "every task's beats continue", func() bool {
		for i := range h.Fresh {
			if h.Fresh[i].Load() <= from.UnixMilli() {
				return false
			}
		}
		return true
	})
	return time.Since(from)
}

// Latency returns the latency of some tasks' beats that began in a time span: the median, p99, the slowest, the number, and how many
// failed.
func (h *Hearts) Latency(from, to time.Time, of func(*model.Attempt) bool) (p50, p99, slowest time.Duration, n, failed int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	var took []time.Duration
	for i, results := range h.Results {
		if !of(h.Tasks[i]) {
			continue
		}
		for _, b := range results {
			if b.at.Before(from) || b.at.After(to) {
				continue
			}
			took = append(took, b.took)
			if !b.ok {
				failed++
			}
		}
	}
	if len(took) == 0 {
		return 0, 0, 0, 0, 0
	}
	slices.SortFunc(took, cmp.Compare)
	return took[len(took)/2], took[len(took)*99/100], took[len(took)-1], len(took), failed
}

// longestSilence returns the longest time between two successful beats of a task.
func (h *Hearts) longestSilence() (longest time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, results := range h.Results {
		var last time.Time
		for _, b := range results {
			if !b.ok {
				continue
			}
			if !last.IsZero() {
				longest = max(longest, b.at.Sub(last))
			}
			last = b.at
		}
	}
	return longest
}

// WantAlive fails the test for each task that was declared dead, and for results of beats other than success or 503.
func (h *Hearts) WantAlive(t *testing.T) {
	t.Helper()
	h.AllAgain(t)
	for _, a := range h.Tasks {
		task, err := h.Tr.Tasks.Get(t.Context(), a.Scope, a.TaskID)
		if err != nil || task.State != model.Running || task.Attempt != 1 {
			t.Errorf("%s beats, and is %+v, %v", a.TaskID, task, err)
		}
	}
	h.End()
	for _, err := range h.answers.wrong {
		t.Errorf("a beat was answered neither with success nor 503: %v", err)
	}
	t.Logf("%d beating tasks, none declared dead; %d beats answered 503; the longest silence of one was %v",
		len(h.Tasks), h.answers.refused, h.longestSilence().Round(time.Millisecond))
}
