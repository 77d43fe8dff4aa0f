package workertest

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"

	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

// refuse is an answer other than 2xx.
type refuse struct {
	status int
	v1.Error
}

func refusal(status int, code, message string) *refuse {
	return &refuse{status, v1.Error{Error: code, Message: message}}
}

var (
	errUnauthorized = refusal(http.StatusUnauthorized, v1.CodeUnauthorized, "no valid token")
	errForbidden    = refusal(http.StatusForbidden, v1.CodeForbidden, "a token for something else")
)

func answer(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Request-Id", "req_test")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body)
}

func readBody(r *http.Request) ([]byte, error) {
	if r.Body == nil {
		return nil, nil
	}
	defer func() { _ = r.Body.Close() }()
	return io.ReadAll(r.Body)
}

// decode decodes a body; unknown fields are refused, so that a test notices them.
func decode[T any](body []byte) (T, *refuse) {
	var v T
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	if err := d.Decode(&v); err != nil {
		return v, refusal(http.StatusBadRequest, v1.CodeInvalidJSON, err.Error())
	}
	return v, nil
}

// authorize checks whether a callback of an attempt is allowed, and returns its task. The mutex is held.
func (s *Server) authorize(id, token string, attempt int, gone int) (*task, *refuse) {
	t := s.tasks[id]
	kind, _, _ := strings.Cut(token, "/")
	switch {
	case kind != "task" && kind != "worker":
		return nil, errUnauthorized
	case kind == "task" && !strings.HasPrefix(token, "task/"+id+"/"):
		return nil, errForbidden
	case t == nil:
		return nil, refusal(http.StatusNotFound, v1.CodeTaskNotFound, "no such task")
	case kind == "worker" && t.WorkerID != strings.TrimPrefix(token, "worker/"):
		return nil, errForbidden
	case attempt < t.Attempt:
		r := refusal(http.StatusConflict, v1.CodeAttemptMismatch, "a newer attempt has begun")
		r.ExpectedAttempt, r.ReceivedAttempt = t.Attempt, attempt
		return nil, r
	case t.Reason != "" && (t.over() || t.State == v1.Queued):
		r := refusal(gone, v1.CodeTaskExpired, "the attempt was ended")
		if gone == http.StatusConflict {
			r.Error.Error = v1.CodeTaskAlreadyTerminal
		}
		r.State, r.Reason = t.State, t.Reason
		return nil, r
	case t.over() || t.State == v1.Queued:
		r := refusal(http.StatusConflict, v1.CodeTaskAlreadyTerminal, "the task is finished")
		r.State = t.State
		return nil, r
	}
	return t, nil
}

// applyBeat applies a heartbeat of an attempt. The mutex is held.
func (s *Server) applyBeat(t *task, pct *float64, message *string, details json.RawMessage) {
	t.lastBeat = s.time.Now()
	t.Beats++
	t.State = v1.Running
	if pct != nil {
		t.ProgressPct = *pct
	}
	if message != nil {
		t.Message = *message
	}
	if len(details) > 0 && string(details) != "null" {
		t.Details = details
	}
	if t.cancelRequested && t.notifiedAt.IsZero() {
		t.notifiedAt = t.lastBeat
	}
	s.change()
}

func (s *Server) started(id, token string, body []byte) (any, *refuse) {
	r, bad := decode[v1.StartedRequest](body)
	if bad != nil {
		return nil, bad
	}
	t, bad := s.authorize(id, token, r.Attempt, http.StatusConflict)
	if bad != nil {
		return nil, bad
	}
	s.applyBeat(t, nil, nil, nil)
	t.Beats--
	return v1.StartedResponse{Acknowledged: true, ServerTime: v1.At(t.lastBeat), ShouldCancel: t.cancelRequested, CancelReason: t.why}, nil
}

// checkDetails refuses details that are too long.
func checkDetails(field string, details json.RawMessage) *refuse {
	var compact bytes.Buffer
	if len(details) == 0 || json.Compact(&compact, details) == nil && compact.Len() <= 16<<10 {
		return nil
	}
	bad := refusal(http.StatusBadRequest, v1.CodeInvalidRequest, field+" has more than 16384 bytes without whitespace")
	bad.Field = field
	return bad
}

func (s *Server) heartbeat(id, token string, r v1.HeartbeatRequest) (v1.HeartbeatResponse, *refuse) {
	if bad := checkDetails("details", r.Details); bad != nil {
		return v1.HeartbeatResponse{}, bad
	}
	t, bad := s.authorize(id, token, r.Attempt, http.StatusGone)
	if bad != nil {
		return v1.HeartbeatResponse{}, bad
	}
	s.applyBeat(t, r.ProgressPct, r.Message, r.Details)
	a := v1.HeartbeatResponse{
		Acknowledged: true, ShouldCancel: t.cancelRequested, CancelReason: t.why, ServerTime: v1.At(t.lastBeat),
		NextHeartbeatMs: s.envelope(t).HeartbeatIntervalMs,
	}
	return a, nil
}

func (s *Server) heartbeats(token string, body []byte) (any, *refuse) {
	many, bad := decode[v1.HeartbeatsRequest](body)
	if bad != nil {
		return nil, bad
	}
	if n := len(many.Heartbeats); n < 1 || n > 1000 {
		return nil, refusal(http.StatusBadRequest, v1.CodeInvalidRequest, "1 to 1,000 heartbeats")
	}
	out := v1.HeartbeatsResponse{ServerTime: v1.At(s.time.Now())}
	for _, one := range many.Heartbeats {
		opens := one.TaskToken
		if opens == "" {
			opens = token
		}
		a, bad := s.heartbeat(one.TaskID, opens, one.HeartbeatRequest)
		result := v1.HeartbeatResult{TaskID: one.TaskID, Status: http.StatusOK}
		if bad != nil {
			result.Status, result.Error, result.Message = bad.status, bad.Error.Error, bad.Message
			result.State, result.Reason = bad.State, bad.Reason
			result.ExpectedAttempt, result.ReceivedAttempt = bad.ExpectedAttempt, bad.ReceivedAttempt
		} else {
			result.Acknowledged, result.ShouldCancel, result.CancelReason = true, &a.ShouldCancel, a.CancelReason
			result.ServerTime, result.NextHeartbeatMs = a.ServerTime, a.NextHeartbeatMs
			result.TaskToken, result.TokenExpiresAt = a.TaskToken, a.TokenExpiresAt
		}
		out.Results = append(out.Results, result)
	}
	return out, nil
}

func (s *Server) completed(id, token string, body []byte) (any, *refuse) {
	r, bad := decode[v1.CompletedRequest](body)
	if bad != nil {
		return nil, bad
	}
	if t := s.tasks[id]; t != nil && bytes.Equal(t.completion, body) {
		return t.answer, nil
	}
	t, bad := s.authorize(id, token, r.Attempt, http.StatusConflict)
	if bad != nil {
		return nil, bad
	}
	if r.Outcome == v1.OutcomeFailed && (r.Error == nil || !r.Error.Category.Valid()) {
		return nil, refusal(http.StatusBadRequest, v1.CodeInvalidRequest, "FAILED needs error.category")
	}
	state, now := v1.State(r.Outcome), s.time.Now()
	if r.Outcome == v1.OutcomeSnoozed {
		if r.DelayMs == nil {
			return nil, refusal(http.StatusBadRequest, v1.CodeInvalidRequest, "SNOOZED needs delayMs")
		}
		if t.request.Queue == "" {
			return nil, refusal(http.StatusConflict, v1.CodeTaskWithoutQueue, "only a task of a queue can be snoozed")
		}
		state = v1.Cancelled // if that was requested
	}
	t.answer = v1.CompletedResponse{Acknowledged: true, FinalState: v1.State(r.Outcome), ServerTime: v1.At(now)}
	t.completion, t.Output, t.Error, t.Phase, t.Partial = body, r.Output, r.Error, r.CancelledDuringPhase, r.PartialProgress
	switch {
	case r.Outcome == v1.OutcomeSnoozed && !t.cancelRequested:
		s.requeue(t, msOr(r.DelayMs, 0))
	case r.Outcome == v1.OutcomeFailed && s.fails(t, r.Error):
	default:
		s.finish(t, state, "")
		return t.answer, nil
	}
	t.answer.WillRetry, t.answer.NextAttempt = true, t.Attempt+1
	return t.answer, nil
}
