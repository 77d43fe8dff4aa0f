// Package top is the command that shows a deployment live. What is on the screen is package tui's.
package top

import (
	"time"

	"github.com/lubdub-io/lubdub/internal/cli/exit"
	"github.com/lubdub-io/lubdub/internal/cli/session"
	"github.com/lubdub-io/lubdub/internal/cli/top/tui"
)

type Command struct {
	Every         time.Duration `default:"1s" help:"How often to refresh, 200ms at least."`
	session.Flags `embed:""`
}

func (*Command) Help() string {
	return "Shows workers, tasks, queues and machines live, below the findings about the deployment. 1 to 4 or tab change the view, arrows " +
		"move, < and > sort, ! reverses the order, / filters, enter explains the chosen row, and letters act on it after a confirmation."
}

func (c *Command) Run(env *session.Env) error {
	if !session.IsTerminal(env.Stdout) || !session.IsTerminal(env.Stdin) {
		return exit.Misusef("top needs a terminal; `lubdub status` works without one")
	}
	s, err := c.Open(env)
	if err != nil {
		return err
	}
	t := &source{s: s}
	return tui.Run(env.Context, tui.Options{
		Source: t, Views: views, Every: max(c.Every, 200*time.Millisecond), In: env.Stdin, Out: env.Stdout, Env: env.Environ,
	})
}
