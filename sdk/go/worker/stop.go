package worker

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/lubdub-io/lubdub/sdk/go/client"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

// Unfinished says which tasks were given back at the hard stop.
type Unfinished struct {
	// TaskIDs are theirs.
	TaskIDs []string
}

// Error names them.
func (u *Unfinished) Error() string {
	return fmt.Sprintf("worker: %d tasks were not finished and were given back: %s", len(u.TaskIDs), strings.Join(u.TaskIDs, ", "))
}

// finish waits for what is at work, as long as there is time, and gives back what is left. Beats go on.
func (w *Worker) finish(cancel context.CancelCauseFunc, endClaims func()) (unfinished []string) {
	told := w.stopping.Err() != nil || w.failedForGood()
	idle := func() bool { return len(w.jobs) == 0 && w.claiming == 0 }
	if !told { // the server has asked for the drain, and says itself when it takes back what is held
		w.await(func() bool { return idle() || w.fatal != nil }, w.stopping.Done(), w.hard)
		if w.stopping.Err() == nil && !w.failedForGood() {
			return nil
		}
	}
	began := w.clock.Now()
	var asking sync.WaitGroup
	asking.Add(1)
	go func() {
		defer asking.Done()
		w.announce()
		defer w.clock.AfterFunc(time.Second, endClaims)() // the drain has answered those that wait
		w.await(func() bool { return w.claiming == 0 }, w.hard, nil)
		endClaims()
	}()
	defer asking.Wait()
	if w.awaitUntil(idle, began.Add(w.set.softStop)) {
		return nil
	}
	if w.killed() {
		endClaims()
		return w.giveBack()
	}
	w.set.log.Info("Handlers are cancelled: the soft stop has come", "active", w.ActiveCount())
	cancel(ErrStopping)
	if w.awaitUntil(idle, began.Add(w.set.hardStop)) {
		return nil
	}
	endClaims()
	return w.giveBack()
}

func (w *Worker) killed() bool {
	select {
	case <-w.hard:
		return true
	default:
		return false
	}
}

func (w *Worker) failedForGood() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.fatal != nil
}

// awaitUntil waits for a condition until a time, or until it is to stop now.
func (w *Worker) awaitUntil(holds func() bool, until time.Time) bool {
	late := make(chan struct{})
	defer w.clock.AfterFunc(until.Sub(w.clock.Now()), func() { close(late) })()
	return w.await(holds, w.hard, late)
}

// announce tells the server that the worker drains.
func (w *Worker) announce() {
	w.mu.Lock()
	known := w.draining
	w.draining = true
	w.change()
	w.mu.Unlock()
	if known {
		return
	}
	s, token := w.current()
	w.set.log.Info("Draining: the worker stops", "workerId", s.id, "active", w.ActiveCount())
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	defer w.clock.AfterFunc(maxPause, cancel)()
	if _, err := w.client.DrainWorker(ctx, s.id, token, v1.DrainRequest{Reason: "it stops"}); err != nil && !gone(err) {
		w.set.log.Warn("The drain could not be announced", "workerId", s.id, "error", err)
	}
}

// giveBack fails what still runs, so that others get it at once, and returns the ids of its tasks.
func (w *Worker) giveBack() (unfinished []string) {
	w.mu.Lock()
	w.given = true
	var left []*job
	for j := range w.jobs {
		left = append(left, j)
		unfinished = append(unfinished, j.envelope.TaskID)
	}
	w.mu.Unlock()
	w.set.log.Warn("What still runs is given back: the hard stop has come", "taskIds", unfinished)
	var all sync.WaitGroup
	for _, j := range left {
		taken := j.settling.Swap(true)
		a := j.attempt.Load() // after that: either this sees it, or it sees that nobody is to begin
		if a == nil || taken {
			continue
		}
		all.Add(1)
		go func() {
			defer all.Done()
			defer close(j.settled)
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			defer w.clock.AfterFunc(maxPause, cancel)()
			retry := true
			answer, err := a.Complete(ctx, v1.CompletedRequest{Outcome: v1.OutcomeFailed, Error: &v1.TaskError{
				Category: v1.CategoryInfrastructure, Message: "worker stopped", Retryable: &retry,
			}})
			if err == nil {
				w.count(answer.FinalState)
			} else if client.MayRetry(err) {
				w.set.log.Warn("A task could not be given back; the server recovers it with its worker", "taskId", a.TaskID(), "error", err)
			}
		}()
	}
	all.Wait()
	return unfinished
}
