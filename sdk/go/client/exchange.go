package client

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

// Bounds of one exchange. A longer completion is sent on its own.
const (
	maxExchanged     = 100
	maxExchangedBody = 1 << 20
	longCompletion   = 64 << 10
)

// errAlone means that a completion must be sent on its own, with the token of its task: the server does not have exchanges, or the
// worker's token does not open the attempt, for instance since the worker has registered again.
var errAlone = errors.New("lubdub: the completion must be sent on its own")

// exchanger sends completions of workers' attempts. One request is in flight at a time; what comes meanwhile shares the next one.
type exchanger struct {
	client *Client
	base   *endpoints

	mu      sync.Mutex
	pending []*exchanged
	alive   bool // its goroutine runs
}

// exchanged is a completion that waits for its result.
type exchanged struct {
	worker string
	token  string
	item   []byte // of the request
	answer *v1.CompletedResponse
	result chan error // of capacity 1
	sent   *exchange  // nil: it is pending
}

// exchange is one request.
type exchange struct {
	waiting int // completions whose callers have not left
	cancel  context.CancelFunc
}

// complete sends a completion once and sets its answer. The error is that of the request or of this completion, or errAlone.
func (x *exchanger) complete(ctx context.Context, c *exchanged) error {
	c.result = make(chan error, 1)
	x.mu.Lock()
	x.pending = append(x.pending, c)
	if !x.alive {
		x.alive = true
		go x.run()
	}
	x.mu.Unlock()
	select {
	case err := <-c.result:
		return err
	case <-ctx.Done():
		x.leave(c)
		return ctx.Err()
	}
}

// leave removes a completion whose caller does not wait any longer. A request for which no caller waits is cut off.
func (x *exchanger) leave(c *exchanged) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if c.sent == nil {
		x.pending = slices.DeleteFunc(x.pending, func(other *exchanged) bool { return other == c })
		return
	}
	if c.sent.waiting--; c.sent.waiting == 0 {
		c.sent.cancel()
	}
}

// run sends what is pending until nothing is.
func (x *exchanger) run() {
	for {
		ctx, cancel := context.WithCancel(context.Background())
		some := x.take(cancel)
		if len(some) == 0 {
			cancel()
			return
		}
		err := x.send(ctx, some)
		cancel()
		if err != nil && !again(err) {
			err = errAlone
		}
		for _, c := range some {
			if err != nil {
				c.result <- err
			}
		}
	}
}

// take takes completions of one worker that fit into a request.
func (x *exchanger) take(cancel context.CancelFunc) (some []*exchanged) {
	x.mu.Lock()
	defer x.mu.Unlock()
	request, size := &exchange{cancel: cancel}, 0
	x.pending = slices.DeleteFunc(x.pending, func(c *exchanged) bool {
		if len(some) == maxExchanged || size+len(c.item) > maxExchangedBody || len(some) > 0 && c.worker != some[0].worker {
			return false
		}
		some, size = append(some, c), size+len(c.item)
		c.sent = request
		return true
	})
	request.waiting = len(some)
	x.alive = len(some) > 0
	return some
}

// send makes one request and gives each completion its result, unless it returns an error.
func (x *exchanger) send(ctx context.Context, some []*exchanged) error {
	body := []byte(`{"completed":[`)
	for i, c := range some {
		if i > 0 {
			body = append(body, ',')
		}
		body = append(body, c.item...)
	}
	var answer v1.ExchangeResponse
	k := &call{method: http.MethodPost, path: "/v1/workers/" + seg(some[0].worker) + "/exchange", base: x.base, token: some[0].token,
		body: append(body, `]}`...), out: &answer, tries: 1}
	if err := x.client.do(ctx, k); err != nil {
		return err
	}
	if len(answer.Completed) != len(some) {
		return fmt.Errorf("lubdub: %s: %w: %d results for %d completions", k.operation(), ErrAnswer, len(answer.Completed), len(some))
	}
	for i, c := range some {
		c.result <- c.read(k.operation(), &answer.Completed[i])
	}
	return nil
}

// read reads a result.
func (c *exchanged) read(operation string, r *v1.CompletionResult) error {
	switch {
	case r.Status == http.StatusForbidden:
		return errAlone
	case r.Status/100 != 2:
		return &Error{
			Status: r.Status, Code: Code(r.Error), Message: r.Message, Operation: operation,
			RetryAfter: time.Duration(r.RetryAfterMs) * time.Millisecond,
			Details: v1.Error{Error: r.Error, Message: r.Message, Field: r.Field, State: r.State, Reason: r.Reason,
				ExpectedAttempt: r.ExpectedAttempt, ReceivedAttempt: r.ReceivedAttempt},
		}
	}
	*c.answer = v1.CompletedResponse{Acknowledged: r.Acknowledged, FinalState: r.FinalState, ServerTime: r.ServerTime,
		WillRetry: r.WillRetry, NextAttempt: r.NextAttempt}
	return nil
}
