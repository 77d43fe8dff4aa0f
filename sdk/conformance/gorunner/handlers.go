package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/lubdub-io/lubdub/sdk/go/client"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
	"github.com/lubdub-io/lubdub/sdk/go/worker"
)

// step is one thing that a handler does.
type step struct {
	Progress      []any           `json:"progress"`
	Checkpoint    json.RawMessage `json:"checkpoint"`
	Gate          string          `json:"gate"`
	UntilEnded    bool            `json:"untilEnded"`
	Sleep         int64           `json:"sleep"`
	Spin          int64           `json:"spin"`
	Work          int64           `json:"work"`
	Emit          string          `json:"say"`
	Return        json.RawMessage `json:"return"`
	ReturnBig     int             `json:"returnBig"`
	ReturnNotJSON bool            `json:"returnNotJSON"`
	Fail          *failure        `json:"fail"`
	Snooze        int64           `json:"snooze"`
	Cancelled     string          `json:"cancelled"`
	Panic         string          `json:"panic"`
	Stopped       *stopped        `json:"stopped"`
	GiveUp        bool            `json:"giveUp"`
}

type failure struct {
	Category  v1.ErrorCategory `json:"category"`
	Message   string           `json:"message"`
	Retryable *bool            `json:"retryable"`
	RetryMs   int64            `json:"retryAfterMs"`
}

type stopped struct {
	Phase   string          `json:"phase"`
	Partial json.RawMessage `json:"partial"`
}

// attempt is one that a handler is at work on.
type attempt struct {
	*runner
	ctx      context.Context
	envelope *v1.TaskEnvelope
	progress interface {
		Progress(pct float64, message string) error
		Checkpoint(v any) error
		LastCheckpoint(v any) (bool, error)
	}

	once sync.Once // of the end of its context
	over chan struct{}
}

// handle is the handler of every type.
func (r *runner) handle(ctx context.Context, t *worker.Task) (any, error) {
	return r.do(&attempt{ctx: ctx, envelope: t.Envelope, progress: t})
}

// do does the steps.
func (r *runner) do(a *attempt) (output any, err error) {
	a.runner, a.over = r, make(chan struct{})
	e := a.envelope
	begun := event{Event: "begun", Traceparent: worker.Traceparent(a.ctx), LastProgress: e.LastProgress}
	if _, err := a.progress.LastCheckpoint(&begun.Checkpoint); err != nil {
		return nil, err
	}
	a.emitTask(begun)
	defer a.emitTask(event{Event: "returned"})
	var watching sync.WaitGroup
	watching.Add(1)
	go func() {
		defer watching.Done()
		select {
		case <-a.ctx.Done():
			a.emitEnded()
		case <-a.over:
		}
	}()
	defer func() {
		close(a.over)
		watching.Wait()
	}()
	for _, s := range r.steps(e) {
		if over, output, err := a.step(s); over || err != nil {
			return output, err
		}
	}
	return nil, nil
}

// steps are those of an attempt.
func (r *runner) steps(e *v1.TaskEnvelope) []step {
	names := []string{fmt.Sprintf("%s/%d", e.TaskID, e.Attempt), e.TaskID}
	if e.Type != nil {
		names = append(names, "type:"+*e.Type)
	}
	for _, name := range names {
		if steps, ok := r.Handlers[name]; ok {
			return steps
		}
	}
	return nil
}

// step does one.
func (a *attempt) step(s step) (over bool, output any, err error) {
	switch {
	case len(s.Progress) > 0:
		return false, nil, a.report(s.Progress)
	case s.Checkpoint != nil:
		return false, nil, a.progress.Checkpoint(s.Checkpoint)
	case s.Gate != "":
		<-a.gate(s.Gate)
	case s.UntilEnded:
		<-a.ctx.Done()
		a.emitEnded()
	case s.Sleep > 0:
		select {
		case <-time.After(time.Duration(s.Sleep) * time.Millisecond):
		case <-a.ctx.Done():
			a.emitEnded()
			return true, nil, a.ctx.Err()
		}
	case s.Spin > 0:
		for end := time.Now().Add(time.Duration(s.Spin) * time.Millisecond); time.Now().Before(end); {
			continue
		}
		a.faults.spinning(false)
	case s.Work > 0:
		return a.work(time.Duration(s.Work) * time.Millisecond)
	case s.Emit != "":
		a.faults.spinning(s.Emit == "spinning")
		a.emitTask(event{Event: "said", What: s.Emit})
	case s.ReturnBig > 0:
		return true, strings.Repeat("x", s.ReturnBig), nil
	case s.ReturnNotJSON:
		return true, make(chan int), nil
	case s.Fail != nil:
		return true, nil, s.Fail.err()
	case s.Snooze > 0:
		return true, nil, worker.Snooze(time.Duration(s.Snooze) * time.Millisecond)
	case s.Cancelled != "":
		return true, nil, worker.Cancelled(s.Cancelled)
	case s.Panic != "":
		panic(s.Panic)
	case s.Stopped != nil:
		return true, nil, &client.StoppedError{Phase: s.Stopped.Phase, Partial: s.Stopped.Partial}
	case s.GiveUp:
		return true, nil, a.ctx.Err()
	case s.Return != nil:
		return true, s.Return, nil
	}
	return false, nil, nil
}

// work works for a time in short pieces, checks before each whether it still may, and emits events for the first and the last one.
func (a *attempt) work(d time.Duration) (over bool, output any, err error) {
	e := event{Event: "worked"}
	defer func() { a.emitTask(e) }()
	from := time.Now()
	for now := from; now.Sub(from) < d; now = time.Now() {
		if err := a.ctx.Err(); err != nil {
			a.emitEnded()
			return true, nil, err
		}
		if e.Until = now.UnixMilli(); e.From == 0 {
			e.From = e.Until
		}
		time.Sleep(10 * time.Millisecond)
	}
	return false, nil, nil
}

func (a *attempt) report(parts []any) error {
	pct, message := 0.0, ""
	for _, part := range parts {
		switch v := part.(type) {
		case float64:
			pct = v
		case string:
			message = v
		}
	}
	return a.progress.Progress(pct, message)
}

func (f *failure) err() error {
	err := errors.New(f.Message)
	if f.Category == "" {
		return err
	}
	err = &client.Failure{Category: f.Category, Err: err, Retryable: f.Retryable}
	if f.RetryMs > 0 {
		return worker.RetryAfter(time.Duration(f.RetryMs)*time.Millisecond, err)
	}
	return err
}

func (a *attempt) emitTask(e event) {
	e.Task, e.Attempt = a.envelope.TaskID, a.envelope.Attempt
	a.emit(e)
}

func (a *attempt) emitEnded() {
	a.once.Do(func() {
		if name, detail := reasonOf(context.Cause(a.ctx)); name != "" {
			a.emitTask(event{Event: "ended", Reason: name, Detail: detail})
		}
	})
}

// reasonOf names why a context has ended; empty: its own completion has.
func reasonOf(cause error) (name, detail string) {
	var cancelled client.Cancelled
	var expired client.Expired
	switch {
	case errors.As(cause, &cancelled):
		return "Cancelled", cancelled.Reason
	case errors.As(cause, &expired):
		return "Expired", expired.Reason
	case errors.As(cause, new(client.Superseded)):
		return "Superseded", ""
	case errors.As(cause, new(client.DeadlineExceeded)):
		return "DeadlineExceeded", ""
	case errors.As(cause, new(client.LeaseEnded)):
		return "LeaseEnded", ""
	case errors.As(cause, new(client.Lost)):
		return "Lost", ""
	case errors.Is(cause, worker.ErrStopping):
		return "Stopping", ""
	case errors.Is(cause, worker.ErrTaskTimeout):
		return "TaskTimeout", ""
	case errors.Is(cause, worker.ErrStuck):
		return "Stuck", ""
	}
	return "", ""
}
