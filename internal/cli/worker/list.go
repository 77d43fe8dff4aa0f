package worker

import (
	"net/url"
	"strings"

	"github.com/lubdub-io/lubdub/internal/cli/output"
	"github.com/lubdub-io/lubdub/internal/cli/resource"
	"github.com/lubdub-io/lubdub/internal/cli/session"
)

// Filter are the flags that choose workers.
type Filter struct {
	Queue    string   `predictor:"queue" placeholder:"QUEUE" help:"Queue."`
	Machine  string   `predictor:"machine" placeholder:"ID" help:"Machine."`
	Version  string   `placeholder:"VERSION" help:"Version of their program."`
	Selector []string `short:"l" sep:"none" placeholder:"K=V" help:"Labels, separated by commas."`
}

type List struct {
	Filter             `embed:""`
	All                bool   `short:"a" help:"Include those that are OFFLINE."`
	Status             string `predictor:"status" placeholder:"STATUS" help:"ONLINE, DRAINING or OFFLINE."`
	Liveness           string `predictor:"liveness" placeholder:"WORD" help:"FRESH, LATE or LOST."`
	Type               string `placeholder:"TYPE" help:"Task type that they run."`
	Runtime            string `placeholder:"RUNTIME" help:"Runtime that they offer."`
	Name               string `placeholder:"NAME" help:"Name."`
	Hindered           bool   `help:"Only those that are not eligible for work."`
	Flapping           bool   `help:"Only workers that became stale repeatedly within a day."`
	Sort               string `placeholder:"FIELD" help:"Order: staleCount24h (most often stale first), uptimePct24h (least uptime first) or lastHeartbeatAt (longest silent first)."`
	Silent             bool   `help:"The longest silent first; the same as --sort lastHeartbeatAt."`
	resource.ListFlags `embed:""`
	session.Flags      `embed:""`
}

func (c *List) Run(env *session.Env) error {
	s, err := c.Open(env)
	if err != nil {
		return err
	}
	q := resource.Query("queue", c.Queue, "machineId", c.Machine, "version", c.Version, "status", strings.ToUpper(c.Status),
		"liveness", strings.ToUpper(c.Liveness), "type", c.Type, "runtime", c.Runtime, "name", c.Name)
	if c.Silent {
		q.Set("sort", "lastHeartbeatAt")
	}
	if c.Sort != "" {
		q.Set("sort", c.Sort)
	}
	if c.Sort == "staleCount24h" {
		q.Set("order", "desc")
	}
	if c.Flapping {
		q.Set("flapping", "true")
	}
	if c.Hindered {
		q.Set("schedulable", "false")
	}
	if err := resource.AddLabels(q, c.Selector); err != nil {
		return err
	}
	if c.All || c.Status != "" {
		return resource.Workers.List(s, c.ListFlags, q)
	}
	if err := resource.Workers.List(s, c.ListFlags, withStatus(q, "ONLINE,DRAINING")); err != nil || c.Watch {
		return err
	}
	return noteHidden(s, resource.Workers, q)
}

// noteHidden notes how many are not listed because they are OFFLINE.
func noteHidden[T any](s *session.Session, k *resource.Kind[T], q url.Values) error {
	offline := withStatus(q, "OFFLINE")
	offline.Set("pageSize", "1")
	hidden, err := k.ReadPage(s.Env.Context, s, offline)
	if err == nil && hidden.Total != nil && *hidden.Total > 0 {
		s.Note("%s hidden, since OFFLINE; -a shows all.", output.Count(*hidden.Total, k.Noun))
	}
	return err
}

// withStatus is a query with another status.
func withStatus(q url.Values, status string) url.Values {
	out := url.Values{"status": {status}}
	for name, values := range q {
		if name != "status" {
			out[name] = values
		}
	}
	return out
}
