package client

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/lubdub-io/lubdub/sdk/go/internal/clock"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

// Created is the result of CreateTask: an envelope if the task has no queue, the task if it waits in one.
type Created struct {
	// Status is 201.
	Status int
	// Envelope is set without a queue: pass it to the program that does the work.
	Envelope *v1.TaskEnvelope
	// Task is set with a queue.
	Task *v1.Task
	// Err is why one of many creations was refused, an *Error; nil with CreateTask.
	Err error
}

// TaskID is the id of the created task; empty if none was created.
func (c *Created) TaskID() string {
	switch {
	case c.Envelope != nil:
		return c.Envelope.TaskID
	case c.Task != nil:
		return c.Task.TaskID
	}
	return ""
}

// CreateTask creates a task.
func (c *Client) CreateTask(ctx context.Context, r v1.CreateTaskRequest, opts ...CreateOption) (*Created, error) {
	return c.create(ctx, c.creation(r, opts))
}

func (c *Client) create(ctx context.Context, r creation) (*Created, error) {
	var body json.RawMessage
	k := &call{method: http.MethodPost, path: "/v1/tasks", query: c.scoped(nil), in: &r.CreateTaskRequest, out: &body,
		key: cmp.Or(r.IdempotencyKey, rand.Text()), trace: cmp.Or(r.trace, c.traceOf(ctx, r.CreateTasksItem))}
	if err := c.do(ctx, k); err != nil {
		return nil, err
	}
	created, err := readCreated(body, r.Queue != "")
	if err != nil {
		return nil, fmt.Errorf("lubdub: POST /v1/tasks: %w", err)
	}
	return created, nil
}

func readCreated(body json.RawMessage, queued bool) (*Created, error) {
	created := &Created{Status: http.StatusCreated}
	var err error
	if queued {
		err = json.Unmarshal(body, &created.Task)
	} else {
		err = json.Unmarshal(body, &created.Envelope)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrAnswer, err)
	}
	return created, nil
}

// CreateTasks makes up to 1,000 creations, each with its own result, in order. Those without an idempotency key are sent with a generated
// one; tasks is not changed. Those that the server answers with 503 or 429 are created again until ctx has ended, or, if ctx has no
// deadline, as often as Tries allows.
func (c *Client) CreateTasks(ctx context.Context, tasks []v1.CreateTasksItem) ([]Created, error) {
	all, left := make([]Created, len(tasks)), make([]int, len(tasks)) // left: the indexes of the remaining creations
	keyed := slices.Clone(tasks)
	for i := range keyed {
		left[i], keyed[i].IdempotencyKey = i, cmp.Or(keyed[i].IdempotencyKey, rand.Text())
	}
	trace := c.traceOf(ctx, tasks...)
	deadline, bounded := ctx.Deadline()
	for n := 0; ; n++ {
		if err := c.createSome(ctx, keyed, left, trace, all); err != nil && n == 0 {
			return nil, err
		} else if err != nil {
			return all, nil // with the known result of each
		}
		left = slices.DeleteFunc(left, func(i int) bool { return all[i].Err == nil || !again(all[i].Err) })
		pause := clock.Backoff(n, maxPause) + longestRetryAfter(all, left)
		late := n+1 >= c.set.tries
		if bounded {
			late = deadline.Sub(c.set.clock.Now()) < pause
		}
		if len(left) == 0 || late || !clock.Sleep(c.set.clock, pause, ctx.Done()) {
			return all, nil
		}
	}
}

// longestRetryAfter returns how long the server asks to wait before the creations at the given indexes are repeated.
func longestRetryAfter(all []Created, left []int) (longest time.Duration) {
	for _, i := range left {
		if e := new(Error); errors.As(all[i].Err, &e) {
			longest = max(longest, e.RetryAfter)
		}
	}
	return longest
}

// traceOf returns the trace context of the call, for tasks without one; empty if all tasks have one, or the call has none. A server ignores
// an invalid one; a header with other characters could not be sent.
func (c *Client) traceOf(ctx context.Context, tasks ...v1.CreateTasksItem) string {
	if !slices.ContainsFunc(tasks, func(t v1.CreateTasksItem) bool { return t.Traceparent == "" }) {
		return ""
	}
	trace := c.set.trace(ctx)
	if strings.Trim(trace, "0123456789abcdef-") != "" {
		return ""
	}
	return trace
}

// createSome makes the creations at the given indexes.
func (c *Client) createSome(ctx context.Context, tasks []v1.CreateTasksItem, numbers []int, trace string, all []Created) error {
	r := v1.CreateTasksRequest{Tasks: []v1.CreateTasksItem{}}
	for _, i := range numbers {
		r.Tasks = append(r.Tasks, tasks[i])
	}
	k := &call{method: http.MethodPost, path: "/v1/tasks:batch", query: c.scoped(nil), in: r, trace: trace}
	answer, err := invoke[v1.CreateTasksResponse](ctx, c, k)
	if err != nil {
		return err
	}
	if len(answer.Results) != len(numbers) {
		return fmt.Errorf("lubdub: POST /v1/tasks:batch: %w: %d results for %d tasks", ErrAnswer, len(answer.Results), len(numbers))
	}
	for n, i := range numbers {
		one, err := readResult(answer.Results[n], tasks[i].Queue != "")
		if err != nil {
			return fmt.Errorf("lubdub: POST /v1/tasks:batch: %w", err)
		}
		all[i] = *one
	}
	return nil
}

func readResult(result json.RawMessage, queued bool) (*Created, error) {
	var parsed struct {
		v1.Error
		Status       int   `json:"status"`
		RetryAfterMs int64 `json:"retryAfterMs"`
	}
	// A task and a refusal have fields of the same names, such as error, but of different types, so only the status is certain.
	err := json.Unmarshal(result, &parsed)
	if parsed.Status/100 == 2 {
		return readCreated(result, queued)
	}
	if err != nil && parsed.Error.Error == "" || parsed.Status < http.StatusBadRequest {
		return nil, fmt.Errorf("%w: a result is neither a task nor a refusal", ErrAnswer)
	}
	return &Created{Status: parsed.Status, Err: &Error{
		Status: parsed.Status, Code: Code(parsed.Error.Error), Message: parsed.Message, Details: parsed.Error, Operation: "POST /v1/tasks:batch",
		RetryAfter: time.Duration(parsed.RetryAfterMs) * time.Millisecond,
	}}, nil
}

// NextAttempt creates the attempt that follows fromAttempt: returns an envelope, or the task if it waits in a queue.
func (c *Client) NextAttempt(ctx context.Context, taskID string, r v1.NextAttemptRequest) (*Created, error) {
	var body json.RawMessage
	k := &call{method: http.MethodPost, path: "/v1/tasks/" + seg(taskID) + "/attempts", query: c.scoped(nil), in: r, out: &body}
	if err := c.do(ctx, k); err != nil {
		return nil, err
	}
	var state struct {
		State v1.State `json:"state"`
	}
	_ = json.Unmarshal(body, &state)
	created, err := readCreated(body, state.State == v1.Queued)
	if err != nil {
		return nil, fmt.Errorf("lubdub: %s: %w", k.operation(), err)
	}
	return created, nil
}
