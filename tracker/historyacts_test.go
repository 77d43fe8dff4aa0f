package tracker_test

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/lubdub-io/lubdub/tracker"
	"github.com/lubdub-io/lubdub/tracker/beats"
	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/queues"
	"github.com/lubdub-io/lubdub/tracker/trackertest"
)

// act runs one random operation.
func (h *histories) act(client int) {
	r := h.replicas[rand.IntN(len(h.replicas))]
	k := h.choose()
	switch x := rand.IntN(100); {
	case x < 20:
		h.create(client, r, k)
	case x < 25:
		h.get(client, r, k)
	case x < 29:
		h.cancel(client, r, k)
	case x < 34:
		h.next(client, r, k)
	case x < 46:
		h.claim(r)
	case x == 46 && rand.IntN(20) == 0:
		h.retire(r)
	default:
		a := k.attempt()
		switch {
		case a == nil:
			h.create(client, r, k)
		case x < 60:
			h.start(client, r, k, a)
		case x < 90:
			h.beat(client, r, k, a)
		default:
			h.complete(client, r, k, a)
		}
	}
}

// attempt returns a known attempt: mostly the newest.
func (k *historyTask) attempt() *model.Attempt {
	k.mu.Lock()
	defer k.mu.Unlock()
	n := len(k.attempts)
	switch {
	case n == 0:
		return nil
	case rand.IntN(8) == 0:
		return k.attempts[rand.IntN(n)]
	}
	return k.attempts[n-1]
}

func (k *historyTask) got(a *model.Attempt) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if a.Number >= maxLives-1 {
		return // the model ends there; no more are requested
	}
	for _, have := range k.attempts {
		if have.Number == a.Number {
			return
		}
	}
	k.attempts = append(k.attempts, a)
	slices.SortFunc(k.attempts, func(a, b *model.Attempt) int { return cmp.Compare(a.Number, b.Number) })
}

// maxUnknown is how many operations without a response a task may have: each may have happened at any time since, and the time to find an
// order grows with their number like a power. After that the task is not used any more.
const maxUnknown = 6

// did records one operation. f runs it and records the response; a refusal before execution is not recorded.
func (h *histories) did(client int, k *historyTask, s step, f func(t *stepResult) error) {
	k.mu.Lock()
	leave := k.unknown >= maxUnknown && s.What != "get"
	k.mu.Unlock()
	if leave {
		return
	}
	var t stepResult
	began := time.Now()
	s.At = began.UnixNano()
	err := f(&t)
	op := porcupine.Operation{ClientId: client, Input: s, Call: s.At, Return: s.At + int64(time.Since(began))}
	t.Code = model.CodeOf(err)
	h.count(s.What, t.Code)
	switch t.Code {
	case model.Overloaded:
		return
	case model.Unavailable:
		if s.What == "get" {
			return // it changes nothing
		}
		t = stepResult{Unknown: true}
		op.Return = math.MaxInt64
	}
	op.Output = t
	k.mu.Lock()
	defer k.mu.Unlock()
	k.ops = append(k.ops, op)
	if t.Unknown {
		k.unknown++
	}
}

func (h *histories) count(what string, code model.Code) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.answers[strings.TrimSpace(what+" "+string(code))]++
}

func (h *histories) create(client int, r *tracker.Tracker, k *historyTask) {
	n := model.NewTask{Scope: trackertest.Scope, TaskID: k.id, HeartbeatInterval: 500 * time.Millisecond,
		HeartbeatTimeout: historyRules.beat,
		StartTimeout:     historyRules.start, CancelGrace: historyRules.grace}
	if k.queue {
		n.Queue, n.Type, n.Retry = "q", "x", &historyRules.policy
	}
	if err := n.Validate(time.Now()); err != nil {
		h.Error(err)
		return
	}
	h.did(client, k, step{What: "create"}, func(*stepResult) error {
		c, err := r.Tasks.Create(context.Background(), n)
		if err == nil && c.Envelope != nil {
			k.got(c.Envelope.Attempt)
		}
		return err
	})
}

func (h *histories) start(client int, r *tracker.Tracker, k *historyTask, a *model.Attempt) {
	h.did(client, k, step{What: "start", Attempt: a.Number}, func(t *stepResult) error {
		ack, err := r.Beats.Start(context.Background(), a, model.Report{})
		t.Cancel = ack.Cancel != nil
		return err
	})
}

func (h *histories) beat(client int, r *tracker.Tracker, k *historyTask, a *model.Attempt) {
	h.did(client, k, step{What: "beat", Attempt: a.Number}, func(t *stepResult) error {
		b := &beats.Beat{Attempt: a, Report: "\t\t50\t\"m\""}
		r.Beats.Beat(b)
		if t.Cancel = b.Cancel != nil; t.Cancel && !b.Cancel.Delivered {
			r.Beats.CancelDelivered(a)
		}
		return b.Err
	})
}

func (h *histories) complete(client int, r *tracker.Tracker, k *historyTask, a *model.Attempt) {
	s := step{What: "complete", Attempt: a.Number, Outcome: []model.State{model.Succeeded, model.Failed, model.Failed,
		model.Cancelled}[rand.IntN(4)]}
	c := model.Completion{Outcome: s.Outcome}
	if s.Outcome == model.Failed {
		s.Retryable = rand.IntN(3) > 0
		c.Retryable, c.Error = s.Retryable, json.RawMessage(`{"category":"USER_CODE"}`)
	}
	h.did(client, k, s, func(t *stepResult) error {
		done, err := r.Beats.Complete(context.Background(), a, c)
		t.Retry = done.WillRetry
		return err
	})
}

func (h *histories) cancel(client int, r *tracker.Tracker, k *historyTask) {
	h.did(client, k, step{What: "cancel"}, func(*stepResult) error {
		_, err := r.Tasks.Cancel(context.Background(), trackertest.Scope, k.id, model.CancelRequest{Reason: "why"})
		return err
	})
}

func (h *histories) next(client int, r *tracker.Tracker, k *historyTask) {
	from := 0
	if a := k.attempt(); a != nil {
		from = a.Number
	}
	if from >= maxLives-2 {
		return
	}
	h.did(client, k, step{What: "next", Attempt: from}, func(*stepResult) error {
		c, err := r.Tasks.NextAttempt(context.Background(), trackertest.Scope, k.id, from)
		if err == nil && c.Envelope != nil {
			if n := c.Envelope.Attempt.Number; n != from+1 {
				h.Errorf("%s: requested the attempt after %d and got the envelope of attempt %d", k.id, from, n)
			}
			k.got(c.Envelope.Attempt)
		}
		return err
	})
}

func (h *histories) get(client int, r *tracker.Tracker, k *historyTask) {
	h.did(client, k, step{What: "get"}, func(t *stepResult) error {
		task, err := r.Tasks.Get(context.Background(), trackertest.Scope, k.id)
		if err == nil {
			t.State, t.Attempt, t.Reason = task.State, task.Attempt, task.Reason
			t.Requests = task.CancelRequested && task.State == model.Running
		}
		return err
	})
}

// claim makes a worker claim waiting tasks. A claim without a response is repeated with the same ID. Events record when each task was
// dispatched.
func (h *histories) claim(r *tracker.Tracker) {
	h.mu.Lock()
	if len(h.workers) == 0 {
		h.mu.Unlock()
		h.hire(r)
		return
	}
	worker := h.workers[rand.IntN(len(h.workers))]
	claim := queues.ClaimRequest{Scope: trackertest.Scope, WorkerID: worker, Queue: "q", Max: 1 + rand.IntN(4),
		ClaimID: fmt.Sprintf("c%d", h.acted), Start: rand.IntN(2) == 0}
	h.mu.Unlock()
	var tasks []*model.Envelope
	var err error
	for range 2 {
		tasks, err = r.Queues.Claim(context.Background(), claim)
		if h.count("claim", model.CodeOf(err)); model.CodeOf(err) != model.Unavailable {
			break
		}
	}
	for _, e := range tasks {
		h.mu.Lock()
		var i int
		if _, err := fmt.Sscanf(e.Task.ID, "t%06d", &i); err != nil {
			h.Error(err)
		}
		k, name := h.tasks[i], fmt.Sprintf("%s#%d", e.Task.ID, e.Attempt.Number)
		if other, taken := h.claimed[name]; taken && other != worker {
			h.Errorf("%s was handed to %s and to %s", name, other, worker)
		}
		h.claimed[name] = worker
		h.mu.Unlock()
		k.got(e.Attempt)
	}
}

// retire ends a worker, which loses its attempts, and registers another one.
func (h *histories) retire(r *tracker.Tracker) {
	h.mu.Lock()
	if len(h.workers) == 0 {
		h.mu.Unlock()
		return
	}
	worker := h.workers[0]
	h.workers = h.workers[1:]
	h.mu.Unlock()
	_, err := r.Workers.Retire(context.Background(), trackertest.Scope, worker, model.WorkerForced, "")
	h.count("retire", model.CodeOf(err))
	h.hire(r)
}
