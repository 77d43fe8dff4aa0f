package tracker_test

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
)

// load is workers that create, begin and complete tasks, each one after the other, and repeat what was answered 503.
// It remembers what was acknowledged.
type load struct {
	tr      *tracker.Tracker
	answers answers
	stop    context.CancelFunc
	running sync.WaitGroup

	mu        sync.Mutex
	completed []string // acknowledged, in the order of the answers
	checked   int      // of completed, those that were looked up
	lost      map[string]bool
}

// answers counts refusals. Anything but a 503 is wrong.
type answers struct {
	mu      sync.Mutex
	refused int
	wrong   []error
}

// again tells whether the request is to be sent again.
func (a *answers) again(err error) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	code := tracker.CodeOf(err)
	switch {
	case err == nil:
		return false
	case code == tracker.Unavailable || code == tracker.Overloaded:
		a.refused++
		if text := err.(*tracker.Error).Message; strings.Contains(text, "TRYAGAIN") || strings.Contains(text, "MOVED") {
			a.wrong = append(a.wrong, fmt.Errorf("a user is told of Redis's affairs: %s", text))
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

func startLoad(t *testing.T, tr *tracker.Tracker, workers int) *load {
	ctx, stop := context.WithCancel(context.Background())
	l := &load{tr: tr, stop: stop, lost: map[string]bool{}}
	for w := range workers {
		l.running.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				l.life(ctx, fmt.Sprintf("load-%d-%d", w, i))
			}
		})
	}
	t.Cleanup(l.end)
	return l
}

// end stops the workers, each at the end of its request.
func (l *load) end() {
	l.stop()
	l.running.Wait()
}

func (l *load) life(ctx context.Context, id string) {
	n := tracker.NewTask{Scope: scope, TaskID: id, IdempotencyKey: id, IdempotencyHash: id}
	if err := n.Validate(time.Now()); err != nil {
		panic(err)
	}
	var a *tracker.Attempt
	if !l.insist(ctx, func() error {
		c, err := l.tr.Create(ctx, n)
		if err == nil {
			a = c.Envelope.Attempt
		}
		return err
	}) {
		return
	}
	if !l.insist(ctx, func() error { b := &tracker.Beat{Attempt: a}; l.tr.Beat(b); return b.Err }) {
		return
	}
	done := tracker.Completion{Outcome: tracker.Succeeded, Output: json.RawMessage(`"` + id + `"`)}
	if l.insist(ctx, func() error { _, err := l.tr.Complete(ctx, a, done); return err }) {
		l.mu.Lock()
		l.completed = append(l.completed, id)
		l.mu.Unlock()
	}
}

// insist repeats a request until it is answered with something else than 503, or ctx ends.
func (l *load) insist(ctx context.Context, request func() error) bool {
	for {
		err := request()
		if err == nil {
			return true
		}
		if !l.answers.again(err) || ctx.Err() != nil {
			return false
		}
		select { // Retry-After says a second; here the failover itself is what is waited for
		case <-ctx.Done():
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func (l *load) acknowledged() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.completed)
}

// more waits until n more completions are acknowledged than now.
func (l *load) more(t *testing.T, n int) {
	t.Helper()
	from := l.acknowledged()
	eventually(t, "completions go on", func() bool { return l.acknowledged() >= from+n })
}

// check looks up what was acknowledged since the last check; what is not as it was acknowledged is lost.
func (l *load) check(t *testing.T) {
	t.Helper()
	l.mu.Lock()
	ids := slices.Clone(l.completed[l.checked:])
	l.checked = len(l.completed)
	l.mu.Unlock()
	l.verify(t, ids)
}

// checkAll looks all of it up again.
func (l *load) checkAll(t *testing.T) {
	t.Helper()
	l.verify(t, l.completed)
}

func (l *load) verify(t *testing.T, ids []string) {
	t.Helper()
	next := make(chan string)
	var looking sync.WaitGroup
	for range 32 {
		looking.Go(func() {
			for id := range next {
				var task *tracker.Task
				var err error
				for deadline := time.Now().Add(time.Minute); ; {
					task, err = l.tr.Get(t.Context(), scope, id)
					if tracker.CodeOf(err) != tracker.Unavailable || time.Now().After(deadline) {
						break
					}
					<-time.After(20 * time.Millisecond)
				}
				if err != nil || task.State != tracker.Succeeded || string(task.Output) != `"`+id+`"` {
					l.mu.Lock()
					l.lost[id] = true
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

// wantSound ends the load and fails the test for whatever was lost, or answered otherwise than with success or 503.
func (l *load) wantSound(t *testing.T) {
	t.Helper()
	l.end()
	l.checkAll(t)
	for _, err := range l.answers.wrong {
		t.Errorf("answered neither success nor 503: %v", err)
	}
	if len(l.lost) > 0 {
		t.Errorf("%d of %d acknowledged completions are lost", len(l.lost), len(l.completed))
	}
	if len(l.completed) == 0 {
		t.Error("nothing was completed")
	}
	t.Logf("%d completions acknowledged, %d lost, %d requests answered 503", len(l.completed), len(l.lost), l.answers.refused)
}

func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); !is(); <-time.After(5 * time.Millisecond) { // a Sentinel that was held up does nothing for 30 s
		if time.Now().After(deadline) {
			t.Fatalf("not within two minutes: %s", what)
		}
	}
}

// hearts are running tasks, each of which beats until the end, and somebody who would declare the silent dead.
type hearts struct {
	tr      *tracker.Tracker
	tasks   []*tracker.Attempt
	fresh   []atomic.Int64 // by task: when its last good beat was answered, ms
	answers answers
	stop    context.CancelFunc
	running sync.WaitGroup

	mu   sync.Mutex
	told [][]heard // by task
}

// heard is one answered beat.
type heard struct {
	at   time.Time
	took time.Duration
	ok   bool
}

func startHearts(t *testing.T, tr *tracker.Tracker, n int, timeout time.Duration) *hearts {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	h := &hearts{tr: tr, stop: stop, tasks: make([]*tracker.Attempt, n), fresh: make([]atomic.Int64, n), told: make([][]heard, n)}
	h.running.Go(func() { _ = tr.KeepTime(ctx) })
	sweeper := tracker.NewSweeper(tr, tracker.SweeperOptions{})
	h.running.Go(func() { _ = sweeper.Run(ctx) })
	t.Cleanup(h.end)
	for i := range n {
		id := fmt.Sprintf("heart-%d", i)
		task := tracker.NewTask{Scope: scope, TaskID: id, IdempotencyKey: id, IdempotencyHash: id, HeartbeatInterval: timeout / 2, HeartbeatTimeout: timeout}
		if err := task.Validate(time.Now()); err != nil {
			t.Fatal(err)
		}
		var c *tracker.Created
		eventually(t, "a creation is confirmed", func() bool {
			var err error
			c, err = tr.Create(ctx, task)
			return err == nil
		})
		h.tasks[i] = c.Envelope.Attempt
		h.running.Go(func() { h.beat(ctx, i) })
	}
	return h
}

func (h *hearts) end() {
	h.stop()
	h.running.Wait()
}

func (h *hearts) beat(ctx context.Context, i int) {
	for {
		b := &tracker.Beat{Attempt: h.tasks[i]}
		start := time.Now()
		h.tr.Beat(b)
		now := time.Now()
		failed := h.answers.again(b.Err)
		if b.Err == nil {
			h.fresh[i].Store(now.UnixMilli())
		}
		h.mu.Lock()
		h.told[i] = append(h.told[i], heard{at: start, took: now.Sub(start), ok: !failed && b.Err == nil})
		h.mu.Unlock()
		select {
		case <-ctx.Done():
			return
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// allAgain waits until every task has had a beat answered well since now.
func (h *hearts) allAgain(t *testing.T) time.Duration {
	t.Helper()
	from := time.Now()
	eventually(t, "every task's beats go on", func() bool {
		for i := range h.fresh {
			if h.fresh[i].Load() <= from.UnixMilli() {
				return false
			}
		}
		return true
	})
	return time.Since(from)
}

// latency of the beats of some tasks that began in a span of time: the median, p99, the slowest, and how many failed.
func (h *hearts) latency(from, to time.Time, of func(*tracker.Attempt) bool) (p50, p99, slowest time.Duration, n, failed int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	var took []time.Duration
	for i, told := range h.told {
		if !of(h.tasks[i]) {
			continue
		}
		for _, b := range told {
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

// longestSilence is the longest time between two good beats of a task.
func (h *hearts) longestSilence() (longest time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, told := range h.told {
		var last time.Time
		for _, b := range told {
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

// wantAlive fails the test for each task that was declared dead, and for each beat that was answered otherwise than
// with success or 503.
func (h *hearts) wantAlive(t *testing.T) {
	t.Helper()
	h.allAgain(t)
	for _, a := range h.tasks {
		task, err := h.tr.Get(t.Context(), a.Scope, a.TaskID)
		if err != nil || task.State != tracker.Running || task.Attempt != 1 {
			t.Errorf("%s beats, and is %+v, %v", a.TaskID, task, err)
		}
	}
	h.end()
	for _, err := range h.answers.wrong {
		t.Errorf("a beat was answered neither with success nor 503: %v", err)
	}
	t.Logf("%d beating tasks, none declared dead; %d beats answered 503; the longest silence of one was %v",
		len(h.tasks), h.answers.refused, h.longestSilence().Round(time.Millisecond))
}
