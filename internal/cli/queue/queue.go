// Package queue has the commands about queues.
package queue

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/lubdub-io/lubdub/internal/cli/resource"
	"github.com/lubdub-io/lubdub/internal/cli/session"
	"github.com/lubdub-io/lubdub/internal/suggest"
	"github.com/lubdub-io/lubdub/sdk/go/client"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

type List struct {
	resource.ListFlags `embed:""`
	session.Flags      `embed:""`
}

func (c *List) Run(env *session.Env) error {
	return resource.Queues.ListAll(env, &c.Flags, c.ListFlags)
}

type Get struct {
	Queues        []string `arg:"" predictor:"queue" name:"queue" help:"Queues."`
	session.Flags `embed:""`
}

func (c *Get) Run(env *session.Env) error { return resource.Queues.Get(env, &c.Flags, c.Queues) }

type Pause struct {
	Queues              []string `arg:"" predictor:"queue" name:"queue" help:"Queues."`
	session.ReasonFlags `embed:""`
	session.Flags       `embed:""`
}

func (c *Pause) Run(env *session.Env) error {
	s, err := c.Open(env)
	if err != nil {
		return err
	}
	return resource.OnEach(s, resource.Queues, c.Queues, func(ctx context.Context, id string) (json.RawMessage, *v1.Queue, error) {
		raw, q, err := session.Post[v1.Queue](ctx, s, resource.Queues.PathOf(id)+"/pause", v1.PauseQueueRequest{Reason: c.Reason})
		if err == nil && q.Created {
			noteNewQueue(ctx, s, q.Queue)
		}
		return raw, q, err
	})
}

// noteNewQueue notes that a queue was not known before it was paused: its name may be a mistake.
func noteNewQueue(ctx context.Context, s *session.Session, queue string) {
	known, _ := resource.Queues.IDs(ctx, s) // without them there is no suggestion
	known = slices.DeleteFunc(known, func(other string) bool { return other == queue })
	s.Note("Nothing was known of queue %s before%s; `lubdub queue resume %s` takes the pause back.", queue,
		suggest.DidYouMean(queue, known), queue)
}

type Resume struct {
	Queues        []string `arg:"" predictor:"queue" name:"queue" help:"Queues."`
	session.Flags `embed:""`
}

// Run asks for the queue first: the server resumes any, also one whose name is a mistake.
func (c *Resume) Run(env *session.Env) error {
	s, err := c.Open(env)
	if err != nil {
		return err
	}
	return resource.OnEach(s, resource.Queues, c.Queues, func(ctx context.Context, id string) (json.RawMessage, *v1.Queue, error) {
		if raw, q, err := session.Get[v1.Queue](ctx, s, resource.Queues.PathOf(id), nil); err != nil {
			return raw, q, err
		}
		return session.Post[v1.Queue](ctx, s, resource.Queues.PathOf(id)+"/resume", nil)
	})
}

type Tail struct {
	Queue         string `arg:"" predictor:"queue" name:"queue" help:"Queue."`
	After         string `placeholder:"WHEN" help:"Start: a cursor, a time, or how long ago. Default: now."`
	session.Flags `embed:""`
}

func (c *Tail) Run(env *session.Env) error {
	return resource.Queues.Tail(env, &c.Flags, c.Queue, client.EventQuery{Queue: resource.Queues.BareID(c.Queue)}, c.After)
}
