package fleet

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

const (
	rescuers = 2
	victims  = 3 // that are tried before a kill is given up: each of them was itself late
)

// Kill is the result of killing a worker.
type Kill struct {
	WorkerID  string
	Held      int           // tasks when it was killed
	Recovered int           // of these, those that other workers have finished
	Lag       time.Duration // of the verdict, after it was due
	Delay     time.Duration // of that, the time in which this process itself was kept from running
	Took      time.Duration // from the verdict's due time until other workers had finished the last of its tasks
}

func (k Kill) String() string {
	return fmt.Sprintf("%s with %d tasks: noticed %s late (%s held up), %d of them recovered and finished by others %s after that was due",
		k.WorkerID, k.Held, milliseconds(k.Lag), milliseconds(k.Delay), k.Recovered, milliseconds(k.Took))
}

// kill makes a worker claim many jobs, silences it permanently, and judges the results.
func (p *pool) kill(ctx context.Context, number int) {
	f := p.fleet
	register := v1.RegisterWorkerRequest{
		Queue: p.queue(fmt.Sprintf("doomed-%d", number)), Types: []string{"job"}, Name: "doomed", MachineID: fmt.Sprintf("doomed-%d", number),
	}
	ids := p.create(ctx, register.Queue, f.opts.KillTasks)
	if ids == nil {
		return
	}
	victim := p.doom(ctx, register, len(ids))
	want := Expect{State: v1.Succeeded, Attempts: []ExpectAttempt{{Outcome: "SUCCEEDED"}}}
	due := time.Now()
	if victim != nil {
		f.tally.killed.Add(1)
		due = victim.sent.Add(victim.timeout)
		want.Attempts = []ExpectAttempt{{
			Outcome: "LOST", Reason: "WORKER_LOST", WorkerID: victim.id,
			Due: victim.lastAcked.Add(victim.timeout), DueHere: due, Unsure: victim.took, Timeout: victim.timeout,
		}, {Outcome: "SUCCEEDED"}}
	}
	// Other workers replace it before it is missed.
	rescue, done := context.WithCancel(ctx)
	defer done()
	for i := range rescuers {
		register.Name, register.MachineID = fmt.Sprintf("rescuer-%d", i), fmt.Sprintf("rescue-%d", number)
		p.employ(ctx, rescue, register)
	}
	k := p.mourn(ctx, ids, want, due)
	if victim == nil || ctx.Err() != nil {
		return
	}
	k.WorkerID, k.Took = victim.id, max(0, time.Since(due))
	f.tally.recovered.Add(int64(k.Recovered))
	if f.opts.OnKill != nil {
		f.callbackMu.Lock()
		f.opts.OnKill(k)
		f.callbackMu.Unlock()
	}
	p.checkVictim(ctx, victim)
}

// doom returns a dead worker that holds n jobs, or nil if all that were tried were themselves late.
func (p *pool) doom(ctx context.Context, register v1.RegisterWorkerRequest, n int) *worker {
	limited, cancel := context.WithTimeout(ctx, p.fleet.opts.PlayTime)
	defer cancel()
	for try := 0; try < victims && limited.Err() == nil; try++ {
		victim, err := p.enlist(limited, register)
		if err == nil {
			err = p.fill(limited, victim, n)
		}
		if err == nil {
			victim.retire(false)
			if !victim.late() {
				return victim
			}
			err = errLate // Lubdub let it live, but an attempt taken from it is excused, and proves nothing
		}
		p.refused(ctx, victim, err)
	}
	return nil
}

// fill makes a worker claim until it holds n jobs, and start every other one. The worker beats meanwhile, and again at the end.
func (p *pool) fill(ctx context.Context, victim *worker, n int) error {
	alive, stop := context.WithCancelCause(ctx)
	var beating sync.WaitGroup
	beating.Go(func() {
		if err := victim.keepBeating(ctx, alive, p.luck()); err != nil {
			stop(err)
		}
	})
	began := time.Now()
	err := p.fillUp(alive, victim, n)
	if err == nil && time.Since(began) > jobStart/2 {
		err = errSlow
	}
	if refused := context.Cause(alive); err != nil && refused != nil {
		err = refused
	}
	stop(nil)
	beating.Wait()
	if err != nil {
		return err
	}
	return victim.beat(ctx)
}

var errLate = errors.New("it was itself silent for too long before it was to die")

// errSlow: the first claimed jobs may soon be taken from the worker again, since it has not started them.
var errSlow = errors.New("it took too long to claim its tasks")

func (p *pool) fillUp(ctx context.Context, victim *worker, n int) error {
	for held, claims := 0, 0; held < n; claims++ {
		tasks, err := victim.claim(ctx, n-held, fmt.Sprintf("%s-%d", victim.id, claims))
		if err != nil {
			return err
		}
		for _, e := range tasks {
			held++
			if r := (&runner{fleet: p.fleet, envelope: e, token: e.TaskToken, dead: true}); held%2 == 0 {
				_ = p.start(ctx, r) // the judge will see the consequences of a refusal
			}
		}
	}
	return nil
}

// mourn judges the results of a killed worker's jobs.
func (p *pool) mourn(ctx context.Context, ids []string, want Expect, due time.Time) Kill {
	k := Kill{Held: len(ids)}
	var judging sync.WaitGroup
	var mu sync.Mutex
	for _, id := range ids {
		judging.Go(func() {
			v := p.evaluate(ctx, id, nameKilled, want, due.Add(jobBackoff*time.Millisecond+jobWork))
			mu.Lock()
			defer mu.Unlock()
			if v.State == v1.Succeeded && len(v.Wrong) == 0 {
				k.Recovered++
			}
			for _, e := range v.Ended {
				k.Lag, k.Delay = max(k.Lag, e.Lag), max(k.Delay, e.Delay)
			}
		})
	}
	judging.Wait()
	return k
}

// checkVictim compares the registry's record of the killed worker with what happened.
func (p *pool) checkVictim(ctx context.Context, victim *worker) {
	limited, cancel := context.WithTimeout(ctx, p.fleet.opts.Patience)
	defer cancel()
	var w *v1.Worker
	err := p.fleet.control(limited, func() (err error) {
		w, err = p.fleet.api.GetWorker(limited, victim.id)
		return err
	})
	if ctx.Err() != nil {
		return
	}
	if err != nil {
		p.fleet.callFailed(nameKilled, err)
		return
	}
	if w.Status != v1.Offline || text(w.StatusReason) != "HEARTBEAT_TIMEOUT" || w.HeldCount != 0 {
		p.fleet.blame(nameKilled, victim.id, "the killed worker is %s %s and holds %d", w.Status, text(w.StatusReason), w.HeldCount)
	}
	if err := victim.beat(limited); refusedWith(err) != http.StatusGone && ctx.Err() == nil && !again(err) {
		p.fleet.blame(nameKilled, victim.id, "a beat of the killed worker was answered with %s, and not with 410", answer(err))
	}
}
