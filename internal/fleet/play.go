package fleet

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/lubdub-io/lubdub/sdk/go/client"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

// play is one task that follows its script. Only one goroutine uses it.
type play struct {
	fleet   *Fleet
	random  *rand.Rand
	timeout time.Duration // of the heartbeat, drawn for this task
	number  int           // numbers the fleet's tasks

	task       string    // its id; empty until it is created
	begun      time.Time // when its creation was requested
	runners    []*runner
	expect     Expect
	verdictDue time.Time // by this process's clock: when to begin polling for an end that Lubdub itself must bring about
	complaints []string

	waits   time.Duration              // how long after verdictDue its end is waited for; 0: the fleet's patience
	excused func(v1.HistoryEntry) bool // as in Seen
}

func (p *play) complainf(format string, args ...any) {
	p.complaints = append(p.complaints, fmt.Sprintf(format, args...))
}

// create creates the task and the worker of its first attempt.
func (p *play) create(ctx context.Context, adjust func(*v1.CreateTaskRequest)) (*runner, error) {
	interval := p.timeout.Milliseconds() / 4
	timeout := p.timeout.Milliseconds()
	r := v1.CreateTaskRequest{
		RunID: p.fleet.opts.RunID, Type: "simulated", TenantID: p.fleet.opts.Tenant, WorkspaceID: p.fleet.opts.Workspace,
		HeartbeatIntervalMs: &interval, HeartbeatTimeoutMs: &timeout,
	}
	if adjust != nil {
		adjust(&r)
	}
	p.begun = time.Now()
	key := fmt.Sprintf("%s-%d", p.fleet.opts.RunID, p.number) // a lost answer must not leave a second task behind
	var made *client.Created
	if err := p.fleet.control(ctx, func() (err error) {
		made, err = p.fleet.api.CreateTask(ctx, r, client.IdempotencyKey(key))
		return err
	}); err != nil {
		return nil, err
	}
	p.task = made.TaskID()
	p.fleet.tally.created.Add(1)
	return p.hire(*made.Envelope), nil
}

// next requests another attempt and creates a worker for it.
func (p *play) next(ctx context.Context, from int) (*runner, v1.TaskEnvelope, error) {
	var made *client.Created
	if err := p.fleet.control(ctx, func() (err error) {
		made, err = p.fleet.api.NextAttempt(ctx, p.task, v1.NextAttemptRequest{FromAttempt: from})
		return err
	}); err != nil {
		return nil, v1.TaskEnvelope{}, err
	}
	return p.hire(*made.Envelope), *made.Envelope, nil
}

func (p *play) hire(e v1.TaskEnvelope) *runner {
	r := &runner{fleet: p.fleet, envelope: e, token: e.TaskToken, id: fmt.Sprintf("sim-%d-%d", p.number, e.Attempt)}
	if r.timeout() != p.timeout {
		p.complainf("the envelope has a heartbeat timeout of %v, and %v was requested", r.timeout(), p.timeout)
	}
	p.runners = append(p.runners, r)
	return r
}

func (p *play) cancel(ctx context.Context, reason string) error {
	err := p.fleet.control(ctx, func() error {
		_, err := p.fleet.api.CancelTask(ctx, p.task, v1.CancelRequest{Reason: reason})
		return err
	})
	if r, ok := errors.AsType[*client.Error](err); ok && r.Status == http.StatusConflict && r.Details.State == v1.Cancelled {
		return nil // an answer was lost, and the call before this one has cancelled the task
	}
	return err
}

// get reads the task back; nil without an error if the API does not know it.
func (p *play) get(ctx context.Context) (*v1.Task, error) {
	ctx, cancel := context.WithTimeout(ctx, p.patience())
	defer cancel()
	var t *v1.Task
	err := p.fleet.control(ctx, func() (err error) {
		t, err = p.fleet.api.GetTask(ctx, p.task)
		return err
	})
	if missing(err) {
		return nil, nil
	}
	return t, err
}

// beats beats n times, each after its interval, with rising progress.
func (p *play) beats(ctx context.Context, r *runner, n int, every time.Duration) error {
	for i := range n {
		if !pause(ctx, jitter(p.random, every)) {
			return ctx.Err()
		}
		if err := r.beat(ctx, float64(100*(i+1)/(n+1)), fmt.Sprintf("step %d of %d", i+1, n)); err != nil {
			return fmt.Errorf("beat: %w", err)
		}
	}
	return nil
}

// beatUntilRefused continues to beat, ignoring all requests, until Lubdub refuses because the attempt is over.
func (p *play) beatUntilRefused(ctx context.Context, r *runner) error {
	for until := time.Now().Add(p.patience()); time.Now().Before(until); {
		if !pause(ctx, jitter(p.random, r.interval())) {
			return ctx.Err()
		}
		if err := r.beat(ctx, 50, "still here"); refusedWith(err) == http.StatusGone {
			return nil
		} else if err != nil {
			return fmt.Errorf("beat: %w", err)
		}
	}
	return nil // the judge will find the task unfinished
}

// end completes the attempt, and checks the answer.
func (p *play) end(ctx context.Context, r *runner, c v1.CompletedRequest) error {
	c.CompletedAt = v1.At(time.Now())
	for range 1 + p.random.IntN(2) { // a repeated completion must get the same answer
		a, err := r.complete(ctx, c)
		if err != nil {
			return fmt.Errorf("completion: %w", err)
		}
		if string(a.FinalState) != string(c.Outcome) || !a.Acknowledged {
			p.complainf("a completion as %s was answered with %s", c.Outcome, a.FinalState)
		}
	}
	return nil
}

// patience returns how long after its due end a task is waited for before it counts as missed.
func (p *play) patience() time.Duration {
	if p.waits > 0 {
		return p.waits
	}
	return p.fleet.opts.Patience
}

// settle waits for the end of the task and returns what is then observed. The error is the context's.
func (p *play) settle(ctx context.Context) (Seen, error) {
	s := Seen{Timeout: p.timeout, Complaints: p.complaints, Delay: p.fleet.delays.within, Excused: p.excused}
	for _, r := range p.runners {
		s.Silence = max(s.Silence, r.longest)
	}
	due := p.verdictDue
	if due.IsZero() {
		due = time.Now()
	}
	if !pause(ctx, time.Until(due)) {
		return s, ctx.Err()
	}
	for wait := firstPoll; ; wait = min(2*wait, lastPoll) {
		t, err := p.get(ctx)
		now := time.Now()
		s.Task, s.Waited = t, now.Sub(due)
		over := s.Waited-min(p.patience(), p.fleet.delays.within(due, now)) >= p.patience()
		switch {
		case err != nil && ctx.Err() != nil:
			return s, ctx.Err()
		case err != nil && !again(err):
			s.Complaints = append(s.Complaints, fmt.Sprintf("reading it back was answered with %v", err))
			return s, nil
		case err != nil:
			s.Unread = fmt.Sprintf("it could not be read back: %v", err)
			return s, nil
		case t == nil || terminal(t.State) || over:
			return s, nil
		}
		if !pause(ctx, wait) {
			return s, ctx.Err()
		}
	}
}

// How long to wait between two polls for an end: frequent polls by many plays would delay what they wait for.
const (
	firstPoll = 50 * time.Millisecond
	lastPoll  = 400 * time.Millisecond
)

// expectVerdict expects Lubdub itself to end the attempt for this reason, no earlier than due on its clock.
func (p *play) expectVerdict(r *runner, outcome, reason string, due time.Time, timeout time.Duration) {
	// The worker's last callback, or the creation, was sent before it was stored, so this is no later than due, and polling early is
	// harmless.
	p.verdictDue = p.begun.Add(due.Sub(r.lastAcked))
	if !r.sent.IsZero() {
		p.verdictDue = r.sent.Add(due.Sub(r.lastAcked))
	}
	p.expect = Expect{State: v1.Failed, Reason: reason, Attempts: append(p.expect.Attempts, ExpectAttempt{
		Outcome: outcome, Reason: reason, Due: due, DueHere: p.verdictDue, Unsure: r.took, Timeout: timeout,
	})}
}

// expectEnd expects the worker to end its attempt.
func (p *play) expectEnd(state v1.State, reason string) {
	p.expect.State, p.expect.Reason = state, reason
	p.expect.Attempts = append(p.expect.Attempts, ExpectAttempt{Outcome: string(state), Reason: reason})
}
