package api

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/api/httpapi"
	"github.com/lubdub-io/lubdub/internal/shares"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
	"github.com/lubdub-io/lubdub/tracker/beats"
	"github.com/lubdub-io/lubdub/tracker/brake"
	"github.com/lubdub-io/lubdub/tracker/events"
	"github.com/lubdub-io/lubdub/tracker/holdings"
	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/queues"
	"github.com/lubdub-io/lubdub/tracker/revocations"
	"github.com/lubdub-io/lubdub/tracker/stats"
	"github.com/lubdub-io/lubdub/tracker/sweep"
	"github.com/lubdub-io/lubdub/tracker/tasks"
	"github.com/lubdub-io/lubdub/tracker/workers"
)

// refusingTracker refuses every call.
type refusingTracker struct {
	*fakeTracker
	err error
}

// Views of it whose methods have the names of others'.
type (
	refusingWorkers struct {
		fakeWorkers
		err error
	}
	refusingQueues struct {
		fakeQueues
		err error
	}
	refusingStats struct {
		fakeStats
		err error
	}
	refusingEvents struct {
		fakeEvents
		err error
	}
	refusingSchedules struct {
		fakeSchedules
		err error
	}
	refusingWebhooks struct {
		fakeWebhooks
		err error
	}
)

func (r *refusingTracker) services() Services {
	s := r.fakeTracker.services()
	w := refusingWorkers{fakeWorkers{r.fakeTracker}, r.err}
	s.Beats, s.Tasks, s.Holdings, s.Revocations, s.Sweeper, s.Brake = r, r, r, r, r, r
	s.Workers, s.Machines = w, w
	s.Queues, s.Stats = refusingQueues{fakeQueues{r.fakeTracker}, r.err}, refusingStats{fakeStats{r.fakeTracker}, r.err}
	s.Events = refusingEvents{fakeEvents{r.fakeTracker}, r.err}
	s.Schedules, s.Webhooks = refusingSchedules{fakeSchedules{r.fakeTracker}, r.err}, refusingWebhooks{fakeWebhooks{r.fakeTracker}, r.err}
	return s
}

func (r *refusingTracker) Beat(b *beats.Beat) { b.Err = r.err }

func (r *refusingTracker) Submit(beats []*beats.Beat, done func([]*beats.Beat)) {
	for _, b := range beats {
		r.Beat(b)
	}
	done(beats)
}

func (r *refusingTracker) Revoke(context.Context, revocations.Revocation) error { return r.err }

func (r refusingStats) Get(context.Context, model.Scope) (*stats.Stats, error) {
	return nil, r.err
}

func (r refusingStats) Verdicts(context.Context, stats.VerdictQuery) (*stats.Verdicts, error) {
	return nil, r.err
}

func (r refusingStats) System(context.Context) (*stats.System, error) { return nil, r.err }

func (r refusingStats) Scopes(context.Context, stats.ScopeFilter) (*stats.ScopePage, error) {
	return nil, r.err
}

func (r *refusingTracker) BeatMany(batch []*beats.Beat) {
	for _, b := range batch {
		b.Err = r.err
	}
}

func (r *refusingTracker) Start(context.Context, *model.Attempt, model.Report) (model.Acknowledged, error) {
	return model.Acknowledged{}, r.err
}

func (r *refusingTracker) CompleteMany(_ context.Context, all []*beats.Completing) {
	for _, c := range all {
		c.Err = r.err
	}
}

func (r *refusingTracker) Create(context.Context, model.NewTask) (*model.Created, error) {
	return nil, r.err
}

func (r *refusingTracker) CreateBatch(_ context.Context, news []model.NewTask) []tasks.CreateResult {
	return slices.Repeat([]tasks.CreateResult{{Err: r.err}}, len(news))
}

func (r *refusingTracker) NextAttempt(context.Context, model.Scope, string, int) (*model.Created, error) {
	return nil, r.err
}

func (r *refusingTracker) Cancel(context.Context, model.Scope, string, model.CancelRequest) (*model.Task, error) {
	return nil, r.err
}

func (r *refusingTracker) GetWhenEnded(context.Context, model.Scope, string, time.Duration) (*model.Task, error) {
	return nil, r.err
}

func (r *refusingTracker) Wait(context.Context, tasks.WaitRequest) (*tasks.Ended, error) {
	return nil, r.err
}

func (r *refusingTracker) List(context.Context, model.TaskFilter) (*model.TaskPage, error) {
	return nil, r.err
}

func (r *refusingTracker) CancelMany(
	context.Context, model.TaskFilter, model.CancelRequest, bool,
) (*tasks.Acted, error) {
	return nil, r.err
}

func (r *refusingTracker) RetryMany(context.Context, model.TaskFilter, bool) (*tasks.Acted, error) {
	return nil, r.err
}

func (r *refusingTracker) Run(context.Context, model.Scope, string) (*model.Run, error) {
	return nil, r.err
}

func (r *refusingTracker) CancelRun(context.Context, model.Scope, string, model.CancelRequest) (*model.Run, error) {
	return nil, r.err
}

func (r refusingWorkers) Register(context.Context, model.NewWorker) (*workers.Registered, error) {
	return nil, r.err
}

func (r refusingWorkers) Adopt(context.Context, model.Scope, string, []string) error {
	return r.err
}

func (r refusingWorkers) Beat(context.Context, model.Scope, string, workers.WorkerBeat) (*holdings.WorkerBeatResponse, error) {
	return nil, r.err
}

func (r refusingWorkers) Get(context.Context, model.Scope, string) (*model.Worker, error) {
	return nil, r.err
}

func (r refusingWorkers) List(context.Context, workers.WorkerFilter) (*workers.WorkerPage, error) {
	return nil, r.err
}

func (r refusingWorkers) Drain(context.Context, model.Scope, string, workers.Drain) (*model.Worker, error) {
	return nil, r.err
}

func (r refusingWorkers) DrainMany(context.Context, workers.WorkerFilter, workers.Drain, bool) (*workers.Drained, error) {
	return nil, r.err
}

func (r refusingWorkers) Resume(context.Context, model.Scope, string, string) (*model.Worker, error) {
	return nil, r.err
}

func (r refusingWorkers) Retire(context.Context, model.Scope, string, model.WorkerReason, string) (*model.Worker, error) {
	return nil, r.err
}

func (r refusingWorkers) Cordon(context.Context, model.Scope, string, string) (*model.Worker, error) {
	return nil, r.err
}

func (r refusingWorkers) Uncordon(context.Context, model.Scope, string, string) (*model.Worker, error) {
	return nil, r.err
}

func (r refusingWorkers) ActOnMany(context.Context, workers.Act, workers.WorkerFilter, string, bool) (*workers.Acted, error) {
	return nil, r.err
}

func (r refusingWorkers) Select(context.Context, model.Selector) (*model.Selection, error) {
	return nil, r.err
}

func (r refusingWorkers) Machine(context.Context, model.Scope, string) (*workers.Machine, error) {
	return nil, r.err
}

func (r refusingWorkers) Machines(context.Context, workers.MachineFilter) (*workers.MachinePage, error) {
	return nil, r.err
}

func (r refusingWorkers) DrainMachine(context.Context, model.Scope, string, workers.Drain) (*workers.Drained, error) {
	return nil, r.err
}

func (r refusingWorkers) OfflineMachine(context.Context, model.Scope, string, string) (*workers.Acted, error) {
	return nil, r.err
}

func (r refusingWorkers) ResumeMachine(context.Context, model.Scope, string, string) (*workers.Resumed, error) {
	return nil, r.err
}

func (r *refusingTracker) Sweep(context.Context) (sweep.SweepResult, error) {
	return sweep.SweepResult{}, r.err
}

func (r *refusingTracker) Release(context.Context, model.Scope, time.Duration) (*brake.Released, error) {
	return nil, r.err
}

func (r *refusingTracker) Owned(context.Context, model.Scope, string, []holdings.OwnedAttempt) ([]*model.Attempt, error) {
	return nil, r.err
}

func (r refusingQueues) Claim(context.Context, queues.ClaimRequest) ([]*model.Envelope, error) {
	return nil, r.err
}

func (r refusingEvents) List(context.Context, events.Query) (*events.Page, error) {
	return nil, r.err
}

func (r refusingEvents) Follow(context.Context, events.Filter, string, string) (*events.Listener, error) {
	return nil, r.err
}

func (r refusingQueues) List(context.Context, model.Scope) ([]*queues.Queue, error) {
	return nil, r.err
}

func (r refusingQueues) Get(context.Context, model.Scope, string) (*queues.Queue, error) {
	return nil, r.err
}

func (r refusingQueues) Pause(context.Context, model.Scope, string, string) (bool, error) {
	return false, r.err
}

func (r refusingQueues) Resume(context.Context, model.Scope, string) error { return r.err }

// refusesAll calls a route with each kind of token that may use it, and wants a refusal with Retry-After, for each item if each
// has its own answer.
func (p *prompt) refusesAll(t *testing.T, r *httpapi.Route, status int, after time.Duration) {
	t.Helper()
	path, token, body := p.request(r)
	p.refuses(t, r, p.do(r.Method, path, token, body), status, after)
	if r.Access == httpapi.ForTask || r.Access == httpapi.ForBeat || r.Access == httpapi.ForItems { // a worker's token is looked up first
		p.refuses(t, r, p.do(r.Method, path, p.worker.WorkerToken, body), status, after)
	}
}

func (p *prompt) refuses(t *testing.T, r *httpapi.Route, a *answer, status int, after time.Duration) {
	t.Helper()
	if a.status == 200 && (r.Op == opHeartbeats || r.Op == opCreateBatch || r.Op == opExchange) {
		var answer struct {
			Results, Completed []struct {
				Status       int
				RetryAfterMs int64
			}
		}
		if err := json.Unmarshal([]byte(a.body), &answer); err != nil || len(answer.Results)+len(answer.Completed) == 0 {
			t.Fatalf("%s: %v: %s", r, err, a.body)
		}
		for _, item := range append(answer.Results, answer.Completed...) {
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

// Whatever a route needs from the store, and whichever limit it meets: 503 and 429 have Retry-After.
func TestEveryTemporaryRefusalHasRetryAfter(t *testing.T) {
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
		"unavailable": {err: &model.Error{Code: model.Unavailable}, status: 503, after: time.Second},
		"unavailable for long": {err: &model.Error{Code: model.Unavailable, RetryAfter: 2500 * time.Millisecond}, status: 503,
			after: 2500 * time.Millisecond},
		"overloaded":            {err: &model.Error{Code: model.Overloaded}, status: 503, after: time.Second},
		"too many":              {err: &model.Error{Code: model.Overloaded, TooMany: true}, status: 429, after: time.Second},
		"too late":              {err: context.DeadlineExceeded, status: 503, after: time.Second},
		"an error without code": {err: errors.New("odd"), status: 503, after: time.Second},
		"the control plane":     {configure: full, status: 503, after: time.Second},
		"the tenant's rate":     {configure: spent, status: 429, after: time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t, func(cfg *Config) {
				cfg.Services = (&refusingTracker{cfg.Services.Beats.(*fakeTracker), c.err}).services()
				if c.configure != nil {
					c.configure(cfg)
				}
			})
			worker, _, err := httpapi.MintWorker(e.keys, testAttempt().Scope,
				&workers.Registered{WorkerID: fakeWorkerID, MachineID: "m1", Queue: "q"}, e.now())
			if err != nil {
				t.Fatal(err)
			}
			task := e.task(func(a *model.Attempt) { a.TaskID = "t1" })
			p := &prompt{env: e, worker: &v1.RegisterWorkerResponse{WorkerID: fakeWorkerID, WorkerToken: worker},
				task: &v1.TaskEnvelope{TaskToken: task}}
			if c.configure != nil {
				e.s.api.Control.Places.Take(shares.Holder{Tenant: "other"}, 1)
				e.s.api.ChargeBeats("acme", 1, e.now())
				e.s.api.ChargeCalls("acme", 1, e.now())
			}
			for range 2 { // the event loop knows the tokens by then
				for _, r := range routes {
					needsNothing := slices.Contains(storeless, r.Op) || r.Op == opCreateToken && c.configure == nil
					if needsNothing || name == "the control plane" && !r.Yields() {
						continue
					}
					p.refusesAll(t, r, c.status, c.after)
				}
				e.onLoop()
			}
		})
	}
}
