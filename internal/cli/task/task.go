// Package task has the commands about tasks and runs.
package task

import (
	"strings"

	"github.com/lubdub-io/lubdub/internal/cli/resource"
	"github.com/lubdub-io/lubdub/internal/cli/session"
	"github.com/lubdub-io/lubdub/sdk/go/client"
)

type List struct {
	Filter             `embed:""`
	Liveness           string `predictor:"liveness" placeholder:"WORD" help:"FRESH, LATE or LOST."`
	Claimable          bool   `help:"Only those that could be claimed now: WAITING of lubdub queue ls counts them."`
	Until              string `placeholder:"WHEN" help:"Ended until: a time, or how long ago."`
	Oldest             bool   `help:"Oldest first. The default is newest first, as on the dashboard."`
	Newest             bool   `hidden:"" help:"The default."`
	resource.ListFlags `embed:""`
	session.Flags      `embed:""`
}

func (c *List) Run(env *session.Env) error {
	s, err := c.Open(env)
	if err != nil {
		return err
	}
	q, err := c.query(s)
	if err != nil {
		return err
	}
	until, err := s.ParseTime("until", c.Until)
	if err != nil {
		return err
	}
	for name, value := range resource.Query("liveness", strings.ToUpper(c.Liveness), "finishedBefore", session.FormatTime(until),
		"order", resource.Order(!c.Oldest)) {
		q[name] = value
	}
	if c.Claimable {
		q.Set("claimable", "true")
	}
	return resource.Tasks.List(s, c.ListFlags, q)
}

type Get struct {
	Tasks         []string `arg:"" predictor:"task" name:"id" help:"Tasks."`
	session.Flags `embed:""`
}

func (c *Get) Run(env *session.Env) error { return resource.Tasks.Get(env, &c.Flags, c.Tasks) }

type Tail struct {
	Task          string `arg:"" predictor:"task" name:"id" help:"Task."`
	After         string `placeholder:"WHEN" help:"Start: a cursor, a time, or how long ago. Default: now."`
	session.Flags `embed:""`
}

func (c *Tail) Run(env *session.Env) error {
	return resource.Tasks.Tail(env, &c.Flags, c.Task, client.EventQuery{Subject: resource.Tasks.BareID(c.Task)}, c.After)
}
