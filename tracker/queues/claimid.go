package queues

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"time"

	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/schema"
	"github.com/lubdub-io/lubdub/tracker/store"
	"github.com/lubdub-io/lubdub/tracker/tasks"
	"github.com/lubdub-io/lubdub/tracker/workers"
)

// claimFollow is how long a superseded request waits for the result of its successor.
const claimFollow = time.Second

// claimTurn is how long a request may take tasks without a check, and so how long the mark of a request that died blocks another
// one. It is longer than a request takes, apart from its wait for tasks.
func (s *Service) claimTurn() time.Duration { return s.store.Timeout() * 3 / 2 }

// identify starts the claim under its ID. If an earlier request with this ID has taken tasks, this one returns the same tasks:
// those that the worker still holds according to the held sets, whatever the result of that request, and whether the worker lives.
// `counted` runs with the first step, unless it is nil.
func (c *claim) identify(ctx context.Context, counted *count) (answered bool, tasks []*model.Envelope, err error) {
	var also []*store.Call
	if counted != nil {
		also = counted.calls
	}
	if c.ClaimID == "" {
		c.queues.store.DoAll(ctx, "claim", also)
		return false, nil, nil
	}
	if _, ok := c.queues.store.WorkerRef(c.Scope, c.WorkerID); !ok {
		return false, nil, workers.NoWorker("claim")
	}
	c.mark, c.owner = markOf(c.ClaimID), model.NewID("")
	for {
		begun := time.Now()
		now, err := c.step(ctx, stepMake, also...)
		switch {
		case err != nil:
			return false, nil, err
		case now.state == claimAnswered:
			tasks, err = c.marked(ctx)
			return true, tasks, err
		case now.state == claimBusy: // it will have taken tasks, or not, in a moment
			if !c.listen() { // else it may have ended before this claim was listening
				c.awaitNudge(ctx, now.left+time.Millisecond)
			}
			if c.server.Err() != nil || c.queues.store.IsLate(ctx, nil) {
				return false, nil, store.AsUnavailable("claim", errClaimBusy())
			}
			also = nil
			continue
		case now.known: // a request with this ID may have died after it took tasks
			tasks, err = c.marked(ctx)
		}
		c.making, c.turn = true, begun.Add(c.queues.claimTurn())
		if answered = len(tasks) > 0; answered && err == nil {
			tasks, err = c.answered(ctx, tasks)
		}
		if err != nil {
			c.rest(ctx)
		}
		return answered, tasks, err
	}
}

// errClaimBusy is an error so that the client repeats the request: an empty response would end the claim for the worker, but not
// for the request that is taking tasks under its ID.
func errClaimBusy() *model.Error {
	return &model.Error{Code: model.Overloaded, RetryAfter: time.Second, Message: "another request with this claimId is being answered; " +
		"send it again with the same claimId, which gets the same tasks"}
}

// resume lets a claim that has waited take tasks again; false: a later request makes the claim, or has made it.
func (c *claim) resume(ctx context.Context) (bool, error) {
	begun := time.Now()
	if c.mark == "" || c.making && begun.Before(c.turn) {
		return true, nil
	}
	now, err := c.step(ctx, stepTake)
	c.making, c.turn = err == nil && now.state == claimMine, begun.Add(c.queues.claimTurn())
	return c.making, err
}

// rest lets later requests with the same ID make the claim while this one takes nothing.
func (c *claim) rest(ctx context.Context) {
	if c.making {
		c.making = false
		c.queues.store.Tidy(ctx, func(ctx context.Context) { _, _ = c.step(ctx, stepWait) }) // else its turn ends automatically
	}
}

// answered records that the claim has its tasks. The response must not be sent before: once the worker had finished the tasks, a
// repeat would look like a new claim. A request whose turn ended while it took tasks returns the result of the request that makes
// the claim now.
func (c *claim) answered(ctx context.Context, tasks []*model.Envelope) ([]*model.Envelope, error) {
	if c.mark == "" {
		return tasks, nil
	}
	c.making = false
	now, err := c.finish(ctx)
	switch {
	case err != nil:
		return nil, err
	case now.state == claimMine:
		return tasks, nil
	}
	return c.follow(ctx)
}

// overtaken reports whether another request with its ID has got tasks. If it cannot be checked now, the end of the wait checks
// again.
func (c *claim) overtaken(ctx context.Context) bool {
	if c.mark == "" || c.making {
		return false
	}
	now, err := c.step(ctx, stepCheck)
	c.over = err == nil && now.state == claimAnswered
	return c.over
}

// inVain ends a claim that gets no tasks: with the reason, nil when its wait is over, or with the result of another request with
// its ID that has got tasks or is taking some.
func (c *claim) inVain(ctx context.Context, reason error) ([]*model.Envelope, error) {
	if code := model.CodeOf(reason); c.mark == "" || code == model.Unavailable || code == model.Overloaded {
		return nil, reason
	}
	switch now, err := c.step(ctx, stepCheck); {
	case err != nil:
		return nil, err
	case now.state == claimAnswered, now.state == claimBusy:
		return c.follow(ctx)
	}
	return nil, reason
}

// follow returns the result of the later request that makes the claim, if there is one soon. While that request is taking tasks,
// the result is unknown.
func (c *claim) follow(ctx context.Context) ([]*model.Envelope, error) {
	c.listen()
	for latest := time.Now().Add(claimFollow); ; {
		now, err := c.step(ctx, stepWatch)
		switch {
		case err != nil:
			return nil, err
		case now.state == claimAnswered:
			return c.marked(ctx)
		case c.server.Err() == nil && !c.queues.store.IsLate(ctx, nil) && time.Now().Before(latest):
		case now.state == claimBusy:
			return nil, store.AsUnavailable("claim", errClaimBusy())
		default:
			return nil, nil
		}
		c.awaitNudge(ctx, time.Until(latest))
	}
}

// finish records that the claim has its tasks, and ends its reservation in the same round trip.
func (c *claim) finish(ctx context.Context) (claimedReply, error) {
	if c.places == 0 {
		return c.step(ctx, stepDone)
	}
	end := c.queues.workers.EndReservationCall(c.reservation.Reservation, c.used)
	now, err := c.step(ctx, stepDone, end)
	if c.queues.settled(c.reservation, end) {
		c.places, c.used = 0, 0
	}
	return now, err
}

// step executes a step on the claim's record, and other calls in the same round trip.
func (c *claim) step(ctx context.Context, what claimStep, also ...*store.Call) (claimedReply, error) {
	call := c.queues.claimedCall(c.Scope, c.WorkerID, c.mark, claimedArgs{request: c.owner, step: what, turn: c.queues.claimTurn()})
	c.queues.store.DoAll(ctx, "claim", append([]*store.Call{call}, also...))
	return readClaimed(call.Reply), call.Err
}

// markOf returns the hash of a claim's ID, which marks the tasks that it got.
func markOf(claimID string) string {
	sum := sha256.Sum256([]byte(claimID))
	return base64.RawURLEncoding.EncodeToString(sum[:15])
}

// marked returns the tasks that were claimed under this ID and that the worker still holds.
func (c *claim) marked(ctx context.Context) ([]*model.Envelope, error) {
	held, err := c.queues.holdings.HeldBy(ctx, "claim", c.Scope, c.WorkerID)
	if err != nil {
		return nil, err
	}
	var refs []*schema.TaskRef
	for _, h := range held {
		if h.Claim == c.mark {
			refs = append(refs, h.Ref)
		}
	}
	return c.queues.envelopesOf(ctx, refs, c.WorkerID)
}

// envelopesOf reads tasks that a worker holds and returns the envelopes of their attempts.
func (s *Service) envelopesOf(ctx context.Context, refs []*schema.TaskRef, workerID string) ([]*model.Envelope, error) {
	calls := store.CallEach(refs, func(r *schema.TaskRef) *store.Call { return s.tasks.GetCall(r, tasks.Whole) })
	s.store.DoAll(ctx, "claim", calls)
	if err := store.FirstError(calls); err != nil {
		return nil, err
	}
	var envelopes []*model.Envelope
	for i, c := range calls {
		v := tasks.ReadTask(refs[i], c.Reply)
		if v != nil && v.WorkerID == workerID && (v.State == model.Dispatched || v.State == model.Running) {
			envelopes = append(envelopes, s.tasks.Envelope(v.Task, v.Fence, v.Life))
		}
	}
	return envelopes, nil
}
