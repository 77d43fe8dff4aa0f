package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/lubdub-io/lubdub/internal/cli/output"
	"github.com/lubdub-io/lubdub/sdk/go/client"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

var schedules = &kind[v1.Schedule]{
	noun: "schedule", path: "/v1/schedules", entries: "schedules", id: func(c *v1.Schedule) string { return c.ScheduleID },
	columns: []column[v1.Schedule]{
		{name: "SCHEDULE", cell: func(c *v1.Schedule, _ time.Time) output.Cell { return output.Text(c.ScheduleID) }},
		{name: "CRON", cell: func(c *v1.Schedule, _ time.Time) output.Cell { return output.Text(c.Cron) }},
		{name: "PAUSED", cell: func(c *v1.Schedule, _ time.Time) output.Cell { return output.Flag(c.Paused) }},
		{name: "QUEUE", cell: func(c *v1.Schedule, _ time.Time) output.Cell {
			if c.Task == nil {
				return output.Cell{}
			}
			return output.Text(c.Task.Queue)
		}},
		{name: "LAST", passing: true, cell: func(c *v1.Schedule, now time.Time) output.Cell {
			if c.Last == c.CreatedAt { // nothing has fired yet
				return output.Cell{}
			}
			return output.Age(c.Last.Time, now)
		}},
		{name: "NEXT", passing: true, cell: func(c *v1.Schedule, now time.Time) output.Cell {
			if c.Next.IsZero() {
				return output.Cell{}
			}
			return output.Text(output.Duration(c.Next.Sub(now)))
		}},
		{name: "FIRED", cell: func(c *v1.Schedule, _ time.Time) output.Cell { return output.Number(c.Fired) }},
		{name: "SKIPPED", cell: func(c *v1.Schedule, _ time.Time) output.Cell { return output.Number(c.Skipped) }},
		{name: "PENDING", cell: func(c *v1.Schedule, _ time.Time) output.Cell { return output.Number(c.Pending) }},
		{name: "OUTCOME", cell: func(c *v1.Schedule, _ time.Time) output.Cell {
			if len(c.Fires) == 0 {
				return output.Cell{}
			}
			return output.Word(c.Fires[0].Outcome)
		}},
		{name: "OVERLAP", wide: true, cell: func(c *v1.Schedule, _ time.Time) output.Cell { return output.Text(string(c.Overlap)) }},
	}}

type scheduleLs struct {
	Listing `embed:""`
	Common  `embed:""`
}

func (c *scheduleLs) Run(env *Env) error {
	s, err := c.open(env)
	if err != nil {
		return err
	}
	return schedules.list(s, c.Listing, query())
}

type scheduleGet struct {
	Schedules []string `arg:"" predictor:"schedule" name:"id" help:"Schedules."`
	Common    `embed:""`
}

func (c *scheduleGet) Run(env *Env) error { return schedules.get(env, &c.Common, c.Schedules) }

type scheduleCreate struct {
	File   string `short:"f" required:"" placeholder:"FILE" help:"The body, as JSON; - is standard input."`
	Common `embed:""`
}

func (c *scheduleCreate) Run(env *Env) error {
	return schedules.send(env, &c.Common, http.MethodPost, schedules.path, c.File)
}

type scheduleSet struct {
	ID     string `arg:"" predictor:"schedule" name:"id" help:"Schedule."`
	File   string `short:"f" required:"" placeholder:"FILE" help:"The body of PATCH /v1/schedules/{scheduleId}, as JSON; - is standard input."`
	Common `embed:""`
}

func (c *scheduleSet) Run(env *Env) error {
	return schedules.send(env, &c.Common, http.MethodPatch, schedules.at(c.ID), c.File)
}

// send sends a file and shows what came of it.
func (k *kind[T]) send(env *Env, c *Common, method, path, file string) error {
	s, err := c.open(env)
	if err != nil {
		return err
	}
	var body json.RawMessage
	if err := readJSON(env, file, &body); err != nil {
		return err
	}
	raw, made, err := call[T](env.Context, s, client.Request{Method: method, Path: path, Body: body, Once: method == http.MethodPost})
	if err != nil {
		return err
	}
	return k.show(s, raw, made)
}

type scheduleRm struct {
	Schedules []string `arg:"" predictor:"schedule" name:"id" help:"Schedules."`
	Common    `embed:""`
}

func (c *scheduleRm) Run(env *Env) error { return schedules.remove(env, &c.Common, c.Schedules) }

// remove deletes those that were named.
func (k *kind[T]) remove(env *Env, c *Common, ids []string) error {
	s, err := c.open(env)
	if err != nil {
		return err
	}
	for _, id := range ids {
		raw, err := s.do(env.Context, client.Request{Method: http.MethodDelete, Path: k.at(id)})
		if err != nil {
			return k.nearest(env.Context, s, id, err)
		}
		if err := s.counted(raw, "%s %s is deleted.", k.noun, id); err != nil {
			return err
		}
	}
	return nil
}

type schedulePause struct {
	Schedules []string `arg:"" predictor:"schedule" name:"id" help:"Schedules."`
	Common    `embed:""`
}

func (c *schedulePause) Run(env *Env) error {
	return postEach(env, &c.Common, c.Schedules, "pause")
}

type scheduleResume struct {
	Schedules []string `arg:"" predictor:"schedule" name:"id" help:"Schedules."`
	Common    `embed:""`
}

func (c *scheduleResume) Run(env *Env) error {
	return postEach(env, &c.Common, c.Schedules, "resume")
}

type scheduleFire struct {
	ID     string `arg:"" predictor:"schedule" name:"id" help:"Schedule."`
	Common `embed:""`
}

func (c *scheduleFire) Run(env *Env) error {
	s, err := c.open(env)
	if err != nil {
		return err
	}
	raw, fired, err := call[v1.FiredResponse](env.Context, s, client.Request{
		Method: http.MethodPost, Path: schedules.at(c.ID) + "/fire", Body: struct{}{}, Once: true,
	})
	if err != nil {
		return schedules.nearest(env.Context, s, c.ID, err)
	}
	return s.counted(raw, "Fired: created task %s.", fired.TaskID)
}

type scheduleNext struct {
	ID     string `arg:"" predictor:"schedule" name:"id" help:"Schedule."`
	Count  int    `default:"10" help:"How many."`
	Common `embed:""`
}

func (c *scheduleNext) Run(env *Env) error {
	s, err := c.open(env)
	if err != nil {
		return err
	}
	raw, next, err := get[v1.NextFires](env.Context, s, schedules.at(c.ID)+"/next", query("count", strconv.Itoa(c.Count)))
	if err != nil {
		return schedules.nearest(env.Context, s, c.ID, err)
	}
	if !s.Format.ForPeople() {
		return s.counted(raw, "")
	}
	for _, at := range next.Next {
		if _, err := fmt.Fprintf(s.W, "%s  in %s\n", timeText(at), output.Duration(at.Sub(s.now()))); err != nil {
			return err
		}
	}
	return nil
}

type scheduleBackfill struct {
	ID     string `arg:"" predictor:"schedule" name:"id" help:"Schedule."`
	From   string `required:"" placeholder:"WHEN" help:"After when: a time, or how long ago."`
	To     string `required:"" placeholder:"WHEN" help:"Until when: a time, or how long ago."`
	Common `embed:""`
}

func (c *scheduleBackfill) Run(env *Env) error {
	s, err := c.open(env)
	if err != nil {
		return err
	}
	from, err := s.moment("from", c.From)
	if err != nil {
		return err
	}
	to, err := s.moment("to", c.To)
	if err != nil {
		return err
	}
	return c.ask(env.Context, s, v1.BackfillRequest{From: from, To: to})
}

func (c *scheduleBackfill) ask(ctx context.Context, s *session, body v1.BackfillRequest) error {
	raw, asked, err := post[v1.AskedFires](ctx, s, schedules.at(c.ID)+"/backfill", body)
	if err != nil {
		return schedules.nearest(ctx, s, c.ID, err)
	}
	return s.counted(raw, "%s made up for; %d older ones are more than maxCatchup.", output.Count(len(asked.Fires), "fire"), asked.Skipped)
}

// postEach posts a verb to each of the schedules that were named.
func postEach(env *Env, c *Common, ids []string, verb string) error {
	s, err := c.open(env)
	if err != nil {
		return err
	}
	return onEach(s, schedules, ids, func(ctx context.Context, id string) (json.RawMessage, *v1.Schedule, error) {
		return post[v1.Schedule](ctx, s, schedules.at(id)+"/"+verb, nil)
	})
}
