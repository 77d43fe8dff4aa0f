// Package worker has the commands about workers and machines.
package worker

import (
	"context"
	"encoding/json"

	"github.com/lubdub-io/lubdub/internal/cli/resource"
	"github.com/lubdub-io/lubdub/internal/cli/session"
	"github.com/lubdub-io/lubdub/sdk/go/client"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

type Get struct {
	Workers       []string `arg:"" predictor:"worker" name:"id" help:"Workers, by id or by name."`
	session.Flags `embed:""`
}

func (c *Get) Run(env *session.Env) error {
	s, err := c.Open(env)
	if err != nil {
		return err
	}
	return resource.OnEach(s, resource.Workers, c.Workers, func(ctx context.Context, id string) (json.RawMessage, *v1.Worker, error) {
		return resource.FindWorker(ctx, s, id)
	})
}

type Tail struct {
	Worker        string `arg:"" predictor:"worker" name:"id" help:"Worker."`
	After         string `placeholder:"WHEN" help:"Start: a cursor, a time, or how long ago. Default: now."`
	session.Flags `embed:""`
}

func (c *Tail) Run(env *session.Env) error {
	return resource.Workers.Tail(env, &c.Flags, c.Worker, client.EventQuery{WorkerID: resource.Workers.BareID(c.Worker)}, c.After)
}
