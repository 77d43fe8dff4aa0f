package tasks

import (
	"context"
	"slices"
	"time"

	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/schema"
	"github.com/lubdub-io/lubdub/tracker/store"
)

// Acted counts what an act did to a part of the tasks that a filter chooses.
type Acted struct {
	Matched int
	WouldDo int                // of these, that a dry run finds the act to be about: the others are as they are
	Done    int                // of these
	Refused map[model.Code]int // the others, by what each alone would have been refused with
	Next    string             // pass it as After for the next part; empty: this was the last
}

// NotFailed is what a retry refuses a task with that goes on.
const NotFailed model.Code = "task_not_failed"

// CancelTasks cancels a part of the tasks that a filter chooses: up to maxScan are looked at in one call, in the order of their
// ids, and fewer where time is short. The same part again changes nothing more. With dryRun it only counts: those that
// match, and of these those that go on.
func (s *Service) CancelMany(ctx context.Context, f model.TaskFilter, how model.CancelRequest, dryRun bool) (*Acted, error) {
	goesOn := func(is model.State) bool { return !is.Terminal() }
	cancel := func(ctx context.Context, _ []*model.Task, refs []*schema.TaskRef, a *Acted) error {
		calls := store.CallEach(refs, func(r *schema.TaskRef) *store.Call { return s.cancelCall(r, &how) })
		s.store.DoDurably(ctx, "cancel", calls...)
		told := map[int]bool{}
		for _, c := range calls {
			if c.Err != nil {
				return c.Err
			}
			if a.count(cancelled(c)); !told[c.Shard] {
				told[c.Shard] = true
				s.holdings.TellWorkers(ctx, c.Shard)
			}
		}
		return nil
	}
	return s.actOnTasks(ctx, &f, dryRun, actOnMany{"cancel", goesOn, cancel})
}

// RetryTasks makes the next attempt of those tasks of a part that have FAILED, as CancelTasks goes about its own. A pushed task is
// dispatched; whoever asks for that attempt again gets its envelope. One that has failed anew since is tried again by a repeat.
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

// retry makes the next attempts of tasks that have failed.
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

// count counts what became of one task.
func (a *Acted) count(err error) {
	if err == nil {
		a.Done++
	} else {
		a.Refused[model.CodeOf(err)]++
	}
}

// countDue counts those tasks that an act is about.
func (a *Acted) countDue(tasks []*model.Task, about func(model.State) bool) {
	for _, t := range tasks {
		if about(t.State) {
			a.WouldDo++
		}
	}
}

// actOnMany is what can be done to many tasks.
type actOnMany struct {
	op    string
	about func(model.State) bool // whether it changes a task in that state: what a dry run counts
	do    func(context.Context, []*model.Task, []*schema.TaskRef, *Acted) error
}

// actOnTasks walks over a part of the tasks of a filter and acts on those that match, some at a time. It goes by ids also where
// the filter asks for ends: a task that fails again meanwhile must not be met twice. At the half of its time it leaves the rest to
// the next call.
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
