package worker

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/lubdub-io/lubdub/internal/cli/exit"
	"github.com/lubdub-io/lubdub/internal/cli/output"
	"github.com/lubdub-io/lubdub/internal/cli/resource"
	"github.com/lubdub-io/lubdub/internal/cli/session"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

// DrainFlags are the flags of drains.
type DrainFlags struct {
	Deadline *time.Duration `placeholder:"DURATION" help:"When tasks that are still running are given to other workers. Default: never."`
	Wait     bool           `help:"Show the tasks that are still running, and return when all have ended. Ctrl-C does not end the drain."`
}

type Drain struct {
	acts       `embed:""`
	DrainFlags `embed:""`
}

func (c *Drain) Run(env *session.Env) error {
	s, err := c.Open(env)
	if err != nil {
		return err
	}
	body := v1.DrainRequest{Reason: c.Reason, DeadlineMs: session.Milliseconds(c.Deadline)}
	ids, err := c.act(s, "drain", body, func(sel v1.WorkerSelector, dry bool) any {
		return v1.DrainWorkersRequest{DrainRequest: body, Selector: sel, DryRun: dry}
	}, "")
	if err != nil || !c.Wait || len(ids) == 0 {
		return err
	}
	undo := "lubdub worker resume " + strings.Join(ids, " ")
	if len(ids) > 5 {
		undo = "lubdub worker resume with the same filters"
	}
	return waitForDrain(s, ids, undo)
}

type MachineDrain struct {
	Machine             string `arg:"" predictor:"machine" name:"id" help:"Machine."`
	DrainFlags          `embed:""`
	session.ReasonFlags `embed:""`
	session.ActFlags    `embed:""`
	session.Flags       `embed:""`
}

func (c *MachineDrain) Run(env *session.Env) error {
	s, err := c.Open(env)
	if err != nil {
		return err
	}
	m, err := resource.Machines.Find(env.Context, s, c.Machine)
	if err != nil {
		return err
	}
	there := m.Value.Workers.Online + m.Value.Workers.Draining
	what := fmt.Sprintf("drain machine %s with %s, and those that come", c.Machine, output.Count(there, "worker"))
	if c.DryRun {
		return s.ShowResult(m.Raw, "This would %s.", what)
	}
	if there > 1 {
		if err := s.Confirm(c.ActFlags, what); err != nil {
			return err
		}
	}
	raw, done, err := session.Post[v1.DrainWorkersResponse](env.Context, s, resource.Machines.PathOf(c.Machine)+"/drain",
		v1.DrainRequest{Reason: c.Reason, DeadlineMs: session.Milliseconds(c.Deadline)})
	if err != nil {
		return err
	}
	if err := s.ShowResult(raw, "%s of machine %s drain.", output.Count(done.Draining, "worker"), c.Machine); err != nil || !c.Wait {
		return err
	}
	return waitForDrain(s, done.WorkerIDs, "lubdub machine resume "+c.Machine)
}

// waitForDrain shows what workers still hold until that is nothing.
func waitForDrain(s *session.Session, ids []string, undo string) error {
	ctx, shown := s.Env.Context, ""
	err := s.Poll(ctx, time.Second, time.Second, "waiting", func() (done bool, err error) {
		held, text, err := stillHeld(ctx, s, ids)
		if err == nil && held > 0 && text != shown {
			s.Note("%s", text)
			shown = text
		}
		return held == 0, err
	})
	if ctx.Err() != nil {
		return fmt.Errorf("interrupted; the drain stays on. To take it back: %s", undo)
	}
	if err == nil {
		s.Note("Nothing is held any more.")
	}
	return err
}

// stillHeld counts what workers hold and describes it.
func stillHeld(ctx context.Context, s *session.Session, ids []string) (held int, text string, err error) {
	var lines []string
	for _, id := range ids {
		_, w, err := session.Get[v1.Worker](ctx, s, resource.Workers.PathOf(id), nil)
		if exit.Code(err) == exit.NotFound {
			continue // it is OFFLINE and forgotten
		}
		if err != nil {
			return 0, "", err
		}
		if w.Status == v1.Online {
			return 0, "", errors.New("worker " + id + " is ONLINE: its drain was undone")
		}
		held += w.HeldCount
		if w.HeldCount > 0 && len(lines) < 10 {
			what, err := holds(ctx, s, w)
			if err != nil {
				return 0, "", err
			}
			lines = append(lines, what)
		}
	}
	text = fmt.Sprintf("%s held by %s\n", output.Count(held, "task"), output.Count(len(ids), "worker"))
	return held, text + strings.Join(lines, "\n"), nil
}

// holds describes what one worker holds, and until when.
func holds(ctx context.Context, s *session.Session, w *v1.Worker) (string, error) {
	p, err := resource.Tasks.ReadPage(ctx, s, url.Values{"workerId": {w.WorkerID}, "state": {"DISPATCHED,RUNNING"}, "pageSize": {"3"}})
	if err != nil {
		return "", err
	}
	var names []string
	for _, e := range p.Entries {
		name := e.Value.TaskID
		if done := resource.PercentCell(e.Value.ProgressPct).Text; done != "" {
			name += " (" + done + ")"
		}
		names = append(names, output.Clean(name))
	}
	if more := w.HeldCount - len(names); more > 0 {
		names = append(names, fmt.Sprintf("%d more", more))
	}
	until := "no deadline"
	if !w.DrainDeadline.IsZero() {
		until = output.Duration(max(0, w.DrainDeadline.Sub(s.Now()))) + " left"
	}
	return fmt.Sprintf("  %s: %s, %s", w.WorkerID, strings.Join(names, ", "), until), nil
}
