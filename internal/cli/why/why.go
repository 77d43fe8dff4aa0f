// Package why explains everything known about a task, worker, machine or queue.
package why

import (
	"cmp"
	"context"
	"net/http"
	"strings"

	"github.com/lubdub-io/lubdub/internal/cli/exit"
	"github.com/lubdub-io/lubdub/internal/cli/resource"
	"github.com/lubdub-io/lubdub/internal/cli/session"
	"github.com/lubdub-io/lubdub/sdk/go/client"
)

type Command struct {
	ID            string `arg:"" predictor:"any" name:"id" help:"Task, worker, machine or queue; task/ID, worker/ID, machine/ID and queue/NAME name the kind."`
	session.Flags `embed:""`
}

func (*Command) Help() string {
	return "Explains everything known about a task, worker, machine or queue: last heartbeat, silence, timeout, excluded outage time, " +
		"detection lag, sweeper, outcome of held tasks, and who acted. " +
		"With -o json the answer has the sentences and the API's answers they come from."
}

func (c *Command) Run(env *session.Env) error {
	s, err := c.Open(env)
	if err != nil {
		return err
	}
	kind, id, named := strings.Cut(c.ID, "/")
	if !named {
		kind, id = "", c.ID
	}
	hint := ""
	for _, k := range []struct {
		noun    string
		explain Explainer
	}{{"task", ExplainTask}, {"worker", ExplainWorker}, {"machine", ExplainMachine}, {"queue", ExplainQueue}} {
		if kind != "" && kind != k.noun {
			continue
		}
		a, err := k.explain(env.Context, s, id)
		if exit.Code(err) == exit.NotFound && kind == "" {
			hint = cmp.Or(hint, resource.HintOf(err))
			continue
		}
		if err != nil {
			return err
		}
		return a.show(s)
	}
	switch kind {
	case "":
		return notFound("no task, worker, machine or queue " + id + " in " + s.Scope() + "; it may be in another scope, or past its retention" +
			hint)
	case "schedule", "webhook":
		return exit.Misusef("why explains tasks, workers, machines and queues; run 'lubdub %s get %s'", kind, id)
	}
	return exit.Misusef("%s is not a kind that why explains: task/ID, worker/ID, machine/ID or queue/NAME", kind)
}

// notFound is what was looked for in several places.
func notFound(message string) error {
	return exit.Refusal(&client.Error{Status: http.StatusNotFound, Code: client.ErrNotFound, Message: message})
}

// Explainer explains the resource of an id.
type Explainer func(context.Context, *session.Session, string) (*Explanation, error)

// run is the run of a command that explains one kind of resource.
func run(env *session.Env, c *session.Flags, id string, explain Explainer) error {
	s, err := c.Open(env)
	if err != nil {
		return err
	}
	a, err := explain(env.Context, s, id)
	if err != nil {
		return err
	}
	return a.show(s)
}

type Task struct {
	Task          string `arg:"" predictor:"task" name:"id" help:"Task."`
	session.Flags `embed:""`
}

func (c *Task) Run(env *session.Env) error { return run(env, &c.Flags, c.Task, ExplainTask) }

type Worker struct {
	Worker        string `arg:"" predictor:"worker" name:"id" help:"Worker."`
	session.Flags `embed:""`
}

func (c *Worker) Run(env *session.Env) error { return run(env, &c.Flags, c.Worker, ExplainWorker) }

type Machine struct {
	Machine       string `arg:"" predictor:"machine" name:"id" help:"Machine."`
	session.Flags `embed:""`
}

func (c *Machine) Run(env *session.Env) error {
	return run(env, &c.Flags, c.Machine, ExplainMachine)
}

type Queue struct {
	Queue         string `arg:"" predictor:"queue" name:"queue" help:"Queue."`
	session.Flags `embed:""`
}

func (c *Queue) Run(env *session.Env) error { return run(env, &c.Flags, c.Queue, ExplainQueue) }
