package task

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/lubdub-io/lubdub/internal/cli/exit"
	"github.com/lubdub-io/lubdub/internal/cli/resource"
	"github.com/lubdub-io/lubdub/internal/cli/session"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

type Wait struct {
	Tasks         []string      `arg:"" predictor:"task" name:"id" help:"Tasks."`
	For           string        `placeholder:"STATE" help:"State to wait for, instead of any end; several with commas."`
	Within        time.Duration `placeholder:"DURATION" help:"How long to wait at most; without it for ever."`
	session.Flags `embed:""`
}

func (c *Wait) Help() string {
	return "Exits with 0 when all have SUCCEEDED, or are in a state of --for, and with 1 when one has ended otherwise or the time is over."
}

func (c *Wait) Run(env *session.Env) error {
	s, err := c.Open(env)
	if err != nil {
		return err
	}
	var states []string
	for state := range strings.SplitSeq(strings.ToUpper(c.For), ",") {
		if state == "" {
			continue
		}
		if !slices.Contains(v1.States, v1.State(state)) {
			return exit.Misusef("--for %s is no state of a task; there are %v", state, v1.States)
		}
		states = append(states, state)
	}
	return waitFor(s, c.Tasks, states, c.Within)
}

// waitFor waits for tasks and shows how each has ended.
func waitFor(s *session.Session, ids, states []string, within time.Duration) error {
	ctx := s.Env.Context
	if within > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, within)
		defer cancel()
	}
	rows, bad := resource.Tasks.Rows(s), false
	for _, id := range ids {
		e, err := await(ctx, s, id, func(t *v1.Task) bool { return ended(t) || slices.Contains(states, string(t.State)) })
		if err != nil {
			return err
		}
		if err := resource.Tasks.ShowRows(s, rows, e); err != nil {
			return err
		}
		if states == nil {
			bad = bad || e.Value.State != v1.Succeeded
		} else {
			bad = bad || !slices.Contains(states, string(e.Value.State))
		}
	}
	if bad {
		return exit.ErrFailed
	}
	return nil
}

func ended(t *v1.Task) bool {
	return t.State == v1.Succeeded || t.State == v1.Failed || t.State == v1.Cancelled
}

// await asks for a task until it is as it should be. A server that does not answer is asked again.
func await(ctx context.Context, s *session.Session, id string, enough func(*v1.Task) bool) (resource.Entry[v1.Task], error) {
	pause, down := 200*time.Millisecond, false
	for {
		e, err := resource.Tasks.Find(ctx, s, id)
		switch {
		case errors.Is(ctx.Err(), context.DeadlineExceeded):
			return e, fmt.Errorf("timed out: task %s did not reach the requested state", id)
		case ctx.Err() != nil:
			return e, errors.New("interrupted; the task continues")
		case err != nil && exit.Code(err) != exit.Unavailable:
			return e, err
		case err != nil && !down:
			s.Note("%v; still trying", err)
		case err == nil && enough(e.Value):
			return e, nil
		}
		down = err != nil
		select {
		case <-ctx.Done():
		case <-time.After(pause):
			pause = min(pause*3/2, resource.WatchInterval)
		}
	}
}

type Watch struct {
	Task          string `arg:"" predictor:"task" name:"id" help:"Task."`
	session.Flags `embed:""`
}

func (c *Watch) Run(env *session.Env) error {
	s, err := c.Open(env)
	if err != nil {
		return err
	}
	rows, last := resource.Tasks.Rows(s), ""
	var failed error
	_, err = await(env.Context, s, c.Task, func(t *v1.Task) bool {
		e := resource.Entry[v1.Task]{Value: t}
		now := resource.Tasks.Fingerprint(s, e) + string(t.ProgressPct)
		if now != last {
			last = now
			if e.Raw, failed = json.Marshal(t); failed == nil {
				failed = resource.Tasks.ShowRows(s, rows, e)
			}
		}
		return ended(t) || failed != nil
	})
	if env.Context.Err() != nil {
		return nil
	}
	return errors.Join(err, failed)
}
