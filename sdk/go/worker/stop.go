package worker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/lubdub-io/lubdub/sdk/go/client"
	"github.com/lubdub-io/lubdub/sdk/go/internal/beats"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

// Unfinished is the error of a worker that stopped before all tasks were finished.
type Unfinished struct {
	// TaskIDs are the tasks that were given back: other workers get them at once, and their retry policies do not count this.
	TaskIDs []string
	// Err is why the server could not be notified; nil: it was. Otherwise other workers get the tasks after the worker's heartbeat timeout.
	Err error
}

// Error names the tasks.
func (u *Unfinished) Error() string {
	what := strconv.Itoa(len(u.TaskIDs)) + " tasks"
	if len(u.TaskIDs) == 1 {
		what = "1 task"
	}
	ids := strings.Join(u.TaskIDs, ", ")
	if u.Err != nil {
		return fmt.Sprintf("worker: did not finish %s, and could not give back: %s: they go to other workers after the heartbeat timeout: %v",
			what, ids, u.Err)
	}
	return fmt.Sprintf("worker: did not finish and gave back %s: %s", what, ids)
}

// Unwrap returns Err.
func (u *Unfinished) Unwrap() error { return u.Err }

// finish waits for running tasks, as long as there is time. Beats continue; tasks that are left in the inventory are given back.
func (w *Worker) finish(cancel context.CancelCauseFunc, endClaims func()) {
	idle := func() bool { return len(w.jobs) == 0 && w.claiming == 0 }
	if w.stopping.Err() == nil && !w.failedForGood() { // if the server requested the drain, it decides itself when to requeue the tasks
		w.await(func() bool { return idle() || w.fatal != nil }, w.stopping.Done(), w.hard)
		if w.stopping.Err() == nil && !w.failedForGood() {
			return
		}
	}
	began := w.clock.Now()
	if w.isHeld() {
		cancel(client.Lost{Reason: forcedOffline})
		w.awaitUntil(func() bool { return len(w.jobs) == 0 }, began.Add(w.set.hardStop))
		w.measureLeft(client.OutcomeLost)
		return
	}
	var announcing sync.WaitGroup
	announcing.Add(1)
	go func() {
		defer announcing.Done()
		w.announce()
		defer w.clock.AfterFunc(lastWait, endClaims)() // the drain has answered the waiting claims
		w.await(func() bool { return w.claiming == 0 }, w.hard, nil)
		endClaims()
	}()
	defer announcing.Wait()
	if w.awaitUntil(idle, began.Add(w.set.softStop)) {
		return
	}
	if !w.killed() {
		w.set.log.Info("The worker stops: handlers are cancelled at the soft stop", "active", w.ActiveCount())
	}
	cancel(ErrStopping)
	if w.awaitUntil(idle, began.Add(w.set.hardStop)) {
		return
	}
	endClaims()
	w.giveBack()
}

// lastWait is how long to wait at the end for answers that are under way.
const lastWait = time.Second

func (w *Worker) isHeld() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.held
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

// awaitUntil waits for a condition until a time, or until the hard stop.
func (w *Worker) awaitUntil(holds func() bool, until time.Time) bool {
	late := make(chan struct{})
	defer w.clock.AfterFunc(until.Sub(w.clock.Now()), func() { close(late) })()
	return w.await(holds, w.hard, late)
}

// announce reports to the server that the worker drains.
func (w *Worker) announce() {
	w.mu.Lock()
	known := w.draining
	w.draining = true
	w.waiters.wake()
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

// giveBack ends all completions: tasks that are still held stay in the inventory.
func (w *Worker) giveBack() {
	w.mu.Lock()
	w.gaveBack = true
	w.set.log.Warn("The hard stop has come", "active", len(w.jobs))
	w.mu.Unlock()
	w.measureLeft(client.OutcomeReturned)
	late := make(chan struct{})
	defer w.clock.AfterFunc(lastWait, func() { close(late) })()
	w.await(func() bool { return w.completing == 0 }, nil, late)
	w.leave()
	w.await(func() bool { return w.completing == 0 }, nil, nil)
}

// deliver sends the last progress and checkpoints of attempts that are given back, for the attempts after them.
func (w *Worker) deliver(givenBack []beats.Attempt) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	defer w.clock.AfterFunc(2*lastWait, cancel)()
	var all sync.WaitGroup
	places := make(chan struct{}, 16)
	for _, a := range givenBack {
		places <- struct{}{}
		all.Add(1)
		go func() {
			defer all.Done()
			defer func() { <-places }()
			if err := a.Deliver(ctx); err != nil {
				id, _ := a.Name()
				w.set.log.Warn("The last progress of a task that is given back could not be sent", "taskId", id, "error", err)
			}
		}()
	}
	all.Wait()
}

// depart deregisters, and returns the result of Run.
func (w *Worker) depart() error {
	w.mu.Lock()
	held, fatal, kept := w.held, w.fatal, w.kept
	left := w.cut
	var givenBack []beats.Attempt
	for _, e := range w.inventory {
		if e.attempt == nil || !e.attempt.Over() {
			left = append(left, e.taskID)
		}
		if e.attempt != nil && !e.attempt.Over() {
			givenBack = append(givenBack, e.attempt)
		}
	}
	slices.Sort(left)
	w.mu.Unlock()
	var err error
	if !held {
		w.deliver(givenBack)
		err = w.deregister()
	}
	w.mu.Lock()
	w.session = nil
	w.mu.Unlock()
	for _, a := range kept {
		a.Abandon()
	}
	if held || len(left) == 0 {
		return fatal
	}
	unfinished := &Unfinished{TaskIDs: left, Err: err}
	w.set.log.Warn(unfinished.Error())
	return errors.Join(fatal, unfinished)
}
