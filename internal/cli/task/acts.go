package task

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/lubdub-io/lubdub/internal/cli/exit"
	"github.com/lubdub-io/lubdub/internal/cli/output"
	"github.com/lubdub-io/lubdub/internal/cli/resource"
	"github.com/lubdub-io/lubdub/internal/cli/session"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

// acts is what cancel and retry have in common.
type acts struct {
	Tasks            []string `arg:"" optional:"" predictor:"task" name:"id" help:"Tasks; without ids, those that match the filters."`
	Filter           `embed:""`
	session.ActFlags `embed:""`
	session.Flags    `embed:""`
}

type Cancel struct {
	acts                `embed:""`
	session.ReasonFlags `embed:""`
	Grace               *time.Duration `placeholder:"DURATION" help:"How long workers have to stop; 0s ends them now. Without it, the grace of each task applies."`
}

func (c *Cancel) Run(env *session.Env) error {
	s, err := c.Open(env)
	if err != nil {
		return err
	}
	body := v1.CancelRequest{Reason: c.Reason, GracePeriodMs: session.Milliseconds(c.Grace)}
	return c.act(s, "cancel", func(ctx context.Context, id string) (json.RawMessage, *v1.Task, error) {
		return session.Post[v1.Task](ctx, s, resource.Tasks.PathOf(id)+"/cancel", body)
	}, func(sel v1.TaskSelector, dry bool, from string) any {
		if sel.State == "" && sel.Reason == "" && sel.FinishedAfter.IsZero() {
			sel.State = "SCHEDULED,QUEUED,DISPATCHED,RUNNING" // what has ended is neither counted nor refused
		}
		return v1.CancelTasksRequest{CancelRequest: body, Selector: sel, DryRun: dry, PageToken: from}
	})
}

type Retry struct {
	acts `embed:""`
}

func (c *Retry) Run(env *session.Env) error {
	s, err := c.Open(env)
	if err != nil {
		return err
	}
	return c.act(s, "retry", func(ctx context.Context, id string) (json.RawMessage, *v1.Task, error) {
		return resource.RetryTask(ctx, s, id)
	}, func(sel v1.TaskSelector, dry bool, from string) any {
		sel.State = cmp.Or(sel.State, string(v1.Failed)) // no other is tried again, so no other is counted
		return v1.RetryTasksRequest{Selector: sel, DryRun: dry, PageToken: from}
	})
}

// act does something to tasks: to those that are named, or, once it is counted and agreed, to all that filters name.
func (c *acts) act(
	s *session.Session, verb string, one func(context.Context, string) (json.RawMessage, *v1.Task, error),
	body func(sel v1.TaskSelector, dry bool, from string) any,
) error {
	sel, err := c.selector(s)
	if err != nil {
		return err
	}
	named, filtered := len(c.Tasks) > 0, resource.FormatSelector(sel) != "{}"
	switch {
	case named && filtered:
		return exit.Misusef("name tasks or filter them, not both")
	case !named && !filtered:
		return exit.Misusef("name the tasks to %s, or say which with --state, --queue, --type, --run, --worker, --machine, --selector, "+
			"--because or --since", verb)
	case named && c.DryRun:
		return resource.Tasks.Get(s.Env, &c.Flags, c.Tasks)
	case named:
		return resource.OnEach(s, resource.Tasks, c.Tasks, one)
	}
	path := "/v1/tasks:" + verb
	counted, raw, err := actOnTasks(s.Env.Context, s, path, func(from string) any { return body(sel, true, from) }, nil)
	if err != nil {
		return err
	}
	due, what := dueOf(verb, counted)
	what += fmt.Sprintf(" that match %s in %s", resource.FormatSelector(sel), s.Scope())
	if c.DryRun {
		return s.ShowResult(raw, "This would %s.", what)
	}
	switch {
	case counted.Matched == 0:
		s.Note("No task matches %s in %s.", resource.FormatSelector(sel), s.Scope())
		return s.ShowAnswer(raw)
	case due == 0:
		s.Note("There is nothing to do: this would %s.", what)
		return s.ShowAnswer(raw)
	}
	if err := s.Confirm(c.ActFlags, what); err != nil {
		return err
	}
	done, raw, err := actOnTasks(s.Env.Context, s, path, func(from string) any { return body(sel, false, from) },
		func(sum *v1.ActOnTasksResponse) {
			s.Note("%s of %s", output.Grouped(int64(sum.Done)), output.Grouped(int64(due)))
		})
	if err != nil {
		return fmt.Errorf("%w\n%s done so far; run the same command again to continue", err, output.Count(done.Done, "task"))
	}
	if err := s.ShowResult(raw, "%s: done.", output.Count(done.Done, "task")); err != nil {
		return err
	}
	for _, code := range slices.Sorted(maps.Keys(done.Refused)) {
		s.Note("%s refused: %s", output.Count(done.Refused[code], "task"), code)
	}
	return nil
}

// unchangedBecause is why an act would not change tasks that match it.
var unchangedBecause = map[string]string{"cancel": "have ended", "retry": "have not failed"}

// dueOf is how many of the tasks that were counted an act would change, and what it would do, as far as "… that match".
func dueOf(verb string, counted *v1.ActOnTasksResponse) (due int, what string) {
	if due = counted.Matched; counted.WouldDo != nil { // an older server does not count
		due = *counted.WouldDo
	}
	what = verb + " " + output.Count(due, "task")
	if others := counted.Matched - due; others > 0 {
		what += fmt.Sprintf(", not %s that %s, of those", output.Grouped(int64(others)), unchangedBecause[verb])
	}
	return due, what
}

// actOnTasks goes through all parts of an act on many tasks and sums them up.
func actOnTasks(
	ctx context.Context, s *session.Session, path string, body func(from string) any, progress func(*v1.ActOnTasksResponse),
) (*v1.ActOnTasksResponse, json.RawMessage, error) {
	sum := &v1.ActOnTasksResponse{Refused: map[string]int{}}
	for from := ""; ; {
		_, part, err := session.Post[v1.ActOnTasksResponse](ctx, s, path, body(from))
		if err != nil {
			return sum, nil, err
		}
		sum.Matched, sum.Done = sum.Matched+part.Matched, sum.Done+part.Done
		if part.WouldDo != nil {
			if sum.WouldDo == nil {
				sum.WouldDo = new(int)
			}
			*sum.WouldDo += *part.WouldDo
		}
		for code, n := range part.Refused {
			sum.Refused[code] += n
		}
		if from = part.NextPageToken; from == "" {
			raw, err := json.Marshal(sum)
			return sum, raw, err
		}
		if progress != nil {
			progress(sum)
		}
	}
}
