package task

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/lubdub-io/lubdub/internal/cli/exit"
	"github.com/lubdub-io/lubdub/internal/cli/output"
	"github.com/lubdub-io/lubdub/internal/cli/resource"
	"github.com/lubdub-io/lubdub/internal/cli/session"
	"github.com/lubdub-io/lubdub/sdk/go/client"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

var runs = &resource.Kind[v1.Run]{
	Noun: "run", Path: "/v1/runs", Entries: "runs", ID: func(r *v1.Run) string { return r.RunID },
	Columns: append([]resource.Column[v1.Run]{
		{Name: "RUN", Cell: func(r *v1.Run, _ time.Time) output.Cell { return output.Text(r.RunID) }},
		{Name: "TASKS", Cell: func(r *v1.Run, _ time.Time) output.Cell { return output.Number(r.TotalCount) }},
	}, runStates()...)}

func runStates() (all []resource.Column[v1.Run]) {
	for _, state := range v1.States {
		all = append(all, resource.Column[v1.Run]{Name: string(state), Cell: func(r *v1.Run, _ time.Time) output.Cell {
			return output.Number(r.Counts[state])
		}})
	}
	return all
}

type RunList struct {
	ID                 string `arg:"" name:"id" help:"Run."`
	State              string `predictor:"state" placeholder:"STATE" help:"One or more states, separated by commas."`
	resource.ListFlags `embed:""`
	session.Flags      `embed:""`
}

func (c *RunList) Run(env *session.Env) error {
	s, err := c.Open(env)
	if err != nil {
		return err
	}
	return resource.Tasks.List(s, c.ListFlags, resource.Query("runId", runs.BareID(c.ID), "state", strings.ToUpper(c.State)))
}

type RunGet struct {
	Runs          []string `arg:"" name:"id" help:"Runs."`
	session.Flags `embed:""`
}

func (c *RunGet) Run(env *session.Env) error { return runs.Get(env, &c.Flags, c.Runs) }

type RunCancel struct {
	ID                  string         `arg:"" name:"id" help:"Run."`
	Grace               *time.Duration `placeholder:"DURATION" help:"How long workers have to stop; 0s ends them now. Without it, the grace of each task applies."`
	session.ReasonFlags `embed:""`
	session.ActFlags    `embed:""`
	session.Flags       `embed:""`
}

func (c *RunCancel) Run(env *session.Env) error {
	s, err := c.Open(env)
	if err != nil {
		return err
	}
	run, err := runs.Find(env.Context, s, c.ID)
	if err != nil {
		return err
	}
	what := fmt.Sprintf("cancel %s of run %s", output.Count(unfinished(run.Value), "task"), c.ID)
	if c.DryRun {
		return s.ShowResult(run.Raw, "This would %s.", what)
	}
	if unfinished(run.Value) > 1 {
		if err := s.Confirm(c.ActFlags, what); err != nil {
			return err
		}
	}
	return resource.OnEach(s, runs, []string{c.ID}, func(ctx context.Context, id string) (json.RawMessage, *v1.Run, error) {
		body := v1.CancelRequest{Reason: c.Reason, GracePeriodMs: session.Milliseconds(c.Grace)}
		if _, _, err := session.Post[struct{}](ctx, s, runs.PathOf(id)+"/cancel", body); err != nil {
			return nil, nil, err
		}
		return session.Get[v1.Run](ctx, s, runs.PathOf(id), nil)
	})
}

func unfinished(r *v1.Run) int {
	return r.Counts[v1.Scheduled] + r.Counts[v1.Queued] + r.Counts[v1.Dispatched] + r.Counts[v1.Running]
}

type RunWait struct {
	ID            string        `arg:"" name:"id" help:"Run."`
	Within        time.Duration `placeholder:"DURATION" help:"Maximum time to wait. Default: no limit."`
	session.Flags `embed:""`
}

func (c *RunWait) Help() string {
	return "Exits with 0 when all have SUCCEEDED, and with 1 when one has not or the time is over."
}

func (c *RunWait) Run(env *session.Env) error {
	s, err := c.Open(env)
	if err != nil {
		return err
	}
	ctx, cancel := within(env.Context, c.Within)
	defer cancel()
	run, err := await(ctx, s, runs, c.ID, "some tasks of run "+c.ID+" have not ended", func(r *v1.Run) bool { return unfinished(r) == 0 })
	if err != nil {
		return err
	}
	if err := runs.Show(s, run.Raw, run.Value); err != nil || run.Value.Counts[v1.Succeeded] == run.Value.TotalCount {
		return err
	}
	return exit.ErrFailed
}

type RunTail struct {
	ID            string `arg:"" name:"id" help:"Run."`
	After         string `placeholder:"WHEN" help:"Start: a cursor, a time, or how long ago. Default: now."`
	session.Flags `embed:""`
}

func (c *RunTail) Run(env *session.Env) error {
	return runs.Tail(env, &c.Flags, c.ID, client.EventQuery{RunID: runs.BareID(c.ID)}, c.After)
}
