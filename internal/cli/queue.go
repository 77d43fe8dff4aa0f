package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/lubdub-io/lubdub/internal/cli/output"
	"github.com/lubdub-io/lubdub/internal/suggest"
	"github.com/lubdub-io/lubdub/sdk/go/client"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

var queues = &kind[v1.Queue]{
	noun: "queue", path: "/v1/queues", entries: "queues", id: func(q *v1.Queue) string { return q.Queue }, unpaged: true,
	columns: []column[v1.Queue]{
		{name: "QUEUE", cell: func(q *v1.Queue, _ time.Time) output.Cell { return output.Text(q.Queue) }},
		{name: "PAUSED", cell: func(q *v1.Queue, _ time.Time) output.Cell { return output.Flag(q.Paused) }},
		{name: "WAITING", cell: func(q *v1.Queue, _ time.Time) output.Cell { return output.Number(q.Depth) }},
		{name: "OLDEST", passing: true, cell: func(q *v1.Queue, _ time.Time) output.Cell {
			if q.OldestWaitMs == nil {
				return output.Cell{}
			}
			return output.Text(output.Milliseconds(*q.OldestWaitMs))
		}},
		{name: "RUNNING", cell: func(q *v1.Queue, _ time.Time) output.Cell { return output.Number(q.Running) }},
		{name: "ONLINE", cell: func(q *v1.Queue, _ time.Time) output.Cell { return output.Number(q.Workers.Online) }},
		{name: "DRAINING", cell: func(q *v1.Queue, _ time.Time) output.Cell { return output.Number(q.Workers.Draining) }},
		{name: "STUCK", cell: func(q *v1.Queue, _ time.Time) output.Cell {
			n := unrunnable(q)
			if n == 0 {
				return output.Number(n)
			}
			return output.Cell{Text: fmt.Sprint(n), Mood: output.Bad}
		}},
		{name: "TYPES", wide: true, cell: func(q *v1.Queue, _ time.Time) output.Cell {
			var all []string
			for _, t := range q.Types {
				all = append(all, fmt.Sprintf("%s=%d", output.Optional(t.Type).Text, t.Depth))
			}
			return output.Text(strings.Join(all, ","))
		}},
	}}

// unrunnable is how many tasks of a queue the API says that no worker can run.
func unrunnable(q *v1.Queue) (n int) {
	for _, t := range q.Types {
		n += t.Unrunnable
	}
	return n
}

type queueLs struct {
	Listing `embed:""`
	Common  `embed:""`
}

func (c *queueLs) Run(env *Env) error {
	s, err := c.open(env)
	if err != nil {
		return err
	}
	return queues.list(s, c.Listing, query())
}

type queueGet struct {
	Queues []string `arg:"" predictor:"queue" name:"queue" help:"Queues."`
	Common `embed:""`
}

func (c *queueGet) Run(env *Env) error { return queues.get(env, &c.Common, c.Queues) }

type queuePause struct {
	Queues []string `arg:"" predictor:"queue" name:"queue" help:"Queues."`
	Common `embed:""`
}

func (c *queuePause) Run(env *Env) error {
	s, err := c.open(env)
	if err != nil {
		return err
	}
	return onEach(s, queues, c.Queues, func(ctx context.Context, id string) (json.RawMessage, *v1.Queue, error) {
		raw, q, err := post[v1.Queue](ctx, s, queues.at(id)+"/pause", nil)
		if err == nil && q.Created {
			noteNewQueue(ctx, s, q.Queue)
		}
		return raw, q, err
	})
}

// noteCreated tells that nothing was known of a queue before it was paused: its name may be a mistake.
func noteNewQueue(ctx context.Context, s *session, queue string) {
	known, _ := queues.ids(ctx, s) // without them there is no suggestion
	known = slices.DeleteFunc(known, func(other string) bool { return other == queue })
	s.note("Nothing was known of queue %s before%s; `lubdub queue resume %s` takes the pause back.", queue,
		suggest.DidYouMean(queue, known), queue)
}

type queueResume struct {
	Queues []string `arg:"" predictor:"queue" name:"queue" help:"Queues."`
	Common `embed:""`
}

// Run asks for the queue first: the server lets any go on, also one whose name is a mistake.
func (c *queueResume) Run(env *Env) error {
	s, err := c.open(env)
	if err != nil {
		return err
	}
	return onEach(s, queues, c.Queues, func(ctx context.Context, id string) (json.RawMessage, *v1.Queue, error) {
		if raw, q, err := get[v1.Queue](ctx, s, queues.at(id), nil); err != nil {
			return raw, q, err
		}
		return post[v1.Queue](ctx, s, queues.at(id)+"/resume", nil)
	})
}

type queueTail struct {
	Queue  string `arg:"" predictor:"queue" name:"queue" help:"Queue."`
	After  string `placeholder:"WHEN" help:"From when on: a cursor, a time, or how long ago; without it from now."`
	Common `embed:""`
}

func (c *queueTail) Run(env *Env) error {
	return queues.tail(env, &c.Common, c.Queue, client.EventQuery{Queue: queues.named(c.Queue)}, c.After)
}
