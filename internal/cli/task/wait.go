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
	For           string        `placeholder:"STATE" help:"State to wait for, instead of any final state; separate several with commas."`
	Within        time.Duration `placeholder:"DURATION" help:"Maximum time to wait. Default: no limit."`
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
func waitFor(s *session.Session, ids, states []string, limit time.Duration) error {
	ctx, cancel := within(s.Env.Context, limit)
	defer cancel()
	rows, bad := resource.Tasks.Rows(s), false
	for _, id := range ids {
		e, err := await(ctx, s, resource.Tasks, id, "task "+id+" did not reach the requested state", func(t *v1.Task) bool {
			return ended(t) || slices.Contains(states, string(t.State))
		})
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

// await asks for a task or run until it is as it should be; late is what has not happened in time.
func await[T any](
	ctx context.Context, s *session.Session, k *resource.Kind[T], id, late string, enough func(*T) bool,
) (e resource.Entry[T], err error) {
	err = s.Poll(ctx, 200*time.Millisecond, 2*time.Second, "trying", func() (done bool, err error) {
		e, err = k.Find(ctx, s, id)
		return err == nil && enough(e.Value), err
	})
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return e, fmt.Errorf("timed out: %s", late)
	case ctx.Err() != nil:
		return e, fmt.Errorf("interrupted; the %s continues", k.Noun)
	}
	return e, err
}

// within bounds a wait, unless d is 0.
func within(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	if d > 0 {
		return context.WithTimeout(ctx, d)
	}
	return context.WithCancel(ctx)
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
	_, err = await(env.Context, s, resource.Tasks, c.Task, "", func(t *v1.Task) bool {
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
