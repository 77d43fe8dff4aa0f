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
	rescuers    = 2
	killEvery   = 20 * time.Second // in a show without an end
	jobWork     = 150 * time.Millisecond
	jobBackoff  = 100 // ms
	nameClaimed = "claimed"
	nameKilled  = "worker killed"
)

// Kill is what became of a worker that was killed.
type Kill struct {
	WorkerID  string
	Held      int           // tasks when it was killed
	Recovered int           // of these, those that others have finished
	Lag       time.Duration // of the verdict, after it was due
	Took      time.Duration // from the verdict's due time until the last of its tasks was finished by others
}

func (k Kill) String() string {
	return fmt.Sprintf("%s with %d tasks: noticed %s late, %d of them recovered and finished by others %s after that was due",
		k.WorkerID, k.Held, milliseconds(k.Lag), k.Recovered, milliseconds(k.Took))
}

// crew plays registered workers for a while, or until ctx ends when create is 0.
func (f *Fleet) crew(ctx context.Context, create time.Duration) error {
	if f.opts.EnrollToken == "" {
		return nil
	}
	on, off := context.WithCancelCause(ctx)
	defer off(nil)
	c := &crew{fleet: f, fail: off, random: rand.New(rand.NewPCG(f.opts.Seed, 1))}
	for i := range crewSize {
		if err := c.hire(on, v1.RegisterWorkerRequest{
			Queue: c.queue("jobs"), Types: []string{"job"}, Name: fmt.Sprintf("hand-%d", i), MachineID: fmt.Sprintf("host-%d", i%2),
		}); err != nil {
			return c.ended(ctx, err)
		}
	}
	var jobs sync.WaitGroup
	c.feed(on, create, &jobs)
	jobs.Wait()
	err := context.Cause(on)
	off(nil) // who has deregistered may not claim
	c.working.Wait()
	for _, h := range c.hands {
		if left := h.leave(ctx); err == nil && left != nil {
			err = left
		}
	}
	return c.ended(ctx, err)
}

type crew struct {
	fleet   *Fleet
	fail    context.CancelCauseFunc
	hands   []*hand
	working sync.WaitGroup
	jobs    atomic.Int64

	mu     sync.Mutex
	random *rand.Rand
}

func (c *crew) luck() *rand.Rand {
	c.mu.Lock()
	defer c.mu.Unlock()
	return rand.New(rand.NewPCG(c.random.Uint64(), c.random.Uint64()))
}

// ended tells why a crew could not play; one that was told to stop could.
func (c *crew) ended(ctx context.Context, err error) error {
	if err == nil || ctx.Err() != nil {
		return nil
	}
	return &cannotPlay{err}
}

func (c *crew) queue(name string) string { return name + "-" + c.fleet.opts.RunID }

// hire registers a worker and lets it work until ctx ends.
func (c *crew) hire(ctx context.Context, r v1.RegisterWorkerRequest) error {
	h, err := c.fleet.enlist(ctx, r)
	if err != nil {
		return err
	}
	c.hands = append(c.hands, h)
	c.employ(ctx, h)
	return nil
}

func (c *crew) employ(ctx context.Context, h *hand) {
	c.working.Go(func() { c.check(ctx, h, h.keepBeating(ctx, c.luck())) })
	c.working.Go(func() { c.check(ctx, h, h.serve(ctx, c.luck(), c.fleet.job)) })
}

// check judges an error of a worker that meant to live: it was refused, and only its own lateness excuses that.
func (c *crew) check(ctx context.Context, h *hand, err error) {
	if err == nil || ctx.Err() != nil {
		return
	}
	v := Verdict{Behaviour: "worker", TaskID: h.id}
	if h.silence() < h.timeout {
		v.wrongf("%v", err)
		c.fleet.tally.complain(v)
		c.fleet.publish(v)
	}
	c.fail(err)
}

// job is what a worker does with a task.
func (f *Fleet) job(ctx context.Context, e v1.TaskEnvelope) {
	w := &worker{fleet: f, envelope: e, token: e.TaskToken, id: "", dead: true}
	if w.start(ctx) == nil && pause(ctx, jobWork) {
		_, _ = w.complete(ctx, v1.CompletedRequest{Outcome: v1.OutcomeSucceeded, Output: json.RawMessage(`{"rows":42}`)})
	}
	// What a refusal leaves behind the judge will see.
}

// feed creates jobs at half the fleet's rate, and kills a worker from time to time.
func (c *crew) feed(ctx context.Context, create time.Duration, jobs *sync.WaitGroup) {
	var over <-chan time.Time
	first := killEvery / 4
	if create > 0 {
		timer := time.NewTimer(create)
		defer timer.Stop()
		over = timer.C
		first = min(first, create/4)
	}
	ticker := time.NewTicker(time.Duration(2 * float64(time.Second) / c.fleet.opts.Rate))
	defer ticker.Stop()
	kill := time.NewTimer(first)
	defer kill.Stop()
	for number := 0; ; {
		select {
		case <-ctx.Done():
			return
		case <-over:
			return
		case <-kill.C:
			number++
			jobs.Go(func() { c.check(ctx, &hand{timeout: 1}, c.kill(ctx, number)) })
			if create == 0 {
				kill.Reset(killEvery)
			}
		case <-ticker.C:
			ids, err := c.create(ctx, c.queue("jobs"), 1)
			if err != nil {
				c.fail(err)
				return
			}
			jobs.Go(func() {
				c.judge(ctx, ids[0], nameClaimed, Expect{State: v1.Succeeded, Attempts: []ExpectAttempt{{Outcome: "SUCCEEDED"}}}, time.Now())
			})
		}
	}
}

// create makes jobs that wait in a queue.
func (c *crew) create(ctx context.Context, queue string, n int) ([]string, error) {
	f := c.fleet
	backoff := int64(jobBackoff)
	var r v1.CreateTasksRequest
	for range n {
		number := c.jobs.Add(1)
		r.Tasks = append(r.Tasks, v1.CreateTasksItem{
			CreateTaskRequest: v1.CreateTaskRequest{
				RunID: f.opts.RunID, Queue: queue, Type: "job", TenantID: f.opts.Tenant, WorkspaceID: f.opts.Workspace,
				Retry: &v1.RetryPolicy{InitialBackoffMs: &backoff},
			},
			IdempotencyKey: fmt.Sprintf("%s-job-%d", f.opts.RunID, number),
		})
	}
	var a v1.CreateTasksResponse
	if err := f.control(ctx, http.MethodPost, "/v1/tasks:batch", &r, &a); err != nil {
		return nil, err
	}
	var ids []string
	for _, result := range a.Results {
		var t struct {
			Status  int
			TaskID  string `json:"taskId"`
			Message string
		}
		if err := json.Unmarshal(result, &t); err != nil || t.Status != http.StatusCreated {
			return nil, fmt.Errorf("creating a job was answered with %d: %s", t.Status, t.Message)
		}
		ids = append(ids, t.TaskID)
	}
	f.tally.created.Add(int64(len(ids)))
	f.tally.playing.Add(int64(len(ids)))
	return ids, nil
}

// judge waits for a job's end and has it judged.
func (c *crew) judge(ctx context.Context, id, behaviour string, want Expect, due time.Time) (v Verdict) {
	defer c.fleet.tally.playing.Add(-1)
	p := &play{fleet: c.fleet, task: id, verdictDue: due}
	seen, err := p.settle(ctx)
	if err != nil {
		if ctx.Err() == nil {
			c.fail(fmt.Errorf("reading a job back: %w", err))
		}
		return v
	}
	v = c.fleet.opts.Bounds.Judge(want, seen)
	v.TaskID, v.Behaviour = id, behaviour
	for _, h := range c.hands {
		if silence := h.silence(); len(v.Wrong) > 0 && silence >= h.timeout {
			v.Unclear = fmt.Sprintf("a worker of the crew may itself have been silent for %v of %v", silence.Round(time.Millisecond), h.timeout)
			v.Wrong = nil
		}
	}
	c.fleet.tally.add(v)
	c.fleet.publish(v)
	return v
}

// kill has a worker claim many jobs, never lets it be heard again, and judges what becomes of them.
func (c *crew) kill(ctx context.Context, number int) error {
	f := c.fleet
	queue := c.queue(fmt.Sprintf("doomed-%d", number))
	register := v1.RegisterWorkerRequest{Queue: queue, Types: []string{"job"}, Name: "doomed", MachineID: fmt.Sprintf("doomed-%d", number)}
	victim, err := f.enlist(ctx, register)
	if err != nil {
		return err
	}
	ids, err := c.create(ctx, queue, f.opts.KillTasks)
	if err != nil {
		return err
	}
	held := 0
	for tries := 0; held < len(ids) && tries < 100; tries++ {
		tasks, err := victim.claim(ctx, len(ids)-held, claimWait, fmt.Sprintf("doomed-%d", tries))
		if err != nil && !again(err) {
			return err
		}
		for _, e := range tasks {
			held++
			if w := (&worker{fleet: f, envelope: e, token: e.TaskToken, dead: true}); held%2 == 0 { // the others it has only got
				_ = w.start(ctx)
			}
		}
	}
	if err := victim.beat(ctx); err != nil {
		return err
	}
	// It is dead from here on. Others take its place, who are there before it is noticed.
	due := victim.heard.Add(victim.timeout)
	noticed := victim.sent.Add(victim.timeout)
	f.tally.killed.Add(1)
	rescue, done := context.WithCancel(ctx)
	defer done()
	var saviours []*hand
	for i := range rescuers {
		register.Name, register.MachineID = fmt.Sprintf("rescuer-%d", i), fmt.Sprintf("rescue-%d", number)
		h, err := f.enlist(ctx, register)
		if err != nil {
			return err
		}
		saviours = append(saviours, h)
		c.employ(rescue, h)
	}
	k := Kill{WorkerID: victim.id, Held: held}
	var judging sync.WaitGroup
	var mu sync.Mutex
	for _, id := range ids {
		judging.Go(func() {
			want := Expect{State: v1.Succeeded, Attempts: []ExpectAttempt{
				{Outcome: "LOST", Reason: "WORKER_LOST", Due: due, Timeout: victim.timeout}, {Outcome: "SUCCEEDED"},
			}}
			v := c.judge(ctx, id, nameKilled, want, noticed.Add(jobBackoff*time.Millisecond+jobWork))
			mu.Lock()
			defer mu.Unlock()
			if v.State == v1.Succeeded && len(v.Wrong) == 0 {
				k.Recovered++
				f.tally.recovered.Add(1)
			}
			for _, e := range v.Ended {
				k.Lag = max(k.Lag, e.Lag)
			}
		})
	}
	judging.Wait()
	k.Took = max(0, time.Since(noticed))
	if ctx.Err() != nil {
		return nil
	}
	if f.opts.Killed != nil {
		f.judged.Lock()
		f.opts.Killed(k)
		f.judged.Unlock()
	}
	done() // who has deregistered may not claim
	for _, h := range saviours {
		if err := h.leave(ctx); err != nil {
			return err
		}
	}
	return c.checkVictim(ctx, victim, held)
}

// checkVictim holds what the registry says of the killed one against what happened.
func (c *crew) checkVictim(ctx context.Context, victim *hand, held int) error {
	var w v1.Worker
	if err := c.fleet.control(ctx, http.MethodGet, "/v1/workers/"+victim.id, nil, &w); err != nil {
		return err
	}
	v := Verdict{Behaviour: nameKilled, TaskID: victim.id}
	if w.Status != v1.Offline || text(w.StatusReason) != "HEARTBEAT_TIMEOUT" || w.HeldCount != 0 {
		v.wrongf("the killed worker is %s %s and holds %d of %d", w.Status, text(w.StatusReason), w.HeldCount, held)
	}
	if err := victim.beat(ctx); refusedWith(err) != http.StatusGone {
		v.wrongf("a beat of the killed worker was not refused with 410: %v", err)
	}
	if len(v.Wrong) > 0 {
		c.fleet.tally.complain(v)
		c.fleet.publish(v)
	}
	return nil
}
