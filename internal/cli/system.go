package cli

import (
	"fmt"
	"strings"
	"time"

	"github.com/lubdub-io/lubdub/internal/cli/output"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

type systemGet struct {
	Common `embed:""`
}

func (c *systemGet) Run(env *Env) error {
	s, err := c.open(env)
	if err != nil {
		return err
	}
	raw, sys, err := get[v1.System](env.Context, s, "/v1/system", nil)
	if err != nil {
		return err
	}
	if !s.Format.ForPeople() {
		return s.Raw(raw)
	}
	replicas := s.Rows("REPLICA", "VERSION", "ROLES", "UP", "HEARD")
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

func redisRows(s *session, sys *v1.System) error {
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

func shardRows(s *session, sys *v1.System) error {
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

type systemSweep struct {
	Common `embed:""`
}

func (c *systemSweep) Run(env *Env) error {
	s, err := c.open(env)
	if err != nil {
		return err
	}
	raw, done, err := post[v1.SweepResponse](env.Context, s, "/v1/system:sweep", nil)
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
	return s.counted(raw, "%s", text)
}

type systemRelease struct {
	For    *time.Duration `placeholder:"DURATION" help:"How long the brake stays off (default 10m)."`
	Yes    bool           `short:"y" help:"Do not ask."`
	Common `embed:""`
}

func (c *systemRelease) Run(env *Env) error {
	s, err := c.open(env)
	if err != nil {
		return err
	}
	if err := s.agreed(Acting{Yes: c.Yes}, "release everything that the brake is holding in "+s.scope()); err != nil {
		return err
	}
	raw, done, err := post[v1.ReleaseResponse](env.Context, s, "/v1/system:release", v1.ReleaseRequest{DurationMs: milliseconds(c.For)})
	if err != nil {
		return err
	}
	return s.counted(raw, "Released %s and %s; the brake is off until %s.",
		output.Count(done.TasksReleased, "task"),
		output.Count(done.WorkersReleased, "worker"), timeText(done.ReleasedUntil))
}

type systemScopes struct {
	Listing `embed:""`
	Common  `embed:""`
}

var scopes = &kind[v1.Scope]{
	noun: "scope", path: "/v1/scopes", entries: "scopes", id: func(c *v1.Scope) string { return c.TenantID + "/" + c.WorkspaceID },
	columns: []column[v1.Scope]{
		{name: "TENANT", cell: func(c *v1.Scope, _ time.Time) output.Cell { return output.Text(c.TenantID) }},
		{name: "WORKSPACE", cell: func(c *v1.Scope, _ time.Time) output.Cell { return output.Text(c.WorkspaceID) }},
	}}

func (c *systemScopes) Run(env *Env) error {
	s, err := c.open(env)
	if err != nil {
		return err
	}
	return scopes.list(s, c.Listing, query())
}
