package worker

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/lubdub-io/lubdub/internal/cli/exit"
	"github.com/lubdub-io/lubdub/internal/cli/output"
	"github.com/lubdub-io/lubdub/internal/cli/resource"
	"github.com/lubdub-io/lubdub/internal/cli/session"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

// byName adds to the error that no worker has an id which workers have this name.
func byName(ctx context.Context, s *session.Session, name string, err error) error {
	if exit.Code(err) != exit.NotFound {
		return err
	}
	found, failed := resource.OnlineWorkersNamed(ctx, s, name)
	if failed != nil || len(found) == 0 {
		return err
	}
	var ids []string
	for _, e := range found {
		ids = append(ids, e.Value.WorkerID)
	}
	return resource.WithHint(err, "; that is the name of "+strings.Join(ids, " and of "))
}

// acts is what acts on workers have in common.
type acts struct {
	Workers             []string `arg:"" optional:"" predictor:"worker" name:"id" help:"Workers; without ids, those that match the filters."`
	Filter              `embed:""`
	session.ReasonFlags `embed:""`
	session.ActFlags    `embed:""`
	session.Flags       `embed:""`
}

// act does something to workers: to those that are named, or, once it is counted and agreed, to all that filters name. It returns
// the ids of those that it was done to.
func (c *acts) act(
	s *session.Session, verb string, one any, many func(sel v1.WorkerSelector, dry bool) any, extra string,
) ([]string, error) {
	all, err := resource.ParseLabels(c.Selector)
	if err != nil {
		return nil, err
	}
	sel := v1.WorkerSelector{Labels: all, Queue: c.Queue, Version: c.Version, MachineID: c.Machine}
	filtered := resource.FormatSelector(sel) != "{}" || extra != ""
	switch {
	case len(c.Workers) > 0 && filtered:
		return nil, exit.Misusef("name workers or filter them, not both")
	case len(c.Workers) == 0 && !filtered:
		return nil, exit.Misusef("name the workers to %s, or say which with --queue, --machine, --version or --selector", verb)
	case len(c.Workers) > 0 && c.DryRun:
		return nil, resource.Workers.Get(s.Env, &c.Flags, c.Workers)
	case len(c.Workers) > 0:
		post := func(ctx context.Context, id string) (json.RawMessage, *v1.Worker, error) {
			raw, w, err := session.Post[v1.Worker](ctx, s, resource.Workers.PathOf(id)+"/"+verb, one)
			return raw, w, byName(ctx, s, id, err)
		}
		return c.Workers, resource.OnEach(s, resource.Workers, c.Workers, post)
	}
	ctx, path := s.Env.Context, resource.Workers.Path+":"+verb
	raw, counted, err := session.Post[actResult](ctx, s, path, many(sel, true))
	if err != nil {
		return nil, err
	}
	which := strings.TrimSpace(strings.Trim(resource.FormatSelector(sel), "{}") + extra)
	what := fmt.Sprintf("%s %s with %s in %s", verb, output.Count(counted.Matched, "worker"), which, s.Scope())
	if c.DryRun {
		return nil, s.ShowResult(raw, "This would %s.", what)
	}
	if counted.Matched == 0 {
		s.Note("No worker that is ONLINE or DRAINING matches %s in %s.", which, s.Scope())
		return nil, s.ShowAnswer(raw)
	}
	if err := s.Confirm(c.ActFlags, what); err != nil {
		return nil, err
	}
	raw, done, err := session.Post[actResult](ctx, s, path, many(sel, false))
	if err != nil {
		return nil, fmt.Errorf("%w\nrun the same command again to continue", err)
	}
	changed := output.Grouped(int64(max(done.Done, done.Draining)))
	return done.WorkerIDs, s.ShowResult(raw, "%s of %s: done.", changed, output.Count(done.Matched, "worker"))
}

// actResult counts what an act on many workers did.
type actResult struct {
	v1.ActOnWorkersResponse
	Draining int `json:"draining"`
}

type Resume struct {
	acts `embed:""`
}

func (c *Resume) Run(env *session.Env) error { return c.post(env, "resume") }

type Cordon struct {
	acts `embed:""`
}

func (c *Cordon) Run(env *session.Env) error { return c.post(env, "cordon") }

type Uncordon struct {
	acts `embed:""`
}

func (c *Uncordon) Run(env *session.Env) error { return c.post(env, "uncordon") }

func (c *acts) post(env *session.Env, verb string) error {
	s, err := c.Open(env)
	if err != nil {
		return err
	}
	_, err = c.act(s, verb, v1.ReasonRequest{Reason: c.Reason}, func(sel v1.WorkerSelector, dry bool) any {
		return v1.ActOnWorkersRequest{Selector: sel, Reason: c.Reason, DryRun: dry}
	}, "")
	return err
}

type Offline struct {
	acts      `embed:""`
	SilentFor *time.Duration `placeholder:"DURATION" help:"Only workers that have been silent for this long, outages excluded."`
}

func (c *Offline) Run(env *session.Env) error {
	s, err := c.Open(env)
	if err != nil {
		return err
	}
	extra := ""
	if c.SilentFor != nil {
		extra = " silentFor:" + c.SilentFor.String()
	}
	_, err = c.act(s, "offline", v1.ReasonRequest{Reason: c.Reason}, func(sel v1.WorkerSelector, dry bool) any {
		return v1.OfflineWorkersRequest{
			Selector: v1.SilentSelector{WorkerSelector: sel}, SilentForMs: session.Milliseconds(c.SilentFor), Reason: c.Reason, DryRun: dry,
		}
	}, extra)
	return err
}
