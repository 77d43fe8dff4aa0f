package fleet

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	v1 "github.com/lubdub-io/lubdub/api/v1"
)

// The crew are registered workers, who claim what waits in queues. Some jobs wait for all of them; and now and then one
// that holds many is killed: it is never heard again, Lubdub must notice it in time, and every one of its jobs must be
// done by others, none lost and none by two.

const (
	crewSize    = 4
	killEvery   = 20 * time.Second // in a show of more than twice that
	jobWork     = 150 * time.Millisecond
	jobBackoff  = 100 // ms
	jobStart    = 10 * time.Second
	jobPatience = 5 // of the fleet's: a job may have to wait until it is found out that its worker was late, or never heard of it
	nameClaimed = "claimed"
	nameKilled  = "worker killed"
	nameWorker  = "worker"
)

type crew struct {
	fleet   *Fleet
	working sync.WaitGroup
	jobs    atomic.Int64

	mu      sync.Mutex
	random  *rand.Rand
	hands   map[string]*hand     // by id; those that went long ago are left out
	started map[started]struct{} // of jobs that have not been judged yet
}

// started is an attempt whose start was acknowledged.
type started struct {
	task    string
	attempt int
}

// crew plays registered workers for a while, or until ctx ends when create is 0.
func (f *Fleet) crew(ctx context.Context, create time.Duration) {
	if f.opts.EnrollToken == "" {
		return
	}
	c := &crew{fleet: f, random: rand.New(rand.NewPCG(f.opts.Seed, 1)), hands: map[string]*hand{}, started: map[started]struct{}{}}
	on, off := context.WithCancel(ctx)
	defer off()
	for i := range crewSize {
		c.employ(ctx, on, v1.RegisterWorkerRequest{
			Queue: c.queue("jobs"), Types: []string{"job"}, Name: fmt.Sprintf("hand-%d", i), MachineID: fmt.Sprintf("host-%d", i%2),
		})
	}
	var jobs sync.WaitGroup
	c.feed(ctx, create, &jobs)
	jobs.Wait()
	off()
	c.working.Wait()
}

func (c *crew) luck() *rand.Rand {
	c.mu.Lock()
	defer c.mu.Unlock()
	return rand.New(rand.NewPCG(c.random.Uint64(), c.random.Uint64()))
}

func (c *crew) queue(name string) string { return name + "-" + c.fleet.opts.RunID }

// employ keeps a place filled until on ends: a worker that was refused is told of, and another registers in its place.
func (c *crew) employ(ctx, on context.Context, r v1.RegisterWorkerRequest) {
	beating, claiming := c.luck(), c.luck()
	c.working.Go(func() {
		for on.Err() == nil {
			h, err := c.enlist(on, r)
			if err == nil {
				err = h.work(on, beating, claiming, c.job)
			}
			if on.Err() != nil && h != nil {
				c.refused(ctx, h, h.leave(ctx)) // who has deregistered may not claim, and it claims no more
			}
			if on.Err() == nil {
				c.refused(ctx, h, err)
				pause(on, lastRetry)
			}
		}
	})
}

// enlist registers a worker and remembers it, since what becomes of its tasks is judged by what it did.
func (c *crew) enlist(ctx context.Context, r v1.RegisterWorkerRequest) (*hand, error) {
	h, err := c.fleet.enlist(ctx, r)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for id, h := range c.hands {
		h.mu.Lock()
		if !h.retired.IsZero() && time.Since(h.retired) > c.fleet.opts.PlayTime {
			delete(c.hands, id)
		}
		h.mu.Unlock()
	}
	c.hands[h.id] = h
	return h, nil
}

// excused tells whether an attempt may have been taken from a worker that was not killed. The answer to a claim may be
// lost, and what it took with it: that waits for its start timeout.
func (c *crew) excused(task string, h v1.HistoryEntry) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if text(h.Reason) == "START_TIMEOUT" {
		_, heard := c.started[started{task, h.Attempt}]
		return !heard
	}
	holder := c.hands[text(h.WorkerID)]
	return holder != nil && holder.excused()
}

// start says that an attempt of a job runs.
func (c *crew) start(ctx context.Context, w *worker) error {
	err := w.start(ctx)
	if err == nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.started[started{w.envelope.TaskID, w.envelope.Attempt}] = struct{}{}
	}
	return err
}

// refused judges why a worker that meant to live was refused, or was not answered: only its own lateness excuses that.
func (c *crew) refused(ctx context.Context, h *hand, err error) {
	if err == nil || ctx.Err() != nil {
		return
	}
	if h != nil {
		h.retire(again(err))
	}
	switch {
	case h == nil:
		c.fleet.amiss("registering a worker", err)
	case h.late():
		c.fleet.tell(fmt.Sprintf("worker %s may itself have been silent for %v of %v, and registers anew: %v", h.id, h.silence().Round(time.Millisecond), h.timeout, err))
	case again(err):
		c.fleet.tell(fmt.Sprintf("worker %s: %v", h.id, err))
	default:
		c.fleet.blame(nameWorker, h.id, "it was never silent for longer than %v of %v, and was refused: %v", h.silence().Round(time.Millisecond), h.timeout, err)
	}
}

// job is what a worker does with a task.
func (c *crew) job(ctx context.Context, e v1.TaskEnvelope) {
	w := &worker{fleet: c.fleet, envelope: e, token: e.TaskToken, dead: true}
	if c.start(ctx, w) == nil && pause(ctx, jobWork) {
		_, _ = w.complete(ctx, v1.CompletedRequest{Outcome: v1.OutcomeSucceeded, Output: json.RawMessage(`{"rows":42}`)})
	}
	// What a refusal leaves behind the judge will see.
}

// feed creates jobs at half the fleet's rate, and has a worker killed from time to time: twice in a short show.
func (c *crew) feed(ctx context.Context, create time.Duration, jobs *sync.WaitGroup) {
	var over <-chan time.Time
	first, every := killEvery/4, killEvery
	if create > 0 {
		timer := time.NewTimer(create)
		defer timer.Stop()
		over = timer.C
		first, every = min(first, create/4), min(every, create/2)
	}
	ticker := time.NewTicker(time.Duration(2 * float64(time.Second) / c.fleet.opts.Rate))
	defer ticker.Stop()
	kill := time.NewTimer(first)
	defer kill.Stop()
	for kills := 1; ; {
		select {
		case <-ctx.Done():
			return
		case <-over:
			return
		case <-kill.C:
			number := kills
			jobs.Go(func() { c.kill(ctx, number) })
			kills++
			kill.Reset(every)
		case <-ticker.C:
			jobs.Go(func() {
				if ids := c.create(ctx, c.queue("jobs"), 1); len(ids) == 1 {
					want := Expect{State: v1.Succeeded, Attempts: []ExpectAttempt{{Outcome: "SUCCEEDED"}}}
					c.judge(ctx, ids[0], nameClaimed, want, time.Now())
				}
			})
		}
	}
}

// create makes jobs that wait in a queue, again and again while some of them are answered so. It gives no ids when they
// could not be made; that is told.
func (c *crew) create(ctx context.Context, queue string, n int) []string {
	f := c.fleet
	backoff, limit := int64(jobBackoff), jobStart.Milliseconds()
	var r v1.CreateTasksRequest
	for range n {
		number := c.jobs.Add(1)
		r.Tasks = append(r.Tasks, v1.CreateTasksItem{
			CreateTaskRequest: v1.CreateTaskRequest{
				RunID: f.opts.RunID, Queue: queue, Type: "job", TenantID: f.opts.Tenant, WorkspaceID: f.opts.Workspace,
				Retry: &v1.RetryPolicy{InitialBackoffMs: &backoff}, StartTimeoutMs: &limit,
			},
			IdempotencyKey: fmt.Sprintf("%s-job-%d", f.opts.RunID, number),
		})
	}
	limited, cancel := context.WithTimeout(ctx, f.opts.PlayTime)
	defer cancel()
	for {
		ids, err := c.createOnce(limited, &r)
		if err == nil {
			f.tally.created.Add(int64(len(ids)))
			f.tally.playing.Add(int64(len(ids)))
			return ids
		}
		if !again(err) || !pause(limited, lastRetry) {
			if ctx.Err() == nil {
				f.amiss("creating jobs", err)
			}
			return nil
		}
		f.tally.retries.Add(1)
	}
}

func (c *crew) createOnce(ctx context.Context, r *v1.CreateTasksRequest) (ids []string, err error) {
	var a v1.CreateTasksResponse
	if err := c.fleet.control(ctx, http.MethodPost, "/v1/tasks:batch", r, &a); err != nil {
		return nil, err
	}
	for _, result := range a.Results {
		var t struct {
			v1.Error
			Status int
			TaskID string `json:"taskId"`
		}
		if err := json.Unmarshal(result, &t); err != nil {
			return nil, fmt.Errorf("%w: %v", errAnswer, err)
		}
		if t.Status != http.StatusCreated {
			return nil, &refusal{Status: t.Status, Body: t.Error}
		}
		ids = append(ids, t.TaskID)
	}
	return ids, nil
}

// judge waits for a job's end and has it judged.
func (c *crew) judge(ctx context.Context, id, behaviour string, want Expect, due time.Time) Verdict {
	defer c.fleet.tally.playing.Add(-1)
	p := &play{fleet: c.fleet, task: id, expect: want, verdictDue: due, waits: jobPatience * c.fleet.opts.Patience}
	p.excused = func(h v1.HistoryEntry) bool { return c.excused(id, h) }
	unclaimed := c.fleet.tally.unclaimed.Load()
	seen, err := p.settle(ctx)
	if err != nil {
		return Verdict{}
	}
	if seen.Task != nil && seen.Task.State == v1.Queued && c.fleet.tally.unclaimed.Load() > unclaimed {
		seen.Task, seen.Unread = nil, "nobody has claimed it, and claims had no answer meanwhile"
	}
	v := c.fleet.judge(p, behaviour, seen)
	if seen.Task != nil {
		c.forget(seen.Task)
	}
	return v
}

// forget drops what was kept of a job, and tells of attempts that no worker heard of.
func (c *crew) forget(t *v1.Task) {
	for _, h := range t.History {
		if text(h.Reason) == "START_TIMEOUT" && c.excused(t.TaskID, h) {
			c.fleet.tell(fmt.Sprintf("job %s: the answer that gave attempt %d to %s was lost, or its start was", t.TaskID, h.Attempt, text(h.WorkerID)))
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for attempt := 1; attempt <= t.Attempt; attempt++ {
		delete(c.started, started{t.TaskID, attempt})
	}
}
