package top

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/lubdub-io/lubdub/internal/cli/deployment"
	"github.com/lubdub-io/lubdub/internal/cli/output"
	"github.com/lubdub-io/lubdub/internal/cli/resource"
	"github.com/lubdub-io/lubdub/internal/cli/session"
	"github.com/lubdub-io/lubdub/internal/cli/top/tui"
	"github.com/lubdub-io/lubdub/internal/cli/why"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

// maxRows is the maximum number of rows of a view.
const maxRows = 500

// source is the Source of the live view, based on a session.
type source struct{ s *session.Session }

// table defines how a view reads its rows, explains one and acts on it.
type table struct {
	rows    readRows
	explain why.Explainer
	path    func(id string) string
}

var tables = []table{
	{rowsOf(resource.Workers, url.Values{"status": {"ONLINE"}, "sort": {"lastHeartbeat"}}, url.Values{"status": {"DRAINING"}}),
		why.ExplainWorker, resource.Workers.PathOf},
	{rowsOf(resource.Tasks, url.Values{"state": {"DISPATCHED,RUNNING"}, "order": {"desc"}}, url.Values{"state": {"QUEUED"}},
		url.Values{"state": {"FAILED"}, "order": {"desc"}}), why.ExplainTask, resource.Tasks.PathOf},
	{rowsOf(resource.Queues, url.Values{}), why.ExplainQueue, resource.Queues.PathOf},
	{rowsOf(resource.Machines, url.Values{"status": {"ONLINE"}}, url.Values{"status": {"DRAINING"}}, url.Values{"status": {"OFFLINE"}}),
		why.ExplainMachine, resource.Machines.PathOf},
}

var views = []tui.View{
	{Name: "workers", Acts: []tui.Act{
		{Key: "d", Verb: "Drain", Command: "lubdub worker drain %s"}, {Key: "r", Verb: "Resume", Command: "lubdub worker resume %s"},
		{Key: "c", Verb: "Cordon", Command: "lubdub worker cordon %s"}, {Key: "u", Verb: "Uncordon", Command: "lubdub worker uncordon %s"},
		{Key: "o", Verb: "Offline", Command: "lubdub worker offline %s"},
	}},
	{Name: "tasks", Acts: []tui.Act{
		{Key: "c", Verb: "Cancel", Command: "lubdub task cancel %s"}, {Key: "t", Verb: "Retry", Command: "lubdub task retry %s"},
	}},
	{Name: "queues", Acts: []tui.Act{
		{Key: "p", Verb: "Pause", Command: "lubdub queue pause %s"}, {Key: "r", Verb: "Resume", Command: "lubdub queue resume %s"},
	}},
	{Name: "machines", Acts: []tui.Act{
		{Key: "d", Verb: "Drain", Command: "lubdub machine drain %s"}, {Key: "r", Verb: "Resume", Command: "lubdub machine resume %s"},
	}},
}

// readRows reads the rows of a view; more names what is not included.
type readRows func(context.Context, *session.Session) (heading []string, rows []tui.Row, more string, err error)

// rowsOf reads the rows of a kind, so many of each query.
func rowsOf[T any](k *resource.Kind[T], queries ...url.Values) readRows {
	return func(ctx context.Context, s *session.Session) (heading []string, rows []tui.Row, more string, err error) {
		for _, q := range queries {
			err = k.EachPage(ctx, s, maxRows/len(queries), []url.Values{q}, func(p *resource.Page[T], _ int) error {
				for _, e := range p.Entries {
					rows = append(rows, tui.Row{ID: k.ID(e.Value), Cells: k.Row(s, e.Value)})
				}
				if len(rows) >= maxRows/len(queries) && p.Next != "" {
					more = fmt.Sprintf("These are not all %ss; lubdub %s ls --limit 0 shows all.", k.Noun, k.Noun)
				}
				return nil
			})
			if err != nil {
				return nil, nil, "", err
			}
		}
		return k.Heading(s), rows, more, nil
	}
}

// Look implements tui.Source.
func (t *source) Look(ctx context.Context, view int) (*tui.Picture, error) {
	s := t.s
	st, err := deployment.Read(ctx, s)
	if err != nil {
		return nil, err
	}
	if st.Unread != nil {
		return nil, st.Unread
	}
	p := &tui.Picture{Where: s.Scope(), Findings: st.Findings(), At: time.Now()}
	if !st.Responds {
		p.Partial = true
		return p, nil
	}
	p.Numbers = numbers(st)
	if p.Heading, p.Rows, p.More, err = tables[view].rows(ctx, s); err != nil {
		return nil, err
	}
	p.At = time.Now()
	return p, nil
}

// numbers returns the deployment's numbers in one line.
func numbers(of *deployment.State) string {
	st := of.Stats
	w, r := st.Workers, st.Rates
	p99 := "-"
	if r.BeatP99Ms != nil {
		p99 = fmt.Sprintf("%.0fms", *r.BeatP99Ms)
	}
	return fmt.Sprintf("workers %d fresh %d late %d past timeout, %d lost in 1h  tasks %d running %d queued %d failed  beats %.1f/s p99 %s  "+
		"lag %s",
		w.Fresh, w.Late, w.Lost, of.System.RecentlyLostTotal, st.Tasks[string(v1.Running)], st.Tasks[string(v1.Queued)],
		st.Tasks[string(v1.Failed)], r.BeatsPerSecond, p99, output.Milliseconds(r.SweepLagMs))
}

// Details implements tui.Source.
func (t *source) Details(ctx context.Context, view int, id string) ([]string, error) {
	a, err := tables[view].explain(ctx, t.s, id)
	if err != nil {
		return nil, err
	}
	return a.Sentences, nil
}

// Act implements tui.Source.
func (t *source) Act(ctx context.Context, view int, id string, act tui.Act) (string, error) {
	verb := strings.ToLower(act.Verb)
	var err error
	if verb == "retry" {
		_, _, err = resource.RetryTask(ctx, t.s, id)
	} else {
		_, _, err = session.Post[struct{}](ctx, t.s, tables[view].path(id)+"/"+verb, nil)
	}
	if err != nil {
		return "", err
	}
	return fmt.Sprintf(act.Command, id) + ": done.", nil
}
