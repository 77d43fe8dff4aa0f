package event

import (
	"encoding/json"
	"maps"
	"net/url"
	"strings"

	"github.com/lubdub-io/lubdub/internal/cli/exit"
	"github.com/lubdub-io/lubdub/internal/cli/output"
	"github.com/lubdub-io/lubdub/internal/cli/resource"
	"github.com/lubdub-io/lubdub/internal/cli/session"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

type List struct {
	Filter        `embed:""`
	After         string `placeholder:"WHEN" help:"Start: a cursor, a time, or how long ago, such as 15m."`
	Oldest        bool   `help:"Oldest first, as with --after. The default is newest first."`
	Limit         int    `default:"100" help:"How many to show at most."`
	session.Flags `embed:""`
}

func (c *List) Run(env *session.Env) error {
	s, err := c.Open(env)
	if err != nil {
		return err
	}
	after := s.ParseStart(c.After)
	q := c.query()
	pairs := resource.Query("subject", q.Subject, "runId", q.RunID, "queue", q.Queue, "taskType", q.TaskType, "workerId", q.WorkerID,
		"machineId", q.MachineID, "after", after, "order", resource.Order(!c.Oldest && after == ""))
	for _, t := range q.Types {
		pairs.Add("type", t)
	}
	if pairs["type"] != nil {
		pairs.Set("type", strings.Join(pairs["type"], ","))
	}
	return c.show(s, pairs)
}

// show lists events page by page; they continue from a cursor, and not from a page token like other lists.
func (c *List) show(s *session.Session, q url.Values) error {
	if c.Limit < 1 {
		return exit.Misusef("--limit %d shows nothing; `lubdub event tail` follows events", c.Limit)
	}
	rows := resource.Events.Rows(s)
	filters := maps.Clone(q)
	var all []json.RawMessage
	next, cut, err := resource.EventPages(s.Env.Context, s, q, c.Limit, func(p *resource.Page[v1.Event]) error {
		for _, e := range p.Entries {
			all = append(all, e.Raw)
		}
		if s.Format == output.JSON || s.Format == output.YAML || len(p.Entries) == 0 {
			return nil
		}
		return resource.Events.ShowRows(s, rows, p.Entries...)
	})
	if err != nil {
		return err
	}
	if all == nil {
		s.Note("No event%s in %s.", resource.DescribeQueries(filters), s.Scope())
	}
	return c.finish(s, all, next, cut)
}

func (c *List) finish(s *session.Session, all []json.RawMessage, next string, cut bool) error {
	if s.Format == output.JSON || s.Format == output.YAML {
		if all == nil {
			all = []json.RawMessage{}
		}
		raw, err := json.Marshal(map[string]any{resource.Events.Entries: all, "next": next})
		if err != nil {
			return err
		}
		if err := s.Raw(raw); err != nil {
			return err
		}
	}
	if cut {
		s.Note("%s are shown, and there may be more; --limit shows more.", output.Count(c.Limit, "event"))
	}
	return nil
}
