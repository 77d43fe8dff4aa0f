package worker

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/lubdub-io/lubdub/internal/cli/output"
	"github.com/lubdub-io/lubdub/internal/cli/resource"
	"github.com/lubdub-io/lubdub/internal/cli/session"
	"github.com/lubdub-io/lubdub/sdk/go/client"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

type MachineList struct {
	All                bool   `short:"a" help:"Include those that are OFFLINE."`
	Status             string `predictor:"status" placeholder:"STATUS" help:"ONLINE, DRAINING or OFFLINE."`
	resource.ListFlags `embed:""`
	session.Flags      `embed:""`
}

func (c *MachineList) Run(env *session.Env) error {
	s, err := c.Open(env)
	if err != nil {
		return err
	}
	q := resource.Query("status", strings.ToUpper(c.Status))
	if c.All || c.Status != "" {
		return resource.Machines.List(s, c.ListFlags, q)
	}
	if err := resource.Machines.List(s, c.ListFlags, withStatus(q, "ONLINE"), withStatus(q, "DRAINING")); err != nil || c.Watch {
		return err
	}
	return noteHidden(s, resource.Machines, q)
}

type MachineGet struct {
	Machines      []string `arg:"" predictor:"machine" name:"id" help:"Machines."`
	session.Flags `embed:""`
}

func (c *MachineGet) Run(env *session.Env) error {
	return resource.Machines.Get(env, &c.Flags, c.Machines)
}

type MachineResume struct {
	Machines      []string `arg:"" predictor:"machine" name:"id" help:"Machines."`
	Reason        string   `placeholder:"TEXT" help:"Why; events show it."`
	session.Flags `embed:""`
}

func (c *MachineResume) Run(env *session.Env) error {
	s, err := c.Open(env)
	if err != nil {
		return err
	}
	return resource.OnEach(s, resource.Machines, c.Machines, func(ctx context.Context, id string) (json.RawMessage, *v1.Machine, error) {
		_, done, err := session.Post[v1.ResumeMachineResponse](ctx, s, resource.Machines.PathOf(id)+"/resume", v1.ReasonRequest{Reason: c.Reason})
		if err != nil {
			return nil, nil, err
		}
		s.Note("%s: %d of %s resumed; workers may register.", id, done.Resumed, output.Count(done.Matched, "draining worker"))
		return session.Get[v1.Machine](ctx, s, resource.Machines.PathOf(id), nil)
	})
}

type MachineOffline struct {
	Machine             string `arg:"" predictor:"machine" name:"id" help:"Machine."`
	session.ReasonFlags `embed:""`
	session.ActFlags    `embed:""`
	session.Flags       `embed:""`
}

func (c *MachineOffline) Run(env *session.Env) error {
	s, err := c.Open(env)
	if err != nil {
		return err
	}
	m, err := resource.Machines.Find(env.Context, s, c.Machine)
	if err != nil {
		return err
	}
	what := fmt.Sprintf("end %s of machine %s, lose what they hold, and refuse those that come until `lubdub machine resume %s`",
		output.Count(m.Value.Workers.Online+m.Value.Workers.Draining, "worker"), c.Machine, c.Machine)
	if c.DryRun {
		return s.ShowResult(m.Raw, "This would %s.", what)
	}
	if err := s.Confirm(c.ActFlags, what); err != nil {
		return err
	}
	raw, done, err := session.Post[v1.ActOnWorkersResponse](env.Context, s, resource.Machines.PathOf(c.Machine)+"/offline",
		v1.ReasonRequest{Reason: c.Reason})
	if err != nil {
		return err
	}
	return s.ShowResult(raw, "%s of machine %s are offline; the machine is held offline until `lubdub machine resume %s`.",
		output.Count(done.Done, "worker"), c.Machine, c.Machine)
}

type MachineTail struct {
	Machine       string `arg:"" predictor:"machine" name:"id" help:"Machine."`
	After         string `placeholder:"WHEN" help:"Start: a cursor, a time, or how long ago. Default: now."`
	session.Flags `embed:""`
}

func (c *MachineTail) Run(env *session.Env) error {
	return resource.Machines.Tail(env, &c.Flags, c.Machine, client.EventQuery{MachineID: resource.Machines.BareID(c.Machine)}, c.After)
}
