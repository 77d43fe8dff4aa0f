package api

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/internal/shares"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
	"github.com/lubdub-io/lubdub/tracker"
)

// refusingTracker refuses whatever it is asked.
type refusingTracker struct {
	*fakeTracker
	err error
}

func (r *refusingTracker) Beat(b *tracker.Beat) { b.Err = r.err }

func (r *refusingTracker) Land(beats []*tracker.Beat, landed func([]*tracker.Beat)) {
	for _, b := range beats {
		r.Beat(b)
	}
	landed(beats)
}

func (r *refusingTracker) Revoke(context.Context, tracker.Revocation) error { return r.err }

func (r *refusingTracker) Stats(context.Context, tracker.Scope) (*tracker.Stats, error) {
	return nil, r.err
}

func (r *refusingTracker) Verdicts(context.Context, tracker.VerdictQuery) (*tracker.Verdicts, error) {
	return nil, r.err
}

func (r *refusingTracker) System(context.Context) (*tracker.System, error) { return nil, r.err }

func (r *refusingTracker) Scopes(context.Context, tracker.ScopeFilter) (*tracker.ScopePage, error) {
	return nil, r.err
}

func (r *refusingTracker) Beats(beats []*tracker.Beat) {
	for _, b := range beats {
		b.Err = r.err
	}
}

func (r *refusingTracker) Start(context.Context, *tracker.Attempt, tracker.Report) (tracker.Acknowledged, error) {
	return tracker.Acknowledged{}, r.err
}

func (r *refusingTracker) Complete(context.Context, *tracker.Attempt, tracker.Completion) (tracker.Completed, error) {
	return tracker.Completed{}, r.err
}

func (r *refusingTracker) Create(context.Context, tracker.NewTask) (*tracker.Created, error) {
	return nil, r.err
}

func (r *refusingTracker) CreateBatch(_ context.Context, news []tracker.NewTask) []tracker.CreateResult {
	return slices.Repeat([]tracker.CreateResult{{Err: r.err}}, len(news))
}

func (r *refusingTracker) NextAttempt(context.Context, tracker.Scope, string, int) (*tracker.Created, error) {
	return nil, r.err
}

func (r *refusingTracker) Cancel(context.Context, tracker.Scope, string, tracker.CancelRequest) (*tracker.Task, error) {
	return nil, r.err
}

func (r *refusingTracker) Get(context.Context, tracker.Scope, string) (*tracker.Task, error) {
	return nil, r.err
}

func (r *refusingTracker) List(context.Context, tracker.TaskFilter) (*tracker.TaskPage, error) {
	return nil, r.err
}

func (r *refusingTracker) CancelTasks(
	context.Context, tracker.TaskFilter, tracker.CancelRequest, bool,
) (*tracker.ActedOnTasks, error) {
	return nil, r.err
}

func (r *refusingTracker) RetryTasks(context.Context, tracker.TaskFilter, bool) (*tracker.ActedOnTasks, error) {
	return nil, r.err
}

func (r *refusingTracker) Run(context.Context, tracker.Scope, string) (*tracker.Run, error) {
	return nil, r.err
}

func (r *refusingTracker) CancelRun(context.Context, tracker.Scope, string, tracker.CancelRequest) (*tracker.Run, error) {
	return nil, r.err
}

func (r *refusingTracker) Register(context.Context, tracker.NewWorker) (*tracker.Registered, error) {
	return nil, r.err
}

func (r *refusingTracker) AdoptWorker(context.Context, tracker.Scope, string, []string) error {
	return r.err
}

func (r *refusingTracker) BeatWorker(context.Context, tracker.Scope, string, tracker.WorkerBeat) (*tracker.WorkerHeard, error) {
	return nil, r.err
}

func (r *refusingTracker) Worker(context.Context, tracker.Scope, string) (*tracker.Worker, error) {
	return nil, r.err
}

func (r *refusingTracker) Workers(context.Context, tracker.WorkerFilter) (*tracker.WorkerPage, error) {
	return nil, r.err
}

func (r *refusingTracker) DrainWorker(context.Context, tracker.Scope, string, tracker.Drain) (*tracker.Worker, error) {
	return nil, r.err
}

func (r *refusingTracker) DrainWorkers(context.Context, tracker.WorkerFilter, tracker.Drain, bool) (*tracker.Drained, error) {
	return nil, r.err
}

func (r *refusingTracker) ResumeWorker(context.Context, tracker.Scope, string, string) (*tracker.Worker, error) {
	return nil, r.err
}

func (r *refusingTracker) RetireWorker(context.Context, tracker.Scope, string, tracker.WorkerReason, string) (*tracker.Worker, error) {
	return nil, r.err
}

func (r *refusingTracker) CordonWorker(context.Context, tracker.Scope, string, string) (*tracker.Worker, error) {
	return nil, r.err
}

func (r *refusingTracker) UncordonWorker(context.Context, tracker.Scope, string, string) (*tracker.Worker, error) {
	return nil, r.err
}

func (r *refusingTracker) ActOnWorkers(context.Context, tracker.WorkerAct, tracker.WorkerFilter, string, bool) (*tracker.Acted, error) {
	return nil, r.err
}

func (r *refusingTracker) Select(context.Context, tracker.Selector) (*tracker.Selection, error) {
	return nil, r.err
}

func (r *refusingTracker) Machine(context.Context, tracker.Scope, string) (*tracker.Machine, error) {
	return nil, r.err
}

func (r *refusingTracker) Machines(context.Context, tracker.MachineFilter) (*tracker.MachinePage, error) {
	return nil, r.err
}

func (r *refusingTracker) DrainMachine(context.Context, tracker.Scope, string, tracker.Drain) (*tracker.Drained, error) {
	return nil, r.err
}

func (r *refusingTracker) OfflineMachine(context.Context, tracker.Scope, string, string) (*tracker.Acted, error) {
	return nil, r.err
}

func (r *refusingTracker) ResumeMachine(context.Context, tracker.Scope, string, string) (*tracker.Resumed, error) {
	return nil, r.err
}

func (r *refusingTracker) Sweep(context.Context) (tracker.SweepResult, error) {
	return tracker.SweepResult{}, r.err
}

func (r *refusingTracker) Release(context.Context, tracker.Scope, time.Duration) (*tracker.Released, error) {
	return nil, r.err
}

func (r *refusingTracker) Owned(context.Context, tracker.Scope, string, []tracker.OwnedAttempt) ([]*tracker.Attempt, error) {
	return nil, r.err
}

func (r *refusingTracker) Claim(context.Context, tracker.ClaimRequest) ([]*tracker.Envelope, error) {
	return nil, r.err
}

func (r *refusingTracker) Events(context.Context, tracker.EventQuery) (*tracker.EventPage, error) {
	return nil, r.err
}

func (r *refusingTracker) FollowEvents(context.Context, tracker.EventFilter, string, string) (*tracker.EventListener, error) {
	return nil, r.err
}

func (r *refusingTracker) Queues(context.Context, tracker.Scope) ([]*tracker.Queue, error) {
	return nil, r.err
}

func (r *refusingTracker) Queue(context.Context, tracker.Scope, string) (*tracker.Queue, error) {
	return nil, r.err
}

func (r *refusingTracker) PauseQueue(context.Context, tracker.Scope, string) (bool, error) {
	return false, r.err
}

func (r *refusingTracker) ResumeQueue(context.Context, tracker.Scope, string) error { return r.err }

// refusesAll asks a route, with each kind of token that may open it, and wants a refusal that says when to come again, for
// each item where each has an answer of its own.
func (p *prompt) refusesAll(t *testing.T, r *route, status int, after time.Duration) {
	t.Helper()
	path, token, body := p.request(r)
	p.refuses(t, r, p.do(r.method, path, token, body), status, after)
	if r.access == forTask || r.access == forItems { // a worker's token is looked up first
		p.refuses(t, r, p.do(r.method, path, p.worker.WorkerToken, body), status, after)
	}
}

func (p *prompt) refuses(t *testing.T, r *route, a *answer, status int, after time.Duration) {
	t.Helper()
	if a.status == 200 && (r.op == opHeartbeats || r.op == opCreateBatch) {
		var answer struct {
			Results []struct {
				Status       int
				RetryAfterMs int64
			}
		}
		if err := json.Unmarshal([]byte(a.body), &answer); err != nil || len(answer.Results) == 0 {
			t.Fatalf("%s: %v: %s", r, err, a.body)
		}
		for _, item := range answer.Results {
			if item.Status != status || item.RetryAfterMs != after.Milliseconds() {
				t.Errorf("%s: want %d, and again after %v: %s", r, status, after, a.body)
			}
		}
		return
	}
	seconds := strconv.Itoa(int((after + time.Second - 1) / time.Second))
	if got := a.header.Get("Retry-After"); a.status != status || got != seconds {
		t.Errorf("%s: %d with Retry-After %q, want %d with %s: %s", r, a.status, got, status, seconds, a.body)
	}
}

// Whatever a route asks the store for, and whichever bound it meets: 503 and 429 say when to come again.
func TestEveryRefusalThatMayPassSaysWhen(t *testing.T) {
	t.Parallel()
	storeless := []string{"index", "livez", "readyz", "healthz", "version", "openapi"} // TestDrainingSwitchesReadinessOffOnly
	full := func(c *Config) { c.MaxControl = 1 }
	spent := func(c *Config) { c.TenantBeats, c.TenantCalls = 1, 1 }
	for name, c := range map[string]struct {
		err       error
		configure func(*Config)
		status    int
		after     time.Duration
	}{
		"unavailable": {err: &tracker.Error{Code: tracker.Unavailable}, status: 503, after: time.Second},
		"unavailable for long": {err: &tracker.Error{Code: tracker.Unavailable, RetryAfter: 2500 * time.Millisecond}, status: 503,
			after: 2500 * time.Millisecond},
		"overloaded":            {err: &tracker.Error{Code: tracker.Overloaded}, status: 503, after: time.Second},
		"too many":              {err: &tracker.Error{Code: tracker.Overloaded, TooMany: true}, status: 429, after: time.Second},
		"too late":              {err: context.DeadlineExceeded, status: 503, after: time.Second},
		"an error without code": {err: errors.New("odd"), status: 503, after: time.Second},
		"the control plane":     {configure: full, status: 503, after: time.Second},
		"the tenant's rate":     {configure: spent, status: 429, after: time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t, func(cfg *Config) {
				cfg.Tracker = &refusingTracker{cfg.Tracker.(*fakeTracker), c.err}
				if c.configure != nil {
					c.configure(cfg)
				}
			})
			worker, _, err := mintWorker(e.keys, testAttempt().Scope, &tracker.Registered{WorkerID: fakeWorkerID, MachineID: "m1", Queue: "q"},
				e.now())
			if err != nil {
				t.Fatal(err)
			}
			task := e.task(func(a *tracker.Attempt) { a.TaskID = "t1" })
			p := &prompt{env: e, worker: &v1.RegisterWorkerResponse{WorkerID: fakeWorkerID, WorkerToken: worker},
				task: &v1.TaskEnvelope{TaskToken: task}}
			if c.configure != nil {
				e.s.control.places.Take(shares.Holder{Tenant: "other"}, 1)
				for _, l := range []*tenantLimit{e.s.tenantBeats, e.s.tenantCalls} {
					l.owe("acme", 1, e.now())
				}
			}
			for range 2 { // the event loop knows the tokens by then
				for _, r := range routes {
					asksNobody := slices.Contains(storeless, r.op) || r.op == opCreateToken && c.configure == nil
					if asksNobody || name == "the control plane" && !r.yields() {
						continue
					}
					p.refusesAll(t, r, c.status, c.after)
				}
				e.onLoop()
			}
		})
	}
}
