package client

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"sync"
	"time"

	"github.com/lubdub-io/lubdub/sdk/go/internal/clock"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

// TaskFailed is the error of Result for a task that FAILED or was CANCELLED.
type TaskFailed struct {
	// Task is the task as lists have it, without payload and resources.
	Task *v1.Task
}

// Error returns the id and state of the task, and why it ended.
func (e *TaskFailed) Error() string {
	t := e.Task
	text := fmt.Sprintf("lubdub: task %s %s", t.TaskID, t.State)
	if t.Reason != nil {
		text += " (" + *t.Reason + ")"
	}
	var reported struct{ Message string }
	_ = json.Unmarshal(t.Error, &reported) // absent after a verdict
	switch {
	case t.State == v1.Cancelled && t.CancelReason != nil:
		text += ": " + *t.CancelReason
	case reported.Message != "":
		text += ": " + reported.Message
	}
	return text
}

// WaitTasks returns those of the tasks that have ended, as soon as there is one, or none after `wait`, which is at most a minute. Use
// Result to wait for any number of tasks.
func (c *Client) WaitTasks(ctx context.Context, taskIDs []string, wait time.Duration) (*v1.WaitTasksResponse, error) {
	return c.waitTasks(ctx, taskIDs, wait, 0)
}

func (c *Client) waitTasks(ctx context.Context, taskIDs []string, wait time.Duration, tries int) (*v1.WaitTasksResponse, error) {
	ms := wait.Milliseconds()
	var ended v1.WaitTasksResponse
	err := c.do(ctx, &call{
		method: http.MethodPost, path: "/v1/tasks:wait", query: c.scoped(nil), in: v1.WaitTasksRequest{TaskIDs: taskIDs, WaitMs: &ms},
		out: &ended, wait: wait, tries: tries,
	})
	return &ended, err
}

// Result waits until a task has ended. If it SUCCEEDED, its output is decoded into the value that output points to, as by json.Unmarshal;
// nil: it is not decoded. If it FAILED or was CANCELLED the error is a *TaskFailed; an unknown task is ErrTaskNotFound. When ctx ends,
// only the wait ends.
//
// Any number of calls share one connection, and the client's token must be allowed to read tasks.
func (c *Client) Result(ctx context.Context, id string, output any) error {
	if !taskID.MatchString(id) { // the server would refuse the whole request, with the ids of other calls
		return fmt.Errorf("lubdub: %q is not the id of a task", id)
	}
	a := c.results.join(id)
	select {
	case <-a.done:
	case <-ctx.Done():
		c.results.leave(a)
		return fmt.Errorf("lubdub: waiting for the result of task %s: %w", id, ctx.Err())
	}
	switch {
	case a.err != nil:
		return a.err
	case a.task.State != v1.Succeeded:
		return &TaskFailed{a.task}
	case output == nil:
		return nil
	}
	if err := json.Unmarshal(a.task.Output, output); err != nil {
		return fmt.Errorf("lubdub: the output of task %s: %w", id, err)
	}
	return nil
}

// Waits of requests for results. They are short while tasks are added, so that an addition rarely has to cancel a request, which would
// cost a connection, and double while none is.
const (
	firstResultWait = 10 * time.Millisecond
	shortResultWait = 100 * time.Millisecond // an addition cancels requests that wait longer
	longResultWait  = 30 * time.Second
	turnResultWait  = time.Second // for all tasks together, if they are more than a request may name
	leastTurnWait   = 50 * time.Millisecond
	resultWaitEach  = 100 * time.Microsecond

	maxResults = 1000 // tasks of a request
	maxAnswers = 100  // tasks of an answer
)

var taskID = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$`)

// results are the tasks whose results the client waits for. One goroutine asks for all of them while there is one.
type results struct {
	client *Client

	mu      sync.Mutex
	of      map[string]*awaited
	order   []*awaited // in which they are asked for; may have removed ones
	asks    bool       // the goroutine runs
	resume  func()     // ends its pause; nil: it does not pause
	added   bool       // since the last request was made
	request struct {   // that is under way
		cancel context.CancelFunc // nil: no request is under way
		wait   time.Duration
	}
}

// awaited is a task that some calls wait for.
type awaited struct {
	id    string
	calls int
	done  chan struct{} // closed once task or err is set
	task  *v1.Task
	err   error
}

// join adds a call that waits for a task.
func (r *results) join(id string) *awaited {
	r.mu.Lock()
	defer r.mu.Unlock()
	a := r.of[id]
	if a == nil {
		a = &awaited{id: id, done: make(chan struct{})}
		r.of[id], r.order, r.added = a, append(r.order, a), true
		if r.request.cancel != nil && r.request.wait > shortResultWait {
			r.request.cancel()
		}
	}
	a.calls++
	if !r.asks {
		r.asks = true
		go r.ask()
	}
	return a
}

// leave removes a call that waits no longer.
func (r *results) leave(a *awaited) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if a.calls--; a.calls == 0 {
		r.remove(a)
	}
}

// remove removes a task, and ends the request or the pause if it was the last one. The caller has the lock.
func (r *results) remove(a *awaited) {
	if r.of[a.id] != a {
		return
	}
	delete(r.of, a.id)
	if len(r.of) > 0 {
		return
	}
	if r.request.cancel != nil {
		r.request.cancel()
	}
	if r.resume != nil {
		r.resume()
	}
}

// ask asks for results until no call waits for one.
func (r *results) ask() {
	var wait time.Duration
	for failures := 0; ; {
		ctx, ids, of := r.next(&wait)
		if ids == nil {
			return
		}
		began := r.client.set.clock.Now()
		ended, err := r.client.waitTasks(ctx, ids, wait, 1)
		superseded := ctx.Err() != nil
		r.requested()
		switch {
		case err == nil:
			settled := r.settle(ended)
			if took := clock.Elapsed(began, r.client.set.clock.Now()); settled == 0 && took < wait/2 {
				r.pause(backoff(failures, maxPause, nil)) // a server that does not wait is not called without a pause
				failures++
			} else if failures = 0; len(ended.Tasks) < maxAnswers {
				r.pause(r.shortened() - took) // many ends share an answer
			}
		case r.client.closing.Err() != nil:
			r.fail(of, ErrClosed)
		case superseded:
		case again(err):
			r.pause(backoff(failures, maxPause, err))
			failures++
		default:
			r.fail(of, err)
		}
	}
}

// next returns the tasks to ask for, and the context of the request; no ids if no call waits any more. wait is that of the request
// before.
func (r *results) next(wait *time.Duration) (ctx context.Context, ids []string, of []*awaited) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.order = slices.DeleteFunc(r.order, func(a *awaited) bool { return r.of[a.id] != a })
	if r.asks = len(r.order) > 0; !r.asks {
		return nil, nil, nil
	}
	*wait = min(2*max(*wait, firstResultWait), longResultWait)
	if r.added {
		*wait = max(shortened(len(r.order)), firstResultWait)
	}
	of = slices.Clone(r.order)
	if len(of) > maxResults {
		of = of[:maxResults]
		r.order = append(r.order[maxResults:], of...)
		*wait = min(*wait, max(turnResultWait*maxResults/time.Duration(len(r.order)), leastTurnWait))
	}
	for _, a := range of {
		ids = append(ids, a.id)
	}
	ctx, r.request.cancel = context.WithCancel(r.client.closing)
	r.request.wait, r.added = *wait, false
	return ctx, ids, of
}

// pause waits before the next request, as long as a call waits for a result.
func (r *results) pause(d time.Duration) {
	ctx, resume := context.WithCancel(r.client.closing)
	defer resume()
	r.mu.Lock()
	r.resume = resume
	if len(r.of) == 0 {
		resume()
	}
	r.mu.Unlock()
	clock.Sleep(r.client.set.clock, d, ctx.Done())
	r.mu.Lock()
	r.resume = nil
	r.mu.Unlock()
}

// shortened returns the wait after additions.
func (r *results) shortened() time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	return shortened(len(r.of))
}

func shortened(n int) time.Duration { return min(time.Duration(n)*resultWaitEach, shortResultWait) }

// requested forgets the request that was under way.
func (r *results) requested() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.request.cancel()
	r.request.cancel = nil
}

// settle gives the calls their results, and returns how many tasks were awaited.
func (r *results) settle(ended *v1.WaitTasksResponse) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	before := len(r.of)
	for i := range ended.Tasks {
		r.end(r.of[ended.Tasks[i].TaskID], &ended.Tasks[i], nil)
	}
	for _, id := range ended.NotFound {
		r.end(r.of[id], nil, &Error{
			Status: http.StatusNotFound, Code: ErrTaskNotFound, Operation: "POST /v1/tasks:wait",
			Message: "no task " + id + "; finished tasks are removed at the end of their retention",
		})
	}
	return before - len(r.of)
}

// fail ends the waits for tasks with an error.
func (r *results) fail(of []*awaited, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, a := range of {
		r.end(a, nil, err)
	}
}

func (r *results) end(a *awaited, task *v1.Task, err error) {
	if a == nil || r.of[a.id] != a {
		return
	}
	r.remove(a)
	a.task, a.err = task, err
	close(a.done)
}
