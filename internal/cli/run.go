package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/lubdub-io/lubdub/internal/cli/output"
	"github.com/lubdub-io/lubdub/sdk/go/client"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

var runs = &kind[v1.Run]{
	noun: "run", path: "/v1/runs", entries: "runs", id: func(r *v1.Run) string { return r.RunID },
	columns: append([]column[v1.Run]{
		{name: "RUN", cell: func(r *v1.Run, _ time.Time) output.Cell { return output.Text(r.RunID) }},
		{name: "TASKS", cell: func(r *v1.Run, _ time.Time) output.Cell { return output.Number(r.TotalCount) }},
	}, runStates()...)}

func runStates() (all []column[v1.Run]) {
	for _, state := range v1.States {
		all = append(all, column[v1.Run]{name: string(state), cell: func(r *v1.Run, _ time.Time) output.Cell {
			return output.Number(r.Counts[state])
		}})
	}
	return all
}

type runLs struct {
	ID      string `arg:"" name:"id" help:"Run."`
	State   string `predictor:"state" placeholder:"STATE" help:"State, or several with commas."`
	Listing `embed:""`
	Common  `embed:""`
}

func (c *runLs) Run(env *Env) error {
	s, err := c.open(env)
	if err != nil {
		return err
	}
	return tasks.list(s, c.Listing, query("runId", runs.named(c.ID), "state", strings.ToUpper(c.State)))
}

type runGet struct {
	Runs   []string `arg:"" name:"id" help:"Runs."`
	Common `embed:""`
}

func (c *runGet) Run(env *Env) error { return runs.get(env, &c.Common, c.Runs) }

type runCancel struct {
	ID        string         `arg:"" name:"id" help:"Run."`
	Grace     *time.Duration `placeholder:"DURATION" help:"How long workers have to stop; 0s ends them now. Without it, as each task says."`
	Explained `embed:""`
	Acting    `embed:""`
	Common    `embed:""`
}

func (c *runCancel) Run(env *Env) error {
	s, err := c.open(env)
	if err != nil {
		return err
	}
	run, err := runs.one(env.Context, s, c.ID)
	if err != nil {
		return err
	}
	what := fmt.Sprintf("cancel %s of run %s", output.Count(unfinished(run.T), "task"), c.ID)
	if c.DryRun {
		return s.counted(run.raw, "This would %s.", what)
	}
	if unfinished(run.T) > 1 {
		if err := s.agreed(c.Acting, what); err != nil {
			return err
		}
	}
	return onEach(s, runs, []string{c.ID}, func(ctx context.Context, id string) (json.RawMessage, *v1.Run, error) {
		body := v1.CancelRequest{Reason: c.Reason, GracePeriodMs: milliseconds(c.Grace)}
		if _, _, err := post[struct{}](ctx, s, runs.at(id)+"/cancel", body); err != nil {
			return nil, nil, err
		}
		return get[v1.Run](ctx, s, runs.at(id), nil)
	})
}

func unfinished(r *v1.Run) int {
	return r.Counts[v1.Queued] + r.Counts[v1.Dispatched] + r.Counts[v1.Running]
}

type runWait struct {
	ID     string        `arg:"" name:"id" help:"Run."`
	Within time.Duration `placeholder:"DURATION" help:"How long to wait at most; without it for ever."`
	Common `embed:""`
}

func (c *runWait) Help() string {
	return "Exits with 0 when all have SUCCEEDED, and with 1 when one has not or the time is over."
}

func (c *runWait) Run(env *Env) error {
	s, err := c.open(env)
	if err != nil {
		return err
	}
	ctx := env.Context
	if c.Within > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, c.Within)
		defer cancel()
	}
	for down := false; ; {
		run, err := runs.one(ctx, s, c.ID)
		switch {
		case errors.Is(ctx.Err(), context.DeadlineExceeded):
			return fmt.Errorf("timed out: some tasks of run %s have not ended", c.ID)
		case ctx.Err() != nil:
			return errors.New("interrupted; the run continues")
		case err != nil && ExitCode(err) != ExitUnavailable:
			return err
		case err != nil && !down:
			s.note("%v; still trying", err)
		case err == nil && unfinished(run.T) == 0:
			if err := runs.show(s, run.raw, run.T); err != nil || run.T.Counts[v1.Succeeded] == run.T.TotalCount {
				return err
			}
			return errFailed
		}
		down = err != nil
		select {
		case <-ctx.Done():
		case <-time.After(time.Second):
		}
	}
}

type runTail struct {
	ID     string `arg:"" name:"id" help:"Run."`
	After  string `placeholder:"WHEN" help:"From when on: a cursor, a time, or how long ago; without it from now."`
	Common `embed:""`
}

func (c *runTail) Run(env *Env) error {
	return runs.tail(env, &c.Common, c.ID, client.EventQuery{RunID: runs.named(c.ID)}, c.After)
}
