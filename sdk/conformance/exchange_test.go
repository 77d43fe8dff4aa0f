package conformance

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"strings"

	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

// split records the entries of an exchange as the completions that they are. The mutex is held.
func (s *server) split(x *exchange) {
	if !s.With.Exchange {
		s.violate("an exchange is sent, and the registration's answer has no capability for it")
	}
	var r struct {
		Completed  []json.RawMessage
		Seq, Claim any
	}
	_ = json.Unmarshal(x.body, &r)
	if r.Seq != nil || r.Claim != nil || len(r.Completed) == 0 || len(r.Completed) > 100 {
		s.violate("the harness answers exchanges of 1 to 100 completions, without seq and claim: %.300s", x.body)
	}
	for _, item := range r.Completed {
		id := fieldOf(item, "taskId")
		body := bytes.Replace(item, []byte(`"taskId":"`+id+`",`), nil, 1)
		entry := &exchange{call: "completed", task: id, names: []string{id}, token: x.token, body: body, at: x.at, rule: x.rule, within: x}
		s.repeatsCompletion(entry)
		x.entries, s.exchanges = append(x.entries, entry), append(s.exchanges, entry)
	}
}

// sharesOnce holds that a completion is in one exchange at most, and then sent alone with the token of its task. The mutex is held.
func (s *server) sharesOnce(x *exchange) {
	switch old := s.before(x); {
	case old == nil:
	case x.within != nil:
		s.violate("the completion of task %s was sent before, and is in an exchange", x.task)
	case old.within != nil && !strings.HasPrefix(x.token, "task-"):
		s.violate("the completion of task %s was in an exchange, and is then sent without the token of its task", x.task)
	}
}

// handleExchange answers each entry as if it were sent alone.
func (s *server) handleExchange(ctx context.Context, x *exchange) *reply {
	s.mu.Lock()
	refused := s.opensWorker(s.workers[x.worker], x.token)
	if !s.With.Exchange {
		refused = refusal(http.StatusNotFound, v1.CodeNotFound)
	}
	if refused == nil {
		for _, entry := range x.entries {
			entry.rule = s.ruleFor(entry)
		}
	}
	s.mu.Unlock()
	if refused != nil {
		return refused
	}
	a := v1.ExchangeResponse{Completed: []v1.CompletionResult{}, Tasks: []v1.TaskEnvelope{}}
	for _, entry := range x.entries {
		one := s.respond(ctx, entry)
		if one == nil {
			return nil
		}
		var result v1.CompletionResult
		text, _ := json.Marshal(one.body) // it is made of strings and numbers
		_ = json.Unmarshal(text, &result)
		result.TaskID, result.Status, result.RetryAfterMs = entry.task, one.status, int64(one.retryAfter)*1000
		a.Completed = append(a.Completed, result)
	}
	return ok(a)
}

// settle records the answers to the entries of an exchange. The mutex is held.
func (s *server) settle(x *exchange, a *reply) {
	body, answered := a.body.(v1.ExchangeResponse)
	for i, entry := range x.entries {
		entry.answered, entry.status = x.answered, a.status
		if answered {
			entry.status = body.Completed[i].Status
			if t := s.tasks[entry.task]; t != nil && ends(body.Completed[i].Error) {
				t.endReported = true
			}
		}
	}
}
