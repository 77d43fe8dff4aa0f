package conformance

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"time"

	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

// handleClaim hands out tasks; it waits for one.
func (s *server) handleClaim(ctx context.Context, x *exchange) *reply {
	var r v1.ClaimRequest
	_ = json.Unmarshal(x.body, &r)
	most, wait := 1, time.Duration(0)
	if r.Max != nil {
		most = *r.Max
	}
	if r.WaitMs != nil {
		wait = time.Duration(*r.WaitMs) * time.Millisecond
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	for over := false; ; {
		s.mu.Lock()
		a, changed := s.claimNow(x, &r, most), s.changed
		s.mu.Unlock()
		if a.status != http.StatusOK || over {
			return a
		}
		if body, is := a.body.(v1.ClaimResponse); is && len(body.Tasks) > 0 {
			return a
		}
		select {
		case <-changed:
		case <-timer.C:
			over = true
		case <-ctx.Done():
			return nil
		}
	}
}

// claimNow is the answer as it is now. The mutex is held.
func (s *server) claimNow(x *exchange, r *v1.ClaimRequest, most int) *reply {
	w := s.workerOf(x.token)
	if bad := s.opensWorker(w, x.token); bad != nil {
		return bad
	}
	if s.drained {
		s.violate("a worker whose machine was drained when it registered claims")
	}
	if s.draining || w.drained || s.drained {
		return refusal(http.StatusConflict, v1.CodeWorkerDraining)
	}
	a := v1.ClaimResponse{Tasks: []v1.TaskEnvelope{}}
	ids, repeated := s.claims[r.ClaimID]
	if !repeated {
		ids = s.next(r, most)
		if len(ids) > 0 && r.ClaimID != "" {
			s.claims[r.ClaimID] = ids
		}
	}
	for _, id := range ids {
		if t := s.tasks[id]; !t.completing {
			t.assigned = true
			e := s.envelope(t)
			if r.Start && s.With.Starts {
				e.State = v1.Running
			}
			a.Tasks = append(a.Tasks, *e)
		}
	}
	return ok(a)
}

// next takes tasks from the queue. Those without a type are for claims that do not name types.
func (s *server) next(r *v1.ClaimRequest, most int) (ids []string) {
	s.queue = slices.DeleteFunc(s.queue, func(id string) bool {
		fits := len(ids) < most && (len(r.Types) == 0 || !s.tasks[id].Untyped)
		if fits {
			ids = append(ids, id)
		}
		return fits
	})
	return ids
}

// workerOf is whose token it is; nil: of no worker.
func (s *server) workerOf(token string) *workerState {
	for _, w := range s.workers {
		for n := 1; n <= w.number; n++ {
			if one := (&workerState{id: w.id, number: n}); one.token() == token {
				return w
			}
		}
	}
	return nil
}

func (s *server) envelope(t *task) *v1.TaskEnvelope {
	job, queue, at := "job", "default", time.Now()
	e := &v1.TaskEnvelope{
		TaskID: t.id, RunID: "run_1", TenantID: "default", WorkspaceID: "default", Attempt: t.attempt, State: v1.Dispatched,
		Resources: json.RawMessage("{}"), EnqueuedAt: v1.At(at), CallbackBaseURL: s.http.URL, TaskToken: t.token(),
		TokenExpiresAt: v1.At(at.Add(time.Hour)), HeartbeatIntervalMs: 30000, CancelGracePeriodMs: 30000, Labels: map[string]string{},
		Payload: json.RawMessage("null"), LastProgress: t.LastProgress, Traceparent: t.Traceparent,
	}
	if s.Mode == "worker" {
		e.Type, e.Queue = &job, &queue
	}
	if t.Untyped {
		e.Type = nil
	}
	if e.RunTimeoutMs = t.RunTimeoutMs; t.GraceMs > 0 {
		e.CancelGracePeriodMs = t.GraceMs
	}
	if s.Task != nil {
		e.HeartbeatIntervalMs, e.HeartbeatTimeoutMs = s.Task.IntervalMs, &s.Task.TimeoutMs
	}
	return e
}
