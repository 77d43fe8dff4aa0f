package fleet

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lubdub-io/lubdub/sdk/go/client"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

// The pool contains registered workers, which claim waiting tasks from queues. Some jobs wait for all of them; and now and then a worker
// that holds many is killed: it sends nothing more, Lubdub must notice it in time, and other workers must do every one of its jobs,
// none lost and none twice.

const (
	poolSize    = 4
	killEvery   = 20 * time.Second // in a show of more than twice that
	jobWork     = 150 * time.Millisecond
	jobBackoff  = 100 // ms
	jobStart    = 10 * time.Second
	jobPatience = 5 // of the fleet's: a job may have to wait until its worker is found to be late, or never to have got it
	nameClaimed = "claimed"
	nameKilled  = "worker killed"
	nameWorker  = "worker"
)

type pool struct {
	fleet   *Fleet
	working sync.WaitGroup
	jobs    atomic.Int64

	mu      sync.Mutex
	random  *rand.Rand
	workers map[string]*worker   // by id; those that went long ago are removed
	started map[started]struct{} // of jobs that have not been judged yet
}

// started is an attempt whose start was acknowledged.
type started struct {
	task    string
	attempt int
}

// pool plays registered workers for the given time, or until ctx ends if create is 0.
func (f *Fleet) pool(ctx context.Context, create time.Duration) {
	if f.opts.EnrollToken == "" {
		return
	}
	p := &pool{fleet: f, random: rand.New(rand.NewPCG(f.opts.Seed, 1)), workers: map[string]*worker{}, started: map[started]struct{}{}}
	on, off := context.WithCancel(ctx)
	defer off()
	for i := range poolSize {
		p.employ(ctx, on, v1.RegisterWorkerRequest{
			Queue: p.queue("jobs"), Types: []string{"job"}, Name: fmt.Sprintf("worker-%d", i), MachineID: fmt.Sprintf("host-%d", i%2),
		})
	}
	var jobs sync.WaitGroup
	p.feed(ctx, create, &jobs)
	jobs.Wait()
	off()
	p.working.Wait()
}

func (p *pool) luck() *rand.Rand {
	p.mu.Lock()
	defer p.mu.Unlock()
	return rand.New(rand.NewPCG(p.random.Uint64(), p.random.Uint64()))
}

func (p *pool) queue(name string) string { return name + "-" + p.fleet.opts.RunID }

// employ keeps a place filled until `on` ends: a refused worker is reported, and another registers in its place.
func (p *pool) employ(ctx, on context.Context, r v1.RegisterWorkerRequest) {
	beating, claiming := p.luck(), p.luck()
	p.working.Go(func() {
		for on.Err() == nil {
			w, err := p.enlist(on, r)
			if err == nil {
				err = w.work(on, beating, claiming, p.job)
			}
			if on.Err() != nil && w != nil {
				p.refused(ctx, w, w.leave(ctx)) // a deregistered worker may not claim, and it claims no more
			}
			if on.Err() == nil {
				p.refused(ctx, w, err)
				pause(on, lastRetry)
			}
		}
	})
}

// enlist registers a worker and remembers it, since the results of its tasks are judged by what it did.
func (p *pool) enlist(ctx context.Context, r v1.RegisterWorkerRequest) (*worker, error) {
	w, err := p.fleet.enlist(ctx, r)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for id, w := range p.workers {
		w.mu.Lock()
		if !w.retired.IsZero() && time.Since(w.retired) > p.fleet.opts.PlayTime {
			delete(p.workers, id)
		}
		w.mu.Unlock()
	}
	p.workers[w.id] = w
	return w, nil
}

// excused reports whether an attempt may have been taken from a worker that was not killed. The answer to a claim may be lost; the tasks
// in it wait for their start timeout.
func (p *pool) excused(task string, h v1.HistoryEntry) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if text(h.Reason) == "START_TIMEOUT" {
		_, reported := p.started[started{task, h.Attempt}]
		return !reported
	}
	holder := p.workers[text(h.WorkerID)]
	return holder != nil && holder.excused()
}

// start reports that an attempt of a job runs.
func (p *pool) start(ctx context.Context, r *runner) error {
	err := r.start(ctx)
	if err == nil {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.started[started{r.envelope.TaskID, r.envelope.Attempt}] = struct{}{}
	}
	return err
}

// refused judges why a worker that was meant to live was refused, or got no answer: only its own lateness excuses that.
func (p *pool) refused(ctx context.Context, w *worker, err error) {
	if err == nil || ctx.Err() != nil {
		return
	}
	if w != nil {
		w.retire(again(err))
	}
	switch {
	case w == nil:
		p.fleet.callFailed("registering a worker", err)
	case w.late():
		p.fleet.reportMishap(fmt.Sprintf("worker %s may itself have been silent for %v of %v, and registers again: %v", w.id,
			w.silence().Round(time.Millisecond), w.timeout, err))
	case again(err):
		p.fleet.reportMishap(fmt.Sprintf("worker %s: %v", w.id, err))
	default:
		p.fleet.blame(nameWorker, w.id, "it was never silent for longer than %v of %v, and was refused: %v", w.silence().Round(time.Millisecond),
			w.timeout, err)
	}
}

// job is what a worker does with a task.
func (p *pool) job(ctx context.Context, e v1.TaskEnvelope) {
	r := &runner{fleet: p.fleet, envelope: e, token: e.TaskToken, dead: true}
	if p.start(ctx, r) == nil && pause(ctx, jobWork) {
		_, _ = r.complete(ctx, v1.CompletedRequest{Outcome: v1.OutcomeSucceeded, Output: json.RawMessage(`{"rows":42}`)})
	}
	// The judge will see the consequences of a refusal.
}

// feed creates jobs at half the fleet's rate, and has a worker killed from time to time: twice in a short show.
func (p *pool) feed(ctx context.Context, create time.Duration, jobs *sync.WaitGroup) {
	var over <-chan time.Time
	first, every := killEvery/4, killEvery
	if create > 0 {
		timer := time.NewTimer(create)
		defer timer.Stop()
		over = timer.C
		first, every = min(first, create/4), min(every, create/2)
	}
	ticker := time.NewTicker(time.Duration(2 * float64(time.Second) / p.fleet.opts.Rate))
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
			jobs.Go(func() { p.kill(ctx, number) })
			kills++
			kill.Reset(every)
		case <-ticker.C:
			jobs.Go(func() {
				if ids := p.create(ctx, p.queue("jobs"), 1); len(ids) == 1 {
					want := Expect{State: v1.Succeeded, Attempts: []ExpectAttempt{{Outcome: "SUCCEEDED"}}}
					p.evaluate(ctx, ids[0], nameClaimed, want, time.Now())
				}
			})
		}
	}
}

// create creates jobs that wait in a queue, and retries those that may succeed later. It returns no ids if they could not be created, which
// it reports.
func (p *pool) create(ctx context.Context, queue string, n int) []string {
	f := p.fleet
	backoff, limit := int64(jobBackoff), jobStart.Milliseconds()
	var tasks []v1.CreateTasksItem
	for range n {
		number := p.jobs.Add(1)
		tasks = append(tasks, v1.CreateTasksItem{
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
		ids, err := p.createOnce(limited, tasks)
		if err == nil {
			f.tally.created.Add(int64(len(ids)))
			f.tally.playing.Add(int64(len(ids)))
			return ids
		}
		if !again(err) || !pause(limited, lastRetry) {
			if ctx.Err() == nil {
				f.callFailed("creating tasks", err)
			}
			return nil
		}
		f.tally.retries.Add(1)
	}
}

func (p *pool) createOnce(ctx context.Context, tasks []v1.CreateTasksItem) (ids []string, err error) {
	var made []client.Created
	if err := p.fleet.control(ctx, func() (err error) {
		made, err = p.fleet.api.CreateTasks(ctx, tasks)
		return err
	}); err != nil {
		return nil, err
	}
	for i := range made {
		if made[i].Err != nil {
			return nil, made[i].Err
		}
		ids = append(ids, made[i].TaskID())
	}
	return ids, nil
}

// evaluate waits for a job's end and has it judged.
func (p *pool) evaluate(ctx context.Context, id, behaviour string, want Expect, due time.Time) Verdict {
	defer p.fleet.tally.playing.Add(-1)
	job := &play{fleet: p.fleet, task: id, expect: want, verdictDue: due, waits: jobPatience * p.fleet.opts.Patience}
	job.excused = func(h v1.HistoryEntry) bool { return p.excused(id, h) }
	unclaimed := p.fleet.tally.unclaimed.Load()
	seen, err := job.settle(ctx)
	if err != nil {
		return Verdict{}
	}
	if seen.Task != nil && seen.Task.State == v1.Queued && p.fleet.tally.unclaimed.Load() > unclaimed {
		seen.Task, seen.Unread = nil, "no worker has claimed it, and claims got no response meanwhile"
	}
	v := p.fleet.evaluate(job, behaviour, seen)
	if seen.Task != nil {
		p.forget(seen.Task)
	}
	return v
}

// forget drops the records of a job, and reports attempts that no worker knew of.
func (p *pool) forget(t *v1.Task) {
	for _, h := range t.History {
		if text(h.Reason) == "START_TIMEOUT" && p.excused(t.TaskID, h) {
			p.fleet.reportMishap(fmt.Sprintf("task %s: the answer that gave attempt %d to %s was lost, or its start was", t.TaskID, h.Attempt,
				text(h.WorkerID)))
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for attempt := 1; attempt <= t.Attempt; attempt++ {
		delete(p.started, started{t.TaskID, attempt})
	}
}
