package client

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/lubdub-io/lubdub/sdk/go/internal/beats"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

// appendBeat appends an attempt's item of a request; whole: it has all that the attempt has to report.
func (a *Attempt) appendBeat(b []byte) (out []byte, whole bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	b = appendString(append(b, `{"taskId":`...), a.taskID)
	b = strconv.AppendInt(append(b, `,"attempt":`...), int64(a.number), 10)
	b = appendString(append(b, `,"taskToken":`...), a.token)
	a.sending, whole = 0, len(b) < beats.MaxReports || !a.progress.unsent()
	if whole {
		b, a.sending = a.progress.append(b), a.progress.version
	}
	return append(b, '}'), whole
}

// take applies the answer to the batch; pause: how long the server requests to wait. It fails if the answer does not follow the API.
func (b *beater) take(sent time.Time) (pause time.Duration, err error) {
	n := 0
	err = eachResult(b.answer, func(r *result) error {
		if n >= len(b.batch) || string(r.taskID) != b.batch[n].taskID {
			return fmt.Errorf("lubdub: POST /v1/heartbeats: %w: result %d is for another task", ErrAnswer, n)
		}
		a := b.batch[n]
		n++
		wait, err := b.settle(a, r, sent)
		pause = max(pause, wait)
		return err
	})
	if err == nil && n < len(b.batch) {
		err = fmt.Errorf("lubdub: POST /v1/heartbeats: %w: %d results for %d heartbeats", ErrAnswer, n, len(b.batch))
	}
	return pause, err
}

// settle applies the answer to one heartbeat.
func (b *beater) settle(a *Attempt, r *result, sent time.Time) (pause time.Duration, err error) {
	full, err := r.full()
	if err != nil {
		return 0, err
	}
	switch {
	case r.status == http.StatusOK:
		held{a}.Accepted(sent, 0, a.sending)
		a.mu.Lock()
		if r.next > 0 {
			a.interval = time.Duration(r.next) * time.Millisecond
		}
		if full.TaskToken != "" {
			a.token, a.expires = full.TaskToken, sent.Add(full.TokenExpiresAt.Sub(full.ServerTime.Time))
		}
		interval := a.interval
		a.warned = false
		a.mu.Unlock()
		b.again(a, sent, interval)
		if r.cancel {
			held{a}.Cancel(full.CancelReason)
		}
		return 0, nil
	case r.status == http.StatusServiceUnavailable || r.status == http.StatusTooManyRequests:
		return max(firstPause, time.Duration(full.RetryAfterMs)*time.Millisecond), nil
	}
	b.client.set.metrics.Refused(full.Error)
	if interval, ours := a.refused(full); ours {
		b.again(a, sent, interval)
	}
	return 0, nil
}

var nothingMore v1.HeartbeatResult // read-only

// full is the answer with all its fields; a plain one has no more.
func (r *result) full() (*v1.HeartbeatResult, error) {
	if r.plain {
		return &nothingMore, nil
	}
	all := new(v1.HeartbeatResult)
	if err := json.Unmarshal(r.raw, all); err != nil {
		return nil, fmt.Errorf("lubdub: POST /v1/heartbeats: %w: %w", ErrAnswer, err)
	}
	return all, nil
}

// again schedules the next heartbeat.
func (b *beater) again(a *Attempt, sent time.Time, interval time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	a.fresh, a.due = false, sent.Add(time.Duration(float64(interval)*b.stretch))
}

// refused applies the refusal of a heartbeat; ours: the attempt is still ours.
func (a *Attempt) refused(r *v1.HeartbeatResult) (interval time.Duration, ours bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	details := v1.Error{Reason: r.Reason, State: r.State, ExpectedAttempt: r.ExpectedAttempt}
	if cause := causeOf(r.Error, &details); cause != nil {
		if a.phase == running {
			a.close(cause)
		}
		return 0, false
	}
	if !a.warned { // a refusal of this kind does not concern the attempt
		a.warned = true
		a.client.set.log.Error("a heartbeat is refused; the work continues", "taskId", a.taskID, "attempt", a.number, "status", r.Status,
			"code", r.Error, "message", r.Message)
	}
	return a.interval, true
}

// result has the fields of the answer to one heartbeat that most answers have. It borrows from the answer.
type result struct {
	taskID []byte
	status int
	next   int64 // nextHeartbeatMs
	cancel bool
	plain  bool // raw has no other fields
	raw    []byte
}

// eachResult calls each for the results in an answer to many heartbeats, without allocating for each. It parses the JSON that Lubdub
// writes, and leaves the rest to encoding/json. With encoding/json for batches a heartbeat in a batch of 500 takes this process 4.6 µs of
// CPU instead of 1.9: 1.7 for the answers, 1.0 for the requests.
func eachResult(answer []byte, each func(*result) error) error {
	s := scan{b: answer}
	var r result
	err := s.object(func(key []byte) error {
		if string(key) != "results" {
			return s.skip()
		}
		return s.array(func() error {
			s.space()
			from := s.i
			if err := s.result(&r); err != nil {
				return err
			}
			r.raw = answer[from:s.i]
			return each(&r)
		})
	})
	if s.space(); err == nil && s.i != len(s.b) {
		err = s.wrong()
	}
	return err
}

// result parses one result.
func (s *scan) result(r *result) error {
	*r = result{plain: true}
	if !s.is('{') {
		return s.wrong()
	}
	for first := true; ; first = false {
		key, more, err := s.key(first)
		if err != nil {
			return err
		}
		if !more {
			r.plain = r.plain && r.status == http.StatusOK && !r.cancel
			return nil
		}
		if err := s.field(r, key); err != nil {
			return err
		}
	}
}

func (s *scan) field(r *result, key []byte) (err error) {
	switch string(key) {
	case "taskId":
		r.taskID, err = s.text()
	case "status":
		var n int64
		n, err = s.integer()
		r.status = int(n)
	case "nextHeartbeatMs":
		r.next, err = s.integer()
	case "shouldCancel":
		r.cancel, err = s.boolean()
	case "acknowledged", "serverTime":
		err = s.skip()
	default:
		r.plain = false
		err = s.skip()
	}
	return err
}
