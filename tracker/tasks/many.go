package tasks

import (
	"context"
	"slices"
	"time"

	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/schema"
	"github.com/lubdub-io/lubdub/tracker/store"
)

// Acted is the result of an act on some of the tasks that match a filter.
type Acted struct {
	Matched int
	WouldDo int                // of these, those that the act would change, according to a dry run
	Done    int                // of these, those that were changed
	Refused map[model.Code]int // the others, by the code with which a single request would have been refused
	Next    string             // After for the next part; empty: this was the last one
}

// NotFailed is the code with which a retry refuses a task that is not finished.
const NotFailed model.Code = "task_not_failed"

// CancelMany cancels a part of the tasks that match a filter: one call examines up to maxScan, in the order of their IDs, and
// fewer if time is short. Repeating the same part changes nothing more. With dryRun it only counts the matches and how many of
// them are unfinished.
func (s *Service) CancelMany(ctx context.Context, f model.TaskFilter, how model.CancelRequest, dryRun bool) (*Acted, error) {
	unfinished := func(is model.State) bool { return !is.Terminal() }
	cancel := func(ctx context.Context, _ []*model.Task, refs []*schema.TaskRef, a *Acted) error {
		calls := store.CallEach(refs, func(r *schema.TaskRef) *store.Call { return s.cancelCall(r, &how) })
		s.store.DoDurably(ctx, "cancel", calls...)
		notified := map[int]bool{}
		for _, c := range calls {
			if c.Err != nil {
				return c.Err
			}
			if a.count(cancelled(c)); !notified[c.Shard] {
				notified[c.Shard] = true
				s.holdings.NotifyWorkers(ctx, c.Shard)
			}
		}
		return nil
	}
	return s.actOnTasks(ctx, &f, dryRun, actOnMany{"cancel", unfinished, cancel})
}

// RetryMany creates the next attempts of the FAILED tasks of a part, in the same way as CancelMany. A pushed task is dispatched; a
// client that requests that attempt gets its envelope. A repeat retries a task again that has failed since.
func (s *Service) RetryMany(ctx context.Context, f model.TaskFilter, dryRun bool) (*Acted, error) {
	hasFailed := func(is model.State) bool { return is == model.Failed }
	retry := func(ctx context.Context, tasks []*model.Task, refs []*schema.TaskRef, a *Acted) error {
		var failed []*schema.TaskRef
		for i, task := range tasks {
			switch {
			case hasFailed(task.State):
				failed = append(failed, refs[i])
			case task.State.Terminal():
				a.Refused[model.AlreadyTerminal]++
			default:
				a.Refused[NotFailed]++
			}
		}
		for step := range slices.Chunk(failed, readStep) {
			if err := s.retry(ctx, step, a); err != nil {
				return err
			}
		}
		return nil
	}
	return s.actOnTasks(ctx, &f, dryRun, actOnMany{"retry", hasFailed, retry})
}

// retry creates the next attempts of failed tasks.
func (s *Service) retry(ctx context.Context, refs []*schema.TaskRef, a *Acted) error {
	read, err := s.readAll(ctx, "retry", refs, Listed)
	if err != nil {
		return err
	}
	var calls []*store.Call
	var of []*schema.TaskRef
	for i, task := range read {
		switch {
		case task == nil:
			a.Refused[model.NotFound]++
		case task.State != model.Failed:
			a.Refused[NotFailed]++
		default:
			calls, of = append(calls, s.attemptAfter(refs[i], task, task.Attempt)), append(of, refs[i])
		}
	}
	s.store.DoDurably(ctx, "retry", calls...)
	for i, c := range calls {
		if c.Err != nil {
			return c.Err
		}
		reply := readNextAttempt(of[i], c.Reply)
		if reply.task != nil {
			a.Done++
		} else {
			a.count(reply.refusal("retry", 0, model.Failed))
		}
	}
	return nil
}

// count counts the result of one task.
func (a *Acted) count(err error) {
	if err == nil {
		a.Done++
	} else {
		a.Refused[model.CodeOf(err)]++
	}
}

// countDue counts the tasks that an act would change.
func (a *Acted) countDue(tasks []*model.Task, about func(model.State) bool) {
	for _, t := range tasks {
		if about(t.State) {
			a.WouldDo++
		}
	}
}

// actOnMany is an operation on many tasks.
type actOnMany struct {
	op    string
	about func(model.State) bool // reports whether it changes a task in that state, which a dry run counts
	do    func(context.Context, []*model.Task, []*schema.TaskRef, *Acted) error
}

// actOnTasks walks over a part of the tasks of a filter and acts on those that match, some at a time. It uses the order of IDs
// even if the filter has ends, since a task that fails again meanwhile must not be found twice. After half of its time it leaves
// the rest to the next call.
func (s *Service) actOnTasks(ctx context.Context, f *model.TaskFilter, dryRun bool, act actOnMany) (*Acted, error) {
	ctx = s.store.Within(ctx, 0)
	q := idQuery{scope: f.Scope, run: f.RunID, states: f.States, after: f.After, limit: scanStep}
	if len(q.states) == 0 {
		q.states = model.States
	}
	p, err := s.newPage(ctx, act.op, f)
	if err != nil {
		return nil, err
	}
	a := &Acted{Refused: map[model.Code]int{}}
	for scanned := 0; ; q.after = a.Next {
		ids, err := s.ids(ctx, act.op, q)
		if err != nil {
			return nil, err
		}
		tasks, refs, err := p.matching(ctx, act.op, ids.refs)
		if err != nil {
			return nil, err
		}
		a.Matched += len(refs)
		if dryRun {
			a.countDue(tasks, act.about)
		} else if len(refs) > 0 {
			if err := act.do(ctx, tasks, refs, a); err != nil {
				return nil, err
			}
		}
		a.Next = ids.next
		if scanned += len(ids.refs); a.Next == "" || scanned >= maxScan || time.Until(store.Until(ctx)) < s.store.Patience()/2 {
			return a, nil
		}
	}
}
