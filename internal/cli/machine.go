package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/lubdub-io/lubdub/internal/cli/output"
	"github.com/lubdub-io/lubdub/sdk/go/client"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

var machines = &kind[v1.Machine]{
	noun: "machine", path: "/v1/machines", entries: "machines", id: func(m *v1.Machine) string { return m.MachineID },
	columns: []column[v1.Machine]{
		{name: "MACHINE", cell: func(m *v1.Machine, _ time.Time) output.Cell { return output.Text(m.MachineID) }},
		{name: "STATUS", cell: func(m *v1.Machine, _ time.Time) output.Cell { return output.Word(m.Status) }},
		{name: "ONLINE", cell: func(m *v1.Machine, _ time.Time) output.Cell { return output.Number(m.Workers.Online) }},
		{name: "DRAINING", cell: func(m *v1.Machine, _ time.Time) output.Cell { return output.Number(m.Workers.Draining) }},
		{name: "OFFLINE", cell: func(m *v1.Machine, _ time.Time) output.Cell { return output.Number(m.Workers.Offline) }},
		{name: "BEAT", passing: true, cell: func(m *v1.Machine, now time.Time) output.Cell { return output.Age(m.LastHeartbeatAt.Time, now) }},
		{name: "UP24H", passing: true, cell: func(m *v1.Machine, _ time.Time) output.Cell {
			return output.Text(fmt.Sprintf("%.1f%%", m.UptimePct24h))
		}},
		{name: "STALE24H", cell: func(m *v1.Machine, _ time.Time) output.Cell { return output.Number(m.StaleCount24h) }},
		{name: "FLAPPING", cell: func(m *v1.Machine, _ time.Time) output.Cell { return output.Flag(m.Flapping) }},
		{name: "DRAINED", passing: true, cell: func(m *v1.Machine, now time.Time) output.Cell {
			if m.Drain == nil {
				return output.Cell{}
			}
			return output.Cell{Text: output.Age(m.Drain.Since.Time, now).Text + " ago", Mood: output.Doubtful}
		}},
		{name: "HELD", passing: true, cell: func(m *v1.Machine, now time.Time) output.Cell { return heldCell(m.Hold, now) }},
		{name: "REASON", wide: true, cell: func(m *v1.Machine, _ time.Time) output.Cell {
			switch {
			case m.Hold != nil:
				return output.Optional(m.Hold.Reason)
			case m.Drain != nil:
				return output.Optional(m.Drain.Reason)
			}
			return output.Cell{}
		}},
	}}

// heldCell says since when a worker or machine has been held offline.
func heldCell(h *v1.Hold, now time.Time) output.Cell {
	if h == nil {
		return output.Cell{}
	}
	return output.Cell{Text: output.Age(h.Since.Time, now).Text + " ago", Mood: output.Bad}
}

type machineLs struct {
	All     bool   `short:"a" help:"Those that are OFFLINE too."`
	Status  string `predictor:"status" placeholder:"STATUS" help:"ONLINE, DRAINING or OFFLINE."`
	Listing `embed:""`
	Common  `embed:""`
}

func (c *machineLs) Run(env *Env) error {
	s, err := c.open(env)
	if err != nil {
		return err
	}
	q := query("status", strings.ToUpper(c.Status))
	if c.All || c.Status != "" {
		return machines.list(s, c.Listing, q)
	}
	if err := machines.list(s, c.Listing, with(q, "ONLINE"), with(q, "DRAINING")); err != nil || c.Watch {
		return err
	}
	offline := with(q, "OFFLINE")
	offline.Set("pageSize", "1")
	hidden, err := machines.page(env.Context, s, offline)
	if err == nil && hidden.total != nil && *hidden.total > 0 {
		s.note("%s that are OFFLINE are hidden; -a shows them.", output.Count(*hidden.total, "machine"))
	}
	return err
}

type machineGet struct {
	Machines []string `arg:"" predictor:"machine" name:"id" help:"Machines."`
	Common   `embed:""`
}

func (c *machineGet) Run(env *Env) error { return machines.get(env, &c.Common, c.Machines) }

type machineResume struct {
	Machines []string `arg:"" predictor:"machine" name:"id" help:"Machines."`
	Reason   string   `placeholder:"TEXT" help:"Why; events show it."`
	Common   `embed:""`
}

func (c *machineResume) Run(env *Env) error {
	s, err := c.open(env)
	if err != nil {
		return err
	}
	return onEach(s, machines, c.Machines, func(ctx context.Context, id string) (json.RawMessage, *v1.Machine, error) {
		_, done, err := post[v1.ResumeMachineResponse](ctx, s, machines.at(id)+"/resume", v1.ReasonRequest{Reason: c.Reason})
		if err != nil {
			return nil, nil, err
		}
		s.note("%s: %d of %s resumed; workers may register.", id, done.Resumed, output.Count(done.Matched, "draining worker"))
		return get[v1.Machine](ctx, s, machines.at(id), nil)
	})
}

type machineOffline struct {
	Machine   string `arg:"" predictor:"machine" name:"id" help:"Machine."`
	Explained `embed:""`
	Acting    `embed:""`
	Common    `embed:""`
}

func (c *machineOffline) Run(env *Env) error {
	s, err := c.open(env)
	if err != nil {
		return err
	}
	m, err := machines.one(env.Context, s, c.Machine)
	if err != nil {
		return err
	}
	what := fmt.Sprintf("end %s of machine %s, lose what they hold, and refuse those that come until `lubdub machine resume %s`",
		output.Count(m.T.Workers.Online+m.T.Workers.Draining, "worker"), c.Machine, c.Machine)
	if c.DryRun {
		return s.counted(m.raw, "This would %s.", what)
	}
	if err := s.agreed(c.Acting, what); err != nil {
		return err
	}
	raw, done, err := post[v1.ActOnWorkersResponse](env.Context, s, machines.at(c.Machine)+"/offline", v1.ReasonRequest{Reason: c.Reason})
	if err != nil {
		return err
	}
	return s.counted(raw, "%s of machine %s are offline; the machine is held offline until `lubdub machine resume %s`.",
		output.Count(done.Done, "worker"), c.Machine, c.Machine)
}

type machineTail struct {
	Machine string `arg:"" predictor:"machine" name:"id" help:"Machine."`
	After   string `placeholder:"WHEN" help:"From when on: a cursor, a time, or how long ago; without it from now."`
	Common  `embed:""`
}

func (c *machineTail) Run(env *Env) error {
	return machines.tail(env, &c.Common, c.Machine, client.EventQuery{MachineID: machines.named(c.Machine)}, c.After)
}
