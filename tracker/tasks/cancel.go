package tasks

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/schema"
	"github.com/lubdub-io/lubdub/tracker/store"
)

// Cancel cancels a task: at once if no worker has started it or it must end now, else cooperatively with the next heartbeat. It is
// idempotent; for a finished task it fails with AlreadyTerminal.
func (s *Service) Cancel(ctx context.Context, scope model.Scope, id string, how model.CancelRequest) (*model.Task, error) {
	ctx = s.store.Within(ctx, 0)
	r := s.store.Ref(scope, id)
	if err := s.lookUp(ctx, "cancel", r); err != nil {
		return nil, err
	}
	c := s.cancelCall(r, &how)
	s.store.DoDurably(ctx, "cancel", c)
	if err := cancelled(c); err != nil {
		return nil, err
	}
	task, err := s.Get(ctx, scope, id)
	if err == nil && task.Queue != "" {
		s.holdings.NotifyWorkers(ctx, r.Shard)
	}
	return task, err
}

func cancelled(c *store.Call) error {
	if c.Err != nil {
		return c.Err
	}
	switch reply := readCancel(c.Reply); reply.code {
	case schema.CodeOK:
		return nil
	case schema.CodeNotFound:
		return noTask("cancel")
	default:
		return &model.Error{Code: model.AlreadyTerminal, Op: "cancel", State: reply.state,
			Message: fmt.Sprintf("the task is already %s; there is nothing left to cancel", reply.state)}
	}
}

// Run counts the tasks of a run by state.
func (s *Service) Run(ctx context.Context, scope model.Scope, runID string) (*model.Run, error) {
	ctx = s.store.Within(ctx, 0)
	page, err := s.ids(ctx, "run", idQuery{scope: scope, run: runID, count: model.States, limit: 1})
	if err != nil {
		return nil, err
	}
	run := &model.Run{Scope: scope, ID: runID, Counts: page.counts}
	for _, n := range page.counts {
		run.Total += n
	}
	if run.Total == 0 {
		return nil, &model.Error{Code: model.RunNotFound, Op: "run",
			Message: "no run with this id in this tenant and workspace; a run exists as long as one of its tasks does"}
	}
	return run, nil
}

// CancelRun cancels every unfinished task of a run and then counts the run. Repeating the call completes one that failed halfway.
// It works page by page, each as fast as a request, whatever their number.
func (s *Service) CancelRun(ctx context.Context, scope model.Scope, runID string, how model.CancelRequest) (*model.Run, error) {
	unfinished := slices.DeleteFunc(slices.Clone(model.States), model.State.Terminal)
	q := idQuery{scope: scope, run: runID, states: unfinished, limit: 500}
	for of := ctx; ; of = store.ArrivedAt(of, time.Now()) {
		ctx := s.store.Within(of, 0)
		page, err := s.ids(ctx, "cancel", q)
		if err != nil {
			return nil, err
		}
		names, resolve := s.NameCalls(page.refs)
		s.store.DoAll(ctx, "cancel", names)
		if err := store.FirstError(names); err != nil {
			return nil, err
		}
		resolve()
		var calls []*store.Call
		for _, r := range page.refs {
			if r.Exists {
				calls = append(calls, s.cancelCall(r, &how))
			}
		}
		s.store.DoDurably(ctx, "cancel", calls...)
		notified := map[int]bool{}
		for _, c := range calls {
			if c.Err != nil {
				return nil, c.Err
			}
			if !notified[c.Shard] {
				notified[c.Shard] = true
				s.holdings.NotifyWorkers(ctx, c.Shard)
			}
		}
		if q.after = page.next; q.after == "" {
			return s.Run(ctx, scope, runID)
		}
	}
}
