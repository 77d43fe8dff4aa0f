package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/lubdub-io/lubdub/internal/cli/output"
	"github.com/lubdub-io/lubdub/sdk/go/client"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

type whyCmd struct {
	ID     string `arg:"" predictor:"any" name:"id" help:"Task, worker or machine; task/ID, worker/ID and machine/ID say which."`
	Common `embed:""`
}

func (*whyCmd) Help() string {
	return "Explains everything known about a task, worker or machine: last heartbeat, silence, timeout, excluded outage time, detection " +
		"lag, sweeper, outcome of held tasks, and who acted. With -o json the answer has the sentences and the API's answers they come from."
}

// account is what is known of one thing.
type account struct {
	sentences []string
	parts     map[string]json.RawMessage
}

func (a *account) say(format string, args ...any) {
	a.sentences = append(a.sentences, output.Clean(fmt.Sprintf(format, args...)))
}

func (c *whyCmd) Run(env *Env) error {
	s, err := c.open(env)
	if err != nil {
		return err
	}
	kind, id, named := strings.Cut(c.ID, "/")
	if !named {
		kind, id = "", c.ID
	}
	hint := ""
	for _, k := range []struct {
		noun string
		tell func(context.Context, *session, string) (*account, error)
	}{{"task", whyTask}, {"worker", whyWorker}, {"machine", whyMachine}} {
		if kind != "" && kind != k.noun {
			continue
		}
		a, err := k.tell(env.Context, s, id)
		if ExitCode(err) == ExitNotFound && kind == "" {
			hint = cmp.Or(hint, hintOf(err))
			continue
		}
		if err != nil {
			return err
		}
		return a.show(s)
	}
	if kind != "" {
		return misusef("%s is none of task, worker and machine", kind)
	}
	return notFound("no task, worker or machine " + id + " in " + s.scope() + "; it may be of another scope, or past its retention" + hint)
}

// notFound is what was looked for in several places.
func notFound(message string) error {
	return refusal(&client.Error{Status: http.StatusNotFound, Code: client.ErrNotFound, Message: message})
}

func (a *account) show(s *session) error {
	if s.Format.ForPeople() {
		_, err := fmt.Fprintln(s.W, strings.Join(a.sentences, "\n"))
		return err
	}
	answer := map[string]any{"sentences": a.sentences}
	for name, raw := range a.parts {
		answer[name] = raw
	}
	raw, err := json.Marshal(answer)
	if err != nil {
		return err
	}
	return s.Raw(raw)
}

// why is the run of `task why` and its like.
func why(env *Env, c *Common, id string, tell func(context.Context, *session, string) (*account, error)) error {
	s, err := c.open(env)
	if err != nil {
		return err
	}
	a, err := tell(env.Context, s, id)
	if err != nil {
		return err
	}
	return a.show(s)
}

type taskWhy struct {
	Task   string `arg:"" predictor:"task" name:"id" help:"Task."`
	Common `embed:""`
}

func (c *taskWhy) Run(env *Env) error { return why(env, &c.Common, c.Task, whyTask) }

type workerWhy struct {
	Worker string `arg:"" predictor:"worker" name:"id" help:"Worker."`
	Common `embed:""`
}

func (c *workerWhy) Run(env *Env) error { return why(env, &c.Common, c.Worker, whyWorker) }

type machineWhy struct {
	Machine string `arg:"" predictor:"machine" name:"id" help:"Machine."`
	Common  `embed:""`
}

func (c *machineWhy) Run(env *Env) error { return why(env, &c.Common, c.Machine, whyMachine) }

type queueWhy struct {
	Queue  string `arg:"" predictor:"queue" name:"queue" help:"Queue."`
	Common `embed:""`
}

func (c *queueWhy) Run(env *Env) error { return why(env, &c.Common, c.Queue, whyQueue) }

// mostEvents is how many of the newest events are listed.
const mostEvents = 20

// acts lists the newest events of something, oldest first; more has the flags of `lubdub event ls` that list them all. A token that may not
// read events still gets the rest.
func (a *account) acts(ctx context.Context, s *session, q url.Values, more string) error {
	q.Set("order", "desc")
	all, raw, err := eventsOf(ctx, s, q, mostEvents)
	var refused *client.Error
	if errors.As(err, &refused) && refused.Status == http.StatusForbidden {
		a.say("This token's role may not read its events.")
		return nil
	}
	if err != nil {
		return err
	}
	a.parts["events"] = raw
	if len(all) == 0 {
		a.say("No events of it are stored.")
		return nil
	}
	a.say("Events:")
	for i := len(all) - 1; i >= 0; i-- {
		a.sentences = append(a.sentences, "  "+eventText(all[i]))
	}
	if len(all) == mostEvents {
		a.say("  (latest %d; all: lubdub event ls %s)", mostEvents, more)
	}
	return nil
}

// eventsOf returns up to n events, and them as a list of the API's own.
func eventsOf(ctx context.Context, s *session, q url.Values, n int) (all []*v1.Event, raw json.RawMessage, err error) {
	list := []json.RawMessage{}
	if _, _, err = eventPages(ctx, s, q, n, func(p *page[v1.Event]) error {
		for _, e := range p.entries {
			all, list = append(all, e.T), append(list, e.raw)
		}
		return nil
	}); err != nil {
		return nil, nil, err
	}
	raw, err = json.Marshal(list)
	return all, raw, err
}

// eventText is one event in a line.
func eventText(e *v1.Event) string {
	text := timeText(e.Time) + "  " + e.Type
	if e.Subject != "" {
		text += " " + e.Subject
	}
	if e.Attempt > 0 {
		text += fmt.Sprintf(", attempt %d", e.Attempt)
	}
	if e.Cause != "" {
		text += ", " + e.Cause
	}
	if e.By != "" {
		text += ", by " + e.By
	}
	return output.Clean(text)
}

// at tells a moment and how long ago it was.
func timeAndAge(s *session, t v1.Time) string {
	if t.IsZero() {
		return "never"
	}
	return timeText(t) + " (" + output.Age(t.Time, s.now()).Text + " ago)"
}
