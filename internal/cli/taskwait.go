package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/lubdub-io/lubdub/sdk/go/client"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

type taskWait struct {
	Tasks  []string      `arg:"" predictor:"task" name:"id" help:"Tasks."`
	For    string        `placeholder:"STATE" help:"State to wait for, instead of any end; several with commas."`
	Within time.Duration `placeholder:"DURATION" help:"How long to wait at most; without it for ever."`
	Common `embed:""`
}

func (c *taskWait) Help() string {
	return "Exits with 0 when all have SUCCEEDED, or are in a state of --for, and with 1 when one has ended otherwise or the time is over."
}

func (c *taskWait) Run(env *Env) error {
	s, err := c.open(env)
	if err != nil {
		return err
	}
	var states []string
	for state := range strings.SplitSeq(strings.ToUpper(c.For), ",") {
		if state == "" {
			continue
		}
		if !slices.Contains(v1.States, v1.State(state)) {
			return misusef("--for %s is no state of a task; there are %v", state, v1.States)
		}
		states = append(states, state)
	}
	return waitFor(s, c.Tasks, states, c.Within)
}

// waitFor waits for tasks and shows how each has ended.
func waitFor(s *session, ids, states []string, within time.Duration) error {
	ctx := s.env.Context
	if within > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, within)
		defer cancel()
	}
	rows, bad := tasks.rows(s), false
	for _, id := range ids {
		e, err := await(ctx, s, id, func(t *v1.Task) bool { return ended(t) || slices.Contains(states, string(t.State)) })
		if err != nil {
			return err
		}
		if err := tasks.showMore(s, rows, e); err != nil {
			return err
		}
		if states == nil {
			bad = bad || e.T.State != v1.Succeeded
		} else {
			bad = bad || !slices.Contains(states, string(e.T.State))
		}
	}
	if bad {
		return errFailed
	}
	return nil
}

func ended(t *v1.Task) bool {
	return t.State == v1.Succeeded || t.State == v1.Failed || t.State == v1.Cancelled
}

// await asks for a task until it is as it should be. A server that does not answer is asked again.
func await(ctx context.Context, s *session, id string, enough func(*v1.Task) bool) (entry[v1.Task], error) {
	pause, down := 200*time.Millisecond, false
	for {
		e, err := tasks.one(ctx, s, id)
		switch {
		case errors.Is(ctx.Err(), context.DeadlineExceeded):
			return e, fmt.Errorf("timed out: task %s did not reach the requested state", id)
		case ctx.Err() != nil:
			return e, errors.New("interrupted; the task continues")
		case err != nil && ExitCode(err) != ExitUnavailable:
			return e, err
		case err != nil && !down:
			s.note("%v; still trying", err)
		case err == nil && enough(e.T):
			return e, nil
		}
		down = err != nil
		select {
		case <-ctx.Done():
		case <-time.After(pause):
			pause = min(pause*3/2, between)
		}
	}
}

type taskWatch struct {
	Task   string `arg:"" predictor:"task" name:"id" help:"Task."`
	Common `embed:""`
}

func (c *taskWatch) Run(env *Env) error {
	s, err := c.open(env)
	if err != nil {
		return err
	}
	rows, last := tasks.rows(s), ""
	var failed error
	_, err = await(env.Context, s, c.Task, func(t *v1.Task) bool {
		e := entry[v1.Task]{T: t}
		now := tasks.print(s, e) + string(t.ProgressPct)
		if now != last {
			last = now
			if e.raw, failed = json.Marshal(t); failed == nil {
				failed = tasks.showMore(s, rows, e)
			}
		}
		return ended(t) || failed != nil
	})
	if env.Context.Err() != nil {
		return nil
	}
	return errors.Join(err, failed)
}

type taskTail struct {
	Task   string `arg:"" predictor:"task" name:"id" help:"Task."`
	After  string `placeholder:"WHEN" help:"From when on: a cursor, a time, or how long ago; without it from now."`
	Common `embed:""`
}

func (c *taskTail) Run(env *Env) error {
	return tasks.tail(env, &c.Common, c.Task, client.EventQuery{Subject: tasks.named(c.Task)}, c.After)
}
