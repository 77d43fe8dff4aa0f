package cli

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/lubdub-io/lubdub/internal/cli/output"
	"github.com/lubdub-io/lubdub/internal/cli/top/tui"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

type topCmd struct {
	Every  time.Duration `default:"1s" help:"How often to look, 200ms at least."`
	Common `embed:""`
}

func (*topCmd) Help() string {
	return "Live: workers, tasks, queues and machines, with how the deployment is above them. 1 to 4 or tab change the view, arrows move, " +
		"< and > sort, ! turns the order, / filters, enter tells why, and letters act on the chosen row, which is asked first."
}

func (c *topCmd) Run(env *Env) error {
	if !isTerminal(env.Stdout) || !isTerminal(env.Stdin) {
		return misusef("top needs a terminal; `lubdub status` answers anywhere")
	}
	s, err := c.open(env)
	if err != nil {
		return err
	}
	t := &topSource{s: s}
	return tui.Run(env.Context, tui.Options{
		Source: t, Views: topViews, Every: max(c.Every, 200*time.Millisecond), In: env.Stdin, Out: env.Stdout, Env: env.Environ,
	})
}

// topRows is how many rows of a view are read at most.
const topRows = 500

// topSource is what the live view sees of a session.
type topSource struct{ s *session }

// topTable is how a view reads its rows, tells of one and acts on it.
type topTable struct {
	rows func(context.Context, *session) (heading []string, rows []tui.Row, more string, err error)
	why  func(context.Context, *session, string) (*account, error)
	path func(id string) string
}

var topTables = []topTable{
	{topOf(workers, url.Values{"status": {"ONLINE"}, "sort": {"lastHeartbeat"}}, url.Values{"status": {"DRAINING"}}), whyWorker, workers.at},
	{topOf(tasks, url.Values{"state": {"DISPATCHED,RUNNING"}, "order": {"desc"}}, url.Values{"state": {"QUEUED"}},
		url.Values{"state": {"FAILED"}, "order": {"desc"}}), whyTask, tasks.at},
	{topOf(queues, url.Values{}), whyQueue, queues.at},
	{topOf(machines, url.Values{"status": {"ONLINE"}}, url.Values{"status": {"DRAINING"}}, url.Values{"status": {"OFFLINE"}}), whyMachine,
		machines.at},
}

var topViews = []tui.View{
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

// topOf reads the rows of a kind, so many of each query.
func topOf[T any](k *kind[T], asked ...url.Values) func(context.Context, *session) ([]string, []tui.Row, string, error) {
	return func(ctx context.Context, s *session) (heading []string, rows []tui.Row, more string, err error) {
		for _, q := range asked {
			err = k.each(ctx, s, topRows/len(asked), []url.Values{q}, func(p *page[T], _ int) error {
				for _, e := range p.entries {
					rows = append(rows, tui.Row{ID: k.id(e.T), Cells: k.row(s, e.T)})
				}
				if len(rows) >= topRows/len(asked) && p.next != "" {
					more = fmt.Sprintf("These are not all %ss; lubdub %s ls --limit 0 shows all.", k.noun, k.noun)
				}
				return nil
			})
			if err != nil {
				return nil, nil, "", err
			}
		}
		return k.heading(s), rows, more, nil
	}
}

// Look implements tui.Source.
func (t *topSource) Look(ctx context.Context, view int) (*tui.Picture, error) {
	s := t.s
	st, err := readState(ctx, s)
	if err != nil {
		return nil, err
	}
	if st.unread != nil {
		return nil, st.unread
	}
	p := &tui.Picture{Where: s.scope(), Findings: st.judged(), At: time.Now()}
	if !st.responds {
		p.Partial = true
		return p, nil
	}
	p.Numbers = numbers(st)
	if p.Heading, p.Rows, p.More, err = topTables[view].rows(ctx, s); err != nil {
		return nil, err
	}
	p.At = time.Now()
	return p, nil
}

// numbers are the deployment's in a line.
func numbers(of *state) string {
	st := of.Stats
	w, r := st.Workers, st.Rates
	p99 := "-"
	if r.BeatP99Ms != nil {
		p99 = fmt.Sprintf("%.0fms", *r.BeatP99Ms)
	}
	return fmt.Sprintf("workers %d fresh %d late %d lost (%d in 1h)  tasks %d running %d queued %d failed  beats %.1f/s p99 %s  lag %s",
		w.Fresh, w.Late, w.Lost, of.System.RecentlyLostTotal, st.Tasks[string(v1.Running)], st.Tasks[string(v1.Queued)],
		st.Tasks[string(v1.Failed)], r.BeatsPerSecond, p99, output.Milliseconds(r.SweepLagMs))
}

// Details implements tui.Source.
func (t *topSource) Details(ctx context.Context, view int, id string) ([]string, error) {
	a, err := topTables[view].why(ctx, t.s, id)
	if err != nil {
		return nil, err
	}
	return a.sentences, nil
}

// Act implements tui.Source.
func (t *topSource) Act(ctx context.Context, view int, id string, act tui.Act) (string, error) {
	verb := strings.ToLower(act.Verb)
	var err error
	if verb == "retry" {
		_, _, err = retryOne(ctx, t.s, id)
	} else {
		_, _, err = post[struct{}](ctx, t.s, topTables[view].path(id)+"/"+verb, nil)
	}
	if err != nil {
		return "", err
	}
	return fmt.Sprintf(act.Command, id) + ": done.", nil
}
