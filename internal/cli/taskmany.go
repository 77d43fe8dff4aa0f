package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/lubdub-io/lubdub/internal/cli/output"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

// act does something to tasks: to those that are named, or, once it is counted and agreed, to all that filters name.
func (c *taskActs) act(
	s *session, verb string, one func(context.Context, string) (json.RawMessage, *v1.Task, error),
	body func(sel v1.TaskSelector, dry bool, from string) any,
) error {
	sel, err := c.selector(s)
	if err != nil {
		return err
	}
	named, filtered := len(c.Tasks) > 0, selectorText(sel) != "{}"
	switch {
	case named && filtered:
		return misusef("name tasks or filter them, not both")
	case !named && !filtered:
		return misusef("name the tasks to %s, or say which with --state, --queue, --type, --run, --worker, --machine, --selector, "+
			"--because or --since", verb)
	case named && c.DryRun:
		return tasks.get(s.env, &c.Common, c.Tasks)
	case named:
		return onEach(s, tasks, c.Tasks, one)
	}
	path := "/v1/tasks:" + verb
	counted, raw, err := actOnTasks(s.env.Context, s, path, func(from string) any { return body(sel, true, from) }, nil)
	if err != nil {
		return err
	}
	due, what := dueOf(verb, counted)
	what += fmt.Sprintf(" that match %s in %s", selectorText(sel), s.scope())
	if c.DryRun {
		return s.counted(raw, "This would %s.", what)
	}
	switch {
	case counted.Matched == 0:
		s.note("No task matches %s in %s.", selectorText(sel), s.scope())
		return s.countedNothing(raw)
	case due == 0:
		s.note("There is nothing to do: this would %s.", what)
		return s.countedNothing(raw)
	}
	if err := s.agreed(c.Acting, what); err != nil {
		return err
	}
	done, raw, err := actOnTasks(s.env.Context, s, path, func(from string) any { return body(sel, false, from) },
		func(sum *v1.ActOnTasksResponse) {
			s.note("%s of %s", output.Grouped(int64(sum.Done)), output.Grouped(int64(due)))
		})
	if err != nil {
		return fmt.Errorf("%w\n%s done so far; the same command goes on with the rest", err, output.Count(done.Done, "task"))
	}
	if err := s.counted(raw, "%s: done.", output.Count(done.Done, "task")); err != nil {
		return err
	}
	for _, code := range slices.Sorted(maps.Keys(done.Refused)) {
		s.note("%s refused: %s", output.Count(done.Refused[code], "task"), code)
	}
	return nil
}

// whyNot says of tasks that match an act, and that it would not change, why.
var whyNot = map[string]string{"cancel": "have ended", "retry": "have not failed"}

// dueOf is how many of the tasks that were counted an act would change, and what it would do, as far as "… that match".
func dueOf(verb string, counted *v1.ActOnTasksResponse) (due int, what string) {
	if due = counted.Matched; counted.WouldDo != nil { // an older server does not tell
		due = *counted.WouldDo
	}
	what = verb + " " + output.Count(due, "task")
	if others := counted.Matched - due; others > 0 {
		what += fmt.Sprintf(", not %s that %s, of those", output.Grouped(int64(others)), whyNot[verb])
	}
	return due, what
}

// actOnTasks goes through all parts of an act on many tasks and sums them up.
func actOnTasks(
	ctx context.Context, s *session, path string, body func(from string) any, progress func(*v1.ActOnTasksResponse),
) (*v1.ActOnTasksResponse, json.RawMessage, error) {
	sum := &v1.ActOnTasksResponse{Refused: map[string]int{}}
	for from := ""; ; {
		_, part, err := post[v1.ActOnTasksResponse](ctx, s, path, body(from))
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

// selectorText tells a selector as the API reads it.
func selectorText(sel any) string {
	text, _ := json.Marshal(sel)
	return strings.ReplaceAll(string(text), `"`, "")
}

// countedNothing answers programs that there was nothing to do.
func (s *session) countedNothing(raw json.RawMessage) error {
	if s.Format.ForPeople() || s.Format == output.Name {
		return nil
	}
	return s.Raw(raw)
}
