package cli

import (
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/lubdub-io/lubdub/internal/cli/output"
	"github.com/lubdub-io/lubdub/sdk/go/client"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

var events = &kind[v1.Event]{
	noun: "event", path: "/v1/events", entries: "events", id: func(e *v1.Event) string { return e.ID },
	columns: []column[v1.Event]{
		{name: "TIME", cell: func(e *v1.Event, _ time.Time) output.Cell { return output.Text(timeText(v1.At(e.Time.Time))) }},
		{name: "TYPE", cell: func(e *v1.Event, _ time.Time) output.Cell { return output.Cell{Text: e.Type, Mood: eventMoods[e.Type]} }},
		{name: "SUBJECT", cell: func(e *v1.Event, _ time.Time) output.Cell { return output.Text(e.Subject) }},
		{name: "TRY", cell: func(e *v1.Event, _ time.Time) output.Cell {
			if e.Attempt == 0 {
				return output.Cell{}
			}
			return output.Number(e.Attempt)
		}},
		{name: "CAUSE", cell: func(e *v1.Event, _ time.Time) output.Cell { return output.Text(e.Cause) }},
		{name: "WORKER", cell: func(e *v1.Event, _ time.Time) output.Cell { return output.Text(e.WorkerID) }},
		{name: "MACHINE", cell: func(e *v1.Event, _ time.Time) output.Cell { return output.Text(e.MachineID) }},
		{name: "BY", cell: func(e *v1.Event, _ time.Time) output.Cell { return output.Text(e.By) }},
		{name: "QUEUE", wide: true, cell: func(e *v1.Event, _ time.Time) output.Cell { return output.Text(e.Queue) }},
		{name: "DATA", wide: true, cell: func(e *v1.Event, _ time.Time) output.Cell { return output.Text(string(e.Data)) }},
	}}

var eventMoods = map[string]output.Mood{
	"task.zombie": output.Bad, "task.failed": output.Bad, "worker.offline": output.Bad, "worker.late": output.Doubtful,
	"worker.flapping": output.Doubtful, "machine.flapping": output.Doubtful, "task.retrying": output.Doubtful,
	"system.mass_expiry_held": output.Bad, "system.outage_credited": output.Doubtful, "system.adopted": output.Doubtful,
	"system.repaired": output.Doubtful, "task.succeeded": output.Good, "worker.tasks_recovered": output.Good, "worker.fresh": output.Good,
}

// EventFilter says which events are meant.
type EventFilter struct {
	Type     []string `placeholder:"TYPE" help:"Types such as task.zombie, or families such as task.*; several with commas."`
	Subject  string   `placeholder:"ID" help:"Task, worker, machine or whatever else they are about."`
	RunID    string   `name:"run" placeholder:"ID" help:"Run."`
	Queue    string   `predictor:"queue" placeholder:"QUEUE" help:"Queue."`
	TaskType string   `placeholder:"TYPE" help:"Type of task."`
	Worker   string   `predictor:"worker" placeholder:"ID" help:"Worker."`
	Machine  string   `predictor:"machine" placeholder:"ID" help:"Machine."`
}

func (f *EventFilter) query() client.EventQuery {
	return client.EventQuery{
		Types: f.Type, Subject: f.Subject, RunID: f.RunID, Queue: f.Queue, TaskType: f.TaskType, WorkerID: f.Worker, MachineID: f.Machine,
	}
}

type eventLs struct {
	EventFilter `embed:""`
	After       string `placeholder:"WHEN" help:"From when on: a cursor, a time, or how long ago, such as 15m."`
	Oldest      bool   `help:"The oldest first, as with --after; unless told, the newest are."`
	Limit       int    `default:"100" help:"How many to show at most."`
	Common      `embed:""`
}

func (c *eventLs) Run(env *Env) error {
	s, err := c.open(env)
	if err != nil {
		return err
	}
	after, err := s.after(c.After)
	if err != nil {
		return err
	}
	q := c.query()
	pairs := query("subject", q.Subject, "runId", q.RunID, "queue", q.Queue, "taskType", q.TaskType, "workerId", q.WorkerID,
		"machineId", q.MachineID, "after", after, "order", order(!c.Oldest && after == ""))
	for _, t := range q.Types {
		pairs.Add("type", t)
	}
	if pairs["type"] != nil {
		pairs.Set("type", strings.Join(pairs["type"], ","))
	}
	return c.show(s, pairs)
}

type eventTail struct {
	EventFilter `embed:""`
	After       string `placeholder:"WHEN" help:"From when on: a cursor, a time, or how long ago; without it from now."`
	Common      `embed:""`
}

func (c *eventTail) Run(env *Env) error {
	s, err := c.open(env)
	if err != nil {
		return err
	}
	return follow(s, c.query(), c.After)
}

// after reads where to begin: how long ago becomes a time.
func (s *session) after(text string) (string, error) {
	if ago, err := time.ParseDuration(text); err == nil && ago >= 0 {
		return timeText(v1.At(s.now().Add(-ago))), nil
	}
	return text, nil
}

// tail follows the events of one of a kind, also where it is not known: it may have been forgotten, or be made yet.
func (k *kind[T]) tail(env *Env, c *Common, id string, q client.EventQuery, after string) error {
	s, err := c.open(env)
	if err != nil {
		return err
	}
	if _, err := k.one(env.Context, s, id); ExitCode(err) == ExitNotFound {
		s.note("%v\nIts events are followed all the same.", err)
	}
	return follow(s, q, after)
}

// tail follows events until it is interrupted.
func follow(s *session, q client.EventQuery, after string) error {
	var err error
	if q.After, err = s.after(after); err != nil {
		return err
	}
	rows := events.rows(s)
	if s.Format.ForPeople() {
		if err := rows.Write(nil); err != nil {
			return err
		}
	}
	for e, err := range s.client.Events(q).All(s.env.Context) {
		var gap *client.EventGap
		if errors.As(err, &gap) {
			s.note("%v", gap)
			continue
		}
		if err != nil {
			return s.explain(err)
		}
		raw, err := json.Marshal(e)
		if err != nil {
			return err
		}
		if err := events.showMore(s, rows, entry[v1.Event]{raw: raw, T: &e}); err != nil {
			return err
		}
	}
	return nil
}
