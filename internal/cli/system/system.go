// Package system has the commands about replicas, shards, Redis and scopes.
package system

import (
	"fmt"
	"strings"
	"time"

	"github.com/lubdub-io/lubdub/internal/cli/output"
	"github.com/lubdub-io/lubdub/internal/cli/resource"
	"github.com/lubdub-io/lubdub/internal/cli/session"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

type Get struct {
	session.Flags `embed:""`
}

func (c *Get) Run(env *session.Env) error {
	s, err := c.Open(env)
	if err != nil {
		return err
	}
	raw, sys, err := session.Get[v1.System](env.Context, s, "/v1/system", nil)
	if err != nil {
		return err
	}
	if !s.Format.ForPeople() {
		return s.Raw(raw)
	}
	replicas := s.Rows("REPLICA", "VERSION", "ROLES", "UP", "LAST REPORT")
	var rows [][]output.Cell
	for _, r := range sys.Replicas {
		rows = append(rows, []output.Cell{output.Text(r.ReplicaID), output.Text(r.Version), output.Text(strings.Join(r.Roles, ",")),
			output.Age(r.Since.Time, sys.Time.Time), output.Age(r.HeardAt.Time, sys.Time.Time)})
	}
	if err := replicas.Write(rows); err != nil {
		return err
	}
	fmt.Fprintln(s.W)
	if err := redisRows(s, sys); err != nil {
		return err
	}
	fmt.Fprintln(s.W)
	return shardRows(s, sys)
}

func redisRows(s *session.Session, sys *v1.System) error {
	var rows [][]output.Cell
	for _, r := range sys.Redis {
		address := output.Text("embedded")
		if r.Address != nil {
			address = output.Text(*r.Address)
		}
		memory := output.Bytes(r.MemoryBytes)
		if r.MaxMemoryBytes > 0 {
			memory += " of " + output.Bytes(r.MaxMemoryBytes)
		}
		wrong := output.Optional(r.Error)
		wrong.Mood = output.Bad
		rows = append(rows, []output.Cell{address, output.Optional(r.Version), output.Optional(r.Role), output.Number(r.Replicas),
			output.Text(memory), output.Optional(r.MaxMemoryPolicy), output.Text(fmt.Sprintf("%.1fms", r.RoundTripMs)),
			output.Text(fmt.Sprintf("%+.0fms", r.ClockOffsetMs)), wrong})
	}
	return s.Rows("REDIS", "VERSION", "ROLE", "REPLICAS", "MEMORY", "POLICY", "ROUND TRIP", "CLOCK", "ERROR").Write(rows)
}

func shardRows(s *session.Session, sys *v1.System) error {
	var rows [][]output.Cell
	for _, h := range sys.Shards {
		sweeper := output.Optional(h.Sweeper)
		if h.Sweeper == nil {
			sweeper = output.Cell{Text: "none", Mood: output.Bad}
		}
		rows = append(rows, []output.Cell{output.Number(h.Shard), sweeper, output.Text(output.Milliseconds(h.LagMs)),
			output.Text(output.Milliseconds(h.StoppedMs)), output.Text(output.Milliseconds(h.OutageCreditMs)), output.Number(h.Recoveries),
			output.Number(h.Events)})
	}
	return s.Rows("SHARD", "SWEEPER", "LAG", "STOPPED", "CREDIT 1H", "RECOVERIES", "EVENTS").Write(rows)
}

type Sweep struct {
	session.Flags `embed:""`
}

func (c *Sweep) Run(env *session.Env) error {
	s, err := c.Open(env)
	if err != nil {
		return err
	}
	raw, done, err := session.Post[v1.SweepResponse](env.Context, s, "/v1/system:sweep", nil)
	if err != nil {
		return err
	}
	z, w := done.Results.Zombies, done.Results.StaleWorkers
	text := fmt.Sprintf("Tasks: %d zombies, %d timed out, %d requeued, %d ready, %d forgotten.\n"+
		"Workers: %d marked OFFLINE, %d drained, %d attempts recovered, %d forgotten.", z.ZombieCount, z.TimedOutCount, z.RequeuedCount,
		z.ReadyCount, z.DeletedCount, w.MarkedOfflineCount, w.DrainedCount, w.RecoveredCount, w.DeletedCount)
	if len(w.AffectedMachineIDs) > 0 {
		text += "\nMachines: " + strings.Join(w.AffectedMachineIDs, ", ")
	}
	return s.ShowResult(raw, "%s", text)
}

type Release struct {
	For           *time.Duration `placeholder:"DURATION" help:"How long the brake stays off (default 10m)."`
	Yes           bool           `short:"y" help:"Do not ask."`
	session.Flags `embed:""`
}

func (c *Release) Run(env *session.Env) error {
	s, err := c.Open(env)
	if err != nil {
		return err
	}
	if err := s.Confirm(session.ActFlags{Yes: c.Yes}, "release everything that the brake is holding in "+s.Scope()); err != nil {
		return err
	}
	raw, done, err := session.Post[v1.ReleaseResponse](env.Context, s, "/v1/system:release",
		v1.ReleaseRequest{DurationMs: session.Milliseconds(c.For)})
	if err != nil {
		return err
	}
	return s.ShowResult(raw, "Released %s and %s; the brake is off until %s.",
		output.Count(done.TasksReleased, "task"),
		output.Count(done.WorkersReleased, "worker"), session.FormatTime(done.ReleasedUntil))
}

type Scopes struct {
	resource.ListFlags `embed:""`
	session.Flags      `embed:""`
}

var scopes = &resource.Kind[v1.Scope]{
	Noun: "scope", Path: "/v1/scopes", Entries: "scopes", ID: func(c *v1.Scope) string { return c.TenantID + "/" + c.WorkspaceID },
	Columns: []resource.Column[v1.Scope]{
		{Name: "TENANT", Cell: func(c *v1.Scope, _ time.Time) output.Cell { return output.Text(c.TenantID) }},
		{Name: "WORKSPACE", Cell: func(c *v1.Scope, _ time.Time) output.Cell { return output.Text(c.WorkspaceID) }},
	}}

func (c *Scopes) Run(env *session.Env) error { return scopes.ListAll(env, &c.Flags, c.ListFlags) }
