package client

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"time"

	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

// Bounds of a batch of EnqueueMany: the server accepts 1,000 creations and 4 MiB.
const (
	maxEnqueued      = 1000
	maxEnqueuedBytes = 2 << 20
)

// NewTask is a task for EnqueueMany.
type NewTask struct {
	// Queue is where the task waits, and Type is the kind of work.
	Queue, Type string
	// Payload is any value that encoding/json can encode; nil: no payload. JSON that is encoded already is a json.RawMessage.
	Payload any
	// Options are those of Enqueue.
	Options []CreateOption
}

// Enqueue creates a task of a type that waits in a queue. The payload is any value that encoding/json can encode; nil: no payload. JSON
// that is encoded already is a json.RawMessage. The client's retries of the creation are safe.
//
// It fails with an *Error if the server refuses the task, and with the last error of the connection if no server answers; then, and after a
// status of 503, the task may exist all the same. To repeat such a call safely, use an IdempotencyKey. A payload that cannot be encoded
// fails without a request.
func (c *Client) Enqueue(ctx context.Context, queue, taskType string, payload any, opts ...CreateOption) (*v1.Task, error) {
	r, err := c.queued(NewTask{Queue: queue, Type: taskType, Payload: payload, Options: opts})
	if err != nil {
		return nil, err
	}
	created, err := c.create(ctx, r)
	if err != nil {
		return nil, err
	}
	if created.Task == nil {
		return nil, fmt.Errorf("lubdub: POST /v1/tasks: %w", ErrAnswer)
	}
	return created.Task, nil
}

// EnqueueMany creates any number of tasks, in batches of at most 1,000, and yields one result for each, in order: the task, or the error,
// as with Enqueue. Nothing is created until the results are read, and each loop over them creates the tasks. A batch is sent when it is
// full or the tasks end; what remains of it when the loop ends early has been created too. Tasks that the server answers with 503 or 429
// are created again as by CreateTasks. Once ctx has ended, the loop ends after the batch that was under way.
func (c *Client) EnqueueMany(ctx context.Context, tasks iter.Seq[NewTask]) iter.Seq2[*v1.Task, error] {
	return func(yield func(*v1.Task, error) bool) {
		b := batch{client: c, yield: yield}
		for task := range tasks {
			item, size, err := c.item(task)
			if b.bytes+size > maxEnqueuedBytes && !b.send(ctx) {
				return
			}
			if b.add(item, size, err); len(b.errs) == maxEnqueued && !b.send(ctx) {
				return
			}
		}
		b.send(ctx)
	}
}

// batch is the tasks of EnqueueMany that have not been created yet.
type batch struct {
	client *Client
	yield  func(*v1.Task, error) bool
	items  []v1.CreateTasksItem
	errs   []error // for each task why it is not in items; nil: it is
	bytes  int
}

func (b *batch) add(item v1.CreateTasksItem, size int, err error) {
	b.errs = append(b.errs, err)
	if err == nil {
		b.items = append(b.items, item)
		b.bytes += size
	}
}

// send creates the tasks and yields their results; false: the loop has ended.
func (b *batch) send(ctx context.Context) bool {
	var created []Created
	var failed error
	if len(b.items) > 0 {
		created, failed = b.client.CreateTasks(ctx, b.items)
	}
	n := 0
	for _, err := range b.errs {
		var task *v1.Task
		switch {
		case err != nil: // it was not sent
		case failed != nil:
			err = failed
		default:
			task, err = created[n].Task, created[n].Err
			n++
		}
		if !b.yield(task, err) {
			return false
		}
	}
	b.items, b.errs, b.bytes = b.items[:0], b.errs[:0], 0
	return ctx.Err() == nil
}

// item is one creation of a batch, and its size in bytes.
func (c *Client) item(n NewTask) (v1.CreateTasksItem, int, error) {
	r, err := c.queued(n)
	if err != nil {
		return v1.CreateTasksItem{}, 0, err
	}
	r.Traceparent = cmp.Or(r.Traceparent, r.trace)
	body, err := json.Marshal(r.CreateTasksItem)
	return r.CreateTasksItem, len(body), err
}

// queued is the creation of a task that waits in a queue.
func (c *Client) queued(n NewTask) (creation, error) {
	request := v1.CreateTaskRequest{Queue: n.Queue, Type: n.Type}
	if n.Payload != nil {
		payload, err := json.Marshal(n.Payload)
		if err != nil {
			return creation{}, fmt.Errorf("lubdub: the payload of a task for queue %q: %w", n.Queue, err)
		}
		request.Payload = payload
	}
	r := c.creation(request, n.Options)
	if r.Queue == "" {
		return r, errors.New("lubdub: a task to enqueue needs a queue; CreateTask creates tasks without one")
	}
	return r, nil
}

// creation is a request with its options.
type creation struct {
	v1.CreateTasksItem
	trace string
}

func (c *Client) creation(request v1.CreateTaskRequest, opts []CreateOption) creation {
	r := creation{CreateTasksItem: v1.CreateTasksItem{CreateTaskRequest: request}}
	for _, opt := range opts {
		opt(&r)
	}
	return r
}

// CreateOption configures CreateTask, Enqueue and a NewTask.
type CreateOption func(*creation)

// IdempotencyKey makes retries of this creation safe for 24 hours, also from other processes. Without it one is generated, which makes the
// client's retries safe.
func IdempotencyKey(key string) CreateOption { return func(r *creation) { r.IdempotencyKey = key } }

// Traceparent is the W3C trace context that the task belongs to.
func Traceparent(t string) CreateOption { return func(r *creation) { r.trace = t } }

// Delay is how long the task is SCHEDULED, from its creation on by the server's clock, before a worker may claim it; at
// most 366 days. Zero or less: not at all.
func Delay(d time.Duration) CreateOption { return func(r *creation) { r.DelayMs = wholeMs(d) } }

// RunAt is the time until which the task is SCHEDULED, before a worker may claim it. A time that has passed: not at all.
func RunAt(t time.Time) CreateOption { return func(r *creation) { r.RunAt = v1.At(t) } }

// Set changes the request before it is sent; use it for fields that have no option, such as Labels, Retry and Deadline.
func Set(change func(*v1.CreateTaskRequest)) CreateOption {
	return func(r *creation) { change(&r.CreateTaskRequest) }
}
