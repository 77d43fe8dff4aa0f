// Package schedule has the commands about schedules.
package schedule

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/lubdub-io/lubdub/internal/cli/output"
	"github.com/lubdub-io/lubdub/internal/cli/resource"
	"github.com/lubdub-io/lubdub/internal/cli/session"
	"github.com/lubdub-io/lubdub/sdk/go/client"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

var Schedules = &resource.Kind[v1.Schedule]{
	Noun: "schedule", Path: "/v1/schedules", Entries: "schedules", ID: func(c *v1.Schedule) string { return c.ScheduleID },
	Columns: []resource.Column[v1.Schedule]{
		{Name: "SCHEDULE", Cell: func(c *v1.Schedule, _ time.Time) output.Cell { return output.Text(c.ScheduleID) }},
		{Name: "CRON", Cell: func(c *v1.Schedule, _ time.Time) output.Cell { return output.Text(c.Cron) }},
		{Name: "PAUSED", Cell: func(c *v1.Schedule, _ time.Time) output.Cell { return output.Flag(c.Paused) }},
		{Name: "QUEUE", Cell: func(c *v1.Schedule, _ time.Time) output.Cell {
			if c.Task == nil {
				return output.Cell{}
			}
			return output.Text(c.Task.Queue)
		}},
		{Name: "LAST", Volatile: true, Cell: func(c *v1.Schedule, now time.Time) output.Cell {
			if c.Last == c.CreatedAt { // nothing has fired yet
				return output.Cell{}
			}
			return output.Age(c.Last.Time, now)
		}},
		{Name: "NEXT", Volatile: true, Cell: func(c *v1.Schedule, now time.Time) output.Cell {
			if c.Next.IsZero() {
				return output.Cell{}
			}
			return output.Text(output.Duration(c.Next.Sub(now)))
		}},
		{Name: "FIRED", Cell: func(c *v1.Schedule, _ time.Time) output.Cell { return output.Number(c.Fired) }},
		{Name: "SKIPPED", Cell: func(c *v1.Schedule, _ time.Time) output.Cell { return output.Number(c.Skipped) }},
		{Name: "PENDING", Cell: func(c *v1.Schedule, _ time.Time) output.Cell { return output.Number(c.Pending) }},
		{Name: "OUTCOME", Cell: func(c *v1.Schedule, _ time.Time) output.Cell {
			if len(c.Fires) == 0 {
				return output.Cell{}
			}
			return output.Word(c.Fires[0].Outcome)
		}},
		{Name: "OVERLAP", Wide: true, Cell: func(c *v1.Schedule, _ time.Time) output.Cell { return output.Text(string(c.Overlap)) }},
	}}

type List struct {
	resource.ListFlags `embed:""`
	session.Flags      `embed:""`
}

func (c *List) Run(env *session.Env) error { return Schedules.ListAll(env, &c.Flags, c.ListFlags) }

type Get struct {
	Schedules     []string `arg:"" predictor:"schedule" name:"id" help:"Schedules."`
	session.Flags `embed:""`
}

func (c *Get) Run(env *session.Env) error { return Schedules.Get(env, &c.Flags, c.Schedules) }

type Create struct {
	File          string `short:"f" required:"" placeholder:"FILE" help:"The body, as JSON; - is standard input."`
	session.Flags `embed:""`
}

func (c *Create) Run(env *session.Env) error {
	return Schedules.Send(env, &c.Flags, http.MethodPost, Schedules.Path, c.File)
}

type Set struct {
	ID            string `arg:"" predictor:"schedule" name:"id" help:"Schedule."`
	File          string `short:"f" required:"" placeholder:"FILE" help:"The body of PATCH /v1/schedules/{scheduleId}, as JSON; - is standard input."`
	session.Flags `embed:""`
}

func (c *Set) Run(env *session.Env) error {
	return Schedules.Send(env, &c.Flags, http.MethodPatch, Schedules.PathOf(c.ID), c.File)
}

type Remove struct {
	Schedules     []string `arg:"" predictor:"schedule" name:"id" help:"Schedules."`
	session.Flags `embed:""`
}

func (c *Remove) Run(env *session.Env) error { return Schedules.Remove(env, &c.Flags, c.Schedules) }

type Pause struct {
	Schedules     []string `arg:"" predictor:"schedule" name:"id" help:"Schedules."`
	session.Flags `embed:""`
}

func (c *Pause) Run(env *session.Env) error {
	return postEach(env, &c.Flags, c.Schedules, "pause")
}

type Resume struct {
	Schedules     []string `arg:"" predictor:"schedule" name:"id" help:"Schedules."`
	session.Flags `embed:""`
}

func (c *Resume) Run(env *session.Env) error {
	return postEach(env, &c.Flags, c.Schedules, "resume")
}

type Fire struct {
	ID            string `arg:"" predictor:"schedule" name:"id" help:"Schedule."`
	session.Flags `embed:""`
}

func (c *Fire) Run(env *session.Env) error {
	s, err := c.Open(env)
	if err != nil {
		return err
	}
	raw, fired, err := session.Call[v1.FiredResponse](env.Context, s, client.Request{
		Method: http.MethodPost, Path: Schedules.PathOf(c.ID) + "/fire", Body: struct{}{}, Once: true,
	})
	if err != nil {
		return Schedules.Suggest(env.Context, s, c.ID, err)
	}
	return s.ShowResult(raw, "Fired: created task %s.", fired.TaskID)
}

type Next struct {
	ID            string `arg:"" predictor:"schedule" name:"id" help:"Schedule."`
	Count         int    `default:"10" help:"How many."`
	Cron          string `placeholder:"EXPRESSION" help:"Show those of this cron expression instead. The schedule need not exist."`
	session.Flags `embed:""`
}

func (c *Next) Run(env *session.Env) error {
	s, err := c.Open(env)
	if err != nil {
		return err
	}
	raw, next, err := session.Get[v1.NextFires](env.Context, s, Schedules.PathOf(c.ID)+"/next",
		resource.Query("count", strconv.Itoa(c.Count), "cron", c.Cron))
	if err != nil {
		return Schedules.Suggest(env.Context, s, c.ID, err)
	}
	if !s.Format.ForPeople() {
		return s.ShowAnswer(raw)
	}
	for _, at := range next.Next {
		if _, err := fmt.Fprintf(s.W, "%s  in %s\n", session.FormatTime(at), output.Duration(at.Sub(s.Now()))); err != nil {
			return err
		}
	}
	return nil
}

type Backfill struct {
	ID            string `arg:"" predictor:"schedule" name:"id" help:"Schedule."`
	From          string `required:"" placeholder:"WHEN" help:"Start: a time, or how long ago."`
	To            string `required:"" placeholder:"WHEN" help:"End: a time, or how long ago."`
	session.Flags `embed:""`
}

func (c *Backfill) Run(env *session.Env) error {
	s, err := c.Open(env)
	if err != nil {
		return err
	}
	from, err := s.ParseTime("from", c.From)
	if err != nil {
		return err
	}
	to, err := s.ParseTime("to", c.To)
	if err != nil {
		return err
	}
	raw, made, err := session.Post[v1.AskedFires](env.Context, s, Schedules.PathOf(c.ID)+"/backfill", v1.BackfillRequest{From: from, To: to})
	if err != nil {
		return Schedules.Suggest(env.Context, s, c.ID, err)
	}
	return s.ShowResult(raw, "%s made up for; %d older ones are more than maxCatchup.", output.Count(len(made.Fires), "fire"), made.Skipped)
}

// postEach posts a verb to each of the schedules that were named.
func postEach(env *session.Env, c *session.Flags, ids []string, verb string) error {
	s, err := c.Open(env)
	if err != nil {
		return err
	}
	return resource.OnEach(s, Schedules, ids, func(ctx context.Context, id string) (json.RawMessage, *v1.Schedule, error) {
		return session.Post[v1.Schedule](ctx, s, Schedules.PathOf(id)+"/"+verb, nil)
	})
}
