package tasks

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/schema"
	"github.com/lubdub-io/lubdub/tracker/store"
)

// Bounds of a wait for the ends of tasks.
const (
	MaxWait      = time.Minute
	MaxAwaited   = 1000 // tasks that one request waits for
	endedAtOnce  = 100  // tasks in one answer
	awaitMessage = "t/" // begins the messages about ended tasks on the wake channel
)

// WaitRequest asks for tasks as soon as they have ended.
type WaitRequest struct {
	Scope   model.Scope
	TaskIDs []string
	Wait    time.Duration // how long to wait for the first end; 0: not at all
}

// Ended is the answer to a WaitRequest.
type Ended struct {
	Tasks    []*model.Task // as lists have them, in the order of the request; others that have ended are in the answer to the next request
	NotFound []string
}

// Validate checks what can be checked without the store.
func (r *WaitRequest) Validate() error {
	switch n := len(r.TaskIDs); {
	case n == 0:
		return model.Invalidf("taskIds", "is empty; name the tasks to wait for")
	case n > MaxAwaited:
		return model.Invalidf("taskIds", "names %d tasks; name %d at most", n, MaxAwaited)
	}
	if r.Wait < 0 || r.Wait > MaxWait {
		return model.Invalidf("waitMs", "is %d; use 0 to %d", model.Millis(r.Wait), model.Millis(MaxWait))
	}
	seen := make(map[string]bool, len(r.TaskIDs))
	for i, id := range r.TaskIDs {
		field := fmt.Sprintf("taskIds[%d]", i)
		if err := model.CheckID(field, id); err != nil {
			return err
		}
		if seen[id] {
			return model.Invalidf(field, "names %s again; name each task once", id)
		}
		seen[id] = true
	}
	return nil
}

// Wait returns those of the tasks that have ended, and the ids without a task, as soon as there is one of either. It returns nothing
// when the wait is over, and the error of ctx when that ends before.
func (s *Service) Wait(ctx context.Context, r WaitRequest) (*Ended, error) {
	if err := r.Validate(); err != nil {
		return nil, err
	}
	calls := s.store.Within(context.WithoutCancel(ctx), r.Wait)
	refs := make([]*schema.TaskRef, len(r.TaskIDs))
	for i, id := range r.TaskIDs {
		refs[i] = s.store.Ref(r.Scope, id)
	}
	over, err := s.awaitEnd(ctx, calls, "wait", refs, r.Wait)
	if err != nil {
		return nil, err
	}
	var found []*schema.TaskRef
	ended := &Ended{}
	for i, r := range refs {
		switch {
		case over[i] == "":
			ended.NotFound = append(ended.NotFound, r.ID)
		case over[i].Terminal() && len(found) < endedAtOnce:
			found = append(found, r)
		}
	}
	return ended, s.readEnded(calls, found, ended)
}

// readEnded adds the tasks that have ended, as many as fit into an answer.
func (s *Service) readEnded(ctx context.Context, refs []*schema.TaskRef, ended *Ended) error {
	if err := s.resolve(ctx, "wait", refs); err != nil {
		return err
	}
	rd, err := s.read(ctx, "wait", refs, Listed)
	for i, bytes := 0, 0; err == nil && i < len(refs) && bytes < maxPageBytes; i++ {
		var task *model.Task
		var size int
		if task, size, err = rd.at(ctx, i); task != nil && task.State.Terminal() { // a retry may have begun since
			ended.Tasks = append(ended.Tasks, task)
			bytes += size
		}
	}
	return err
}

// GetWhenEnded reads one task when it has ended, or when the wait is over; it returns the error of ctx when that ends before. The wait is
// at most MaxWait; 0: it does not wait.
func (s *Service) GetWhenEnded(ctx context.Context, scope model.Scope, id string, wait time.Duration) (*model.Task, error) {
	if wait == 0 {
		return s.Get(ctx, scope, id)
	}
	calls := s.store.Within(context.WithoutCancel(ctx), wait)
	if _, err := s.awaitEnd(ctx, calls, "get", []*schema.TaskRef{s.store.Ref(scope, id)}, wait); err != nil {
		return nil, err
	}
	return s.Get(calls, scope, id)
}

// awaitEnd returns the states of the tasks, "" for one that does not exist, as soon as one of them has ended or does not exist, or when
// the wait is over. `calls` is the context of calls, which does not end with ctx.
func (s *Service) awaitEnd(ctx, calls context.Context, op string, refs []*schema.TaskRef, wait time.Duration) ([]model.State, error) {
	states := make([]model.State, len(refs))
	if wait == 0 {
		return states, s.lookAt(calls, op, refs, nil, states, s.statesCall)
	}
	w := s.awaiting.join(refs)
	defer s.awaiting.leave(w, refs)
	s.store.ListenForWakes()
	timer := time.NewTimer(wait)
	defer timer.Stop()
	var look []int // nil: at all
	for over := false; ; {
		if err := s.lookAt(calls, op, refs, look, states, s.awaitCall); err != nil || over {
			return states, err
		}
		if slices.ContainsFunc(states, func(is model.State) bool { return is == "" || is.Terminal() }) {
			return states, nil
		}
		select {
		case <-w.woken:
			look = s.awaiting.take(w)
		case <-timer.C:
			look, over = nil, true // a replica of an older release announces no ends
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// lookAt reads the states of some of the tasks, by position; nil: of all.
func (s *Service) lookAt(
	ctx context.Context, op string, refs []*schema.TaskRef, look []int, states []model.State, call func([]*schema.TaskRef) *store.Call,
) error {
	if look == nil {
		look = make([]int, len(refs))
		for i := range look {
			look[i] = i
		}
	}
	groups := schema.ByShard(look, namesAtOnce, func(i int) int { return refs[i].Shard })
	calls := store.CallEach(groups, func(group []int) *store.Call {
		of := make([]*schema.TaskRef, len(group))
		for j, i := range group {
			of[j] = refs[i]
		}
		return call(of)
	})
	s.store.DoBulk(ctx, op, calls)
	if err := store.FirstError(calls); err != nil {
		return err
	}
	for g, group := range groups {
		for j, is := range readStates(calls[g].Reply) {
			states[group[j]] = is.State
		}
	}
	return nil
}

// awaiting are the requests of this replica that wait for the ends of tasks.
type awaiting struct {
	mu sync.Mutex
	of map[string][]awaited // by <scope>/<task>
}

// awaited is a task of a request, by its position there.
type awaited struct {
	by *waiter
	at int
}

// waiter is a request that waits.
type waiter struct {
	woken chan struct{} // holds one wake-up

	all   bool  // look at all tasks; it and ended are protected by the lock of awaiting
	ended []int // look at these tasks
}

func (a *awaiting) join(refs []*schema.TaskRef) *waiter {
	w := &waiter{woken: make(chan struct{}, 1)}
	a.mu.Lock()
	defer a.mu.Unlock()
	for i, r := range refs {
		name := schema.TaskName(r.Scope, r.ID)
		a.of[name] = append(a.of[name], awaited{w, i})
	}
	return w
}

func (a *awaiting) leave(w *waiter, refs []*schema.TaskRef) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, r := range refs {
		name := schema.TaskName(r.Scope, r.ID)
		if a.of[name] = slices.DeleteFunc(a.of[name], func(one awaited) bool { return one.by == w }); len(a.of[name]) == 0 {
			delete(a.of, name)
		}
	}
}

// take returns the tasks that a request must look at, by their positions; nil: all of them.
func (a *awaiting) take(w *waiter) []int {
	a.mu.Lock()
	defer a.mu.Unlock()
	look := w.ended
	if w.all {
		look = nil
	}
	w.all, w.ended = false, nil
	return look
}

// receive handles a message of the wake channel.
func (a *awaiting) receive(message string) {
	name, is := strings.CutPrefix(message, awaitMessage)
	if !is {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, one := range a.of[name] {
		one.by.ended = append(one.by.ended, one.at)
		one.by.wake()
	}
}

// recheck makes all requests look again: messages may have been missed.
func (a *awaiting) recheck() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, list := range a.of {
		for _, one := range list {
			one.by.all = true
			one.by.wake()
		}
	}
}

func (w *waiter) wake() {
	select {
	case w.woken <- struct{}{}:
	default: // it has not handled the last one yet
	}
}
