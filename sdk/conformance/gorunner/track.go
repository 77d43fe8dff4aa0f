package main

import (
	"context"
	"errors"
	"sync"

	"github.com/lubdub-io/lubdub/sdk/go/client"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

// trackAll tracks every envelope at the same time.
func (r *runner) trackAll() {
	var all sync.WaitGroup
	for _, e := range r.Envelopes {
		all.Add(1)
		go func() {
			defer all.Done()
			r.track(e)
		}()
	}
	all.Wait()
}

func (r *runner) track(e *v1.TaskEnvelope) {
	ctx, held, err := r.client.Track(context.Background(), e)
	if err != nil {
		reason, _ := reasonOf(err)
		r.emit(event{Event: "refused", Task: e.TaskID, Attempt: e.Attempt, Reason: reason})
		return
	}
	defer held.Abandon()
	output, err := r.do(&attempt{ctx: ctx, envelope: e, progress: held})
	answer, err := complete(held, output, err)
	if err != nil {
		reason, _ := reasonOf(err)
		if reason == "" {
			reason = "Refused"
		}
		r.emit(event{Event: "settled", Task: e.TaskID, Attempt: e.Attempt, Failure: reason})
		return
	}
	r.emit(event{
		Event: "settled", Task: e.TaskID, Attempt: e.Attempt, FinalState: answer.FinalState, WillRetry: &answer.WillRetry,
		NextAttempt: answer.NextAttempt,
	})
}

func complete(a *client.Attempt, output any, err error) (*v1.CompletedResponse, error) {
	if err != nil {
		return a.Fail(err)
	}
	answer, err := a.Done(output)
	if errors.Is(err, client.ErrOutput) {
		return a.Fail(client.Permanent(err))
	}
	return answer, err
}
