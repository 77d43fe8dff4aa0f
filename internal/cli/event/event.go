// Package event has the commands about events.
package event

import (
	"github.com/lubdub-io/lubdub/internal/cli/resource"
	"github.com/lubdub-io/lubdub/internal/cli/session"
	"github.com/lubdub-io/lubdub/sdk/go/client"
)

// Filter are the flags that choose events.
type Filter struct {
	Type     []string `placeholder:"TYPE" help:"Types such as task.zombie, or families such as task.*, separated by commas."`
	Subject  string   `placeholder:"ID" help:"Id of the task, worker, machine or other object that they are about."`
	RunID    string   `name:"run" placeholder:"ID" help:"Run."`
	Queue    string   `predictor:"queue" placeholder:"QUEUE" help:"Queue."`
	TaskType string   `placeholder:"TYPE" help:"Type of task."`
	Worker   string   `predictor:"worker" placeholder:"ID" help:"Worker."`
	Machine  string   `predictor:"machine" placeholder:"ID" help:"Machine."`
}

func (f *Filter) query() client.EventQuery {
	return client.EventQuery{
		Types: f.Type, Subject: f.Subject, RunID: f.RunID, Queue: f.Queue, TaskType: f.TaskType, WorkerID: f.Worker, MachineID: f.Machine,
	}
}

type Tail struct {
	Filter        `embed:""`
	After         string `placeholder:"WHEN" help:"Start: a cursor, a time, or how long ago. Default: now."`
	session.Flags `embed:""`
}

func (c *Tail) Run(env *session.Env) error {
	s, err := c.Open(env)
	if err != nil {
		return err
	}
	return resource.Follow(s, c.query(), c.After)
}
