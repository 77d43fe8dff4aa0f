package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/lubdub-io/lubdub/internal/cli/output"
	"github.com/lubdub-io/lubdub/sdk/go/client"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

var workers = &kind[v1.Worker]{
	noun: "worker", path: "/v1/workers", entries: "workers", id: func(w *v1.Worker) string { return w.WorkerID },
	columns: []column[v1.Worker]{
		{name: "WORKER", cell: func(w *v1.Worker, _ time.Time) output.Cell { return output.Text(w.WorkerID) }},
		{name: "NAME", cell: func(w *v1.Worker, _ time.Time) output.Cell { return output.Optional(w.Name) }},
		{name: "QUEUE", cell: func(w *v1.Worker, _ time.Time) output.Cell { return output.Text(w.Queue) }},
		{name: "MACHINE", cell: func(w *v1.Worker, _ time.Time) output.Cell { return output.Text(w.MachineID) }},
		{name: "STATUS", cell: func(w *v1.Worker, _ time.Time) output.Cell { return output.Word(w.Status) }},
		{name: "LIVENESS", cell: func(w *v1.Worker, _ time.Time) output.Cell { return output.Word(w.Liveness) }},
		{name: "BEAT", passing: true, cell: func(w *v1.Worker, _ time.Time) output.Cell { return silence(w) }},
		{name: "HOLDS", cell: func(w *v1.Worker, _ time.Time) output.Cell {
			return output.Text(fmt.Sprintf("%d/%d", w.HeldCount, w.MaxConcurrent))
		}},
		{name: "HINDERED", cell: func(w *v1.Worker, _ time.Time) output.Cell {
			return output.Cell{Text: strings.Join(w.UnschedulableReasons, ","), Mood: output.Doubtful}
		}},
		{name: "VERSION", cell: func(w *v1.Worker, _ time.Time) output.Cell { return output.Optional(w.Version) }},
		{name: "AGE", passing: true, cell: func(w *v1.Worker, now time.Time) output.Cell { return output.Age(w.RegisteredAt.Time, now) }},
		{name: "UP24H", wide: true, passing: true, cell: func(w *v1.Worker, _ time.Time) output.Cell {
			return output.Text(fmt.Sprintf("%.1f%%", w.UptimePct24h))
		}},
		{name: "STALE24H", wide: true, cell: func(w *v1.Worker, _ time.Time) output.Cell { return output.Number(w.StaleCount24h) }},
		{name: "FLAPPING", wide: true, cell: func(w *v1.Worker, _ time.Time) output.Cell { return output.Flag(w.Flapping) }},
		{name: "REASON", wide: true, cell: func(w *v1.Worker, _ time.Time) output.Cell { return output.Optional(w.StatusReason) }},
		{name: "TYPES", wide: true, cell: func(w *v1.Worker, _ time.Time) output.Cell { return output.Text(strings.Join(w.Types, ",")) }},
		{name: "LABELS", wide: true, cell: func(w *v1.Worker, _ time.Time) output.Cell { return output.Text(pairs(w.Labels)) }},
	}}

func silence(w *v1.Worker) output.Cell {
	if w.LastHeartbeatAgeMs == nil {
		return output.Cell{}
	}
	return output.Text(output.Milliseconds(*w.LastHeartbeatAgeMs))
}

// WorkerFilter says which workers are meant.
type WorkerFilter struct {
	Queue    string   `predictor:"queue" placeholder:"QUEUE" help:"Queue."`
	Machine  string   `predictor:"machine" placeholder:"ID" help:"Machine."`
	Version  string   `placeholder:"VERSION" help:"Version of their program."`
	Selector []string `short:"l" sep:"none" placeholder:"K=V" help:"Labels, several with commas."`
}

type workerLs struct {
	WorkerFilter `embed:""`
	All          bool   `short:"a" help:"Those that are OFFLINE too."`
	Status       string `predictor:"status" placeholder:"STATUS" help:"ONLINE, DRAINING or OFFLINE."`
	Liveness     string `predictor:"liveness" placeholder:"WORD" help:"FRESH, LATE or LOST."`
	Type         string `placeholder:"TYPE" help:"Type that they run."`
	Runtime      string `placeholder:"RUNTIME" help:"Runtime that they have."`
	Name         string `placeholder:"NAME" help:"Name."`
	Hindered     bool   `help:"Only those that would not get a task now."`
	Flapping     bool   `help:"Only those that flap: they went stale again and again within a day."`
	Sort         string `placeholder:"FIELD" help:"Order: staleCount24h (most often stale first), uptimePct24h (least uptime first) or lastHeartbeatAt (longest silent first)."`
	Silent       bool   `help:"The longest silent first; the same as --sort lastHeartbeatAt."`
	Listing      `embed:""`
	Common       `embed:""`
}

func (c *workerLs) Run(env *Env) error {
	s, err := c.open(env)
	if err != nil {
		return err
	}
	q := query("queue", c.Queue, "machineId", c.Machine, "version", c.Version, "status", strings.ToUpper(c.Status),
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
	if err := addLabels(q, c.Selector); err != nil {
		return err
	}
	if c.All || c.Status != "" {
		return workers.list(s, c.Listing, q)
	}
	if err := workers.list(s, c.Listing, with(q, "ONLINE,DRAINING")); err != nil || c.Watch {
		return err
	}
	offline := with(q, "OFFLINE")
	offline.Set("pageSize", "1")
	hidden, err := workers.page(env.Context, s, offline)
	if err != nil {
		return err
	}
	if hidden.total != nil && *hidden.total > 0 {
		s.note("%s that are OFFLINE are hidden; -a shows them.", output.Count(*hidden.total, "worker"))
	}
	return nil
}

// with asks for workers of a status.
func with(q url.Values, status string) url.Values {
	out := url.Values{"status": {status}}
	for name, values := range q {
		if name != "status" {
			out[name] = values
		}
	}
	return out
}

type workerGet struct {
	Workers []string `arg:"" predictor:"worker" name:"id" help:"Workers, by id or by name."`
	Common  `embed:""`
}

func (c *workerGet) Run(env *Env) error {
	s, err := c.open(env)
	if err != nil {
		return err
	}
	return onEach(s, workers, c.Workers, func(ctx context.Context, id string) (json.RawMessage, *v1.Worker, error) {
		return workerOf(ctx, s, id)
	})
}

// workerOf reads a worker by its id, or by its name where one worker that is not OFFLINE has it.
func workerOf(ctx context.Context, s *session, id string) (json.RawMessage, *v1.Worker, error) {
	raw, w, err := get[v1.Worker](ctx, s, workers.at(id), nil)
	if ExitCode(err) != ExitNotFound {
		return raw, w, err
	}
	named, failed := workers.page(ctx, s, url.Values{"name": {workers.named(id)}, "status": {"ONLINE"}, "pageSize": {"2"}})
	if failed != nil || len(named.entries) != 1 {
		return nil, nil, err
	}
	return named.entries[0].raw, named.entries[0].T, nil
}

// byName adds to the error that no worker has an id which workers have this name.
func byName(ctx context.Context, s *session, name string, err error) error {
	if ExitCode(err) != ExitNotFound {
		return err
	}
	found, failed := workers.page(ctx, s, url.Values{"name": {workers.named(name)}, "status": {"ONLINE"}, "pageSize": {"2"}})
	if failed != nil || len(found.entries) == 0 {
		return err
	}
	var ids []string
	for _, e := range found.entries {
		ids = append(ids, e.T.WorkerID)
	}
	return withHint(err, "; that is the name of "+strings.Join(ids, " and of "))
}

type workerTail struct {
	Worker string `arg:"" predictor:"worker" name:"id" help:"Worker."`
	After  string `placeholder:"WHEN" help:"From when on: a cursor, a time, or how long ago; without it from now."`
	Common `embed:""`
}

func (c *workerTail) Run(env *Env) error {
	return workers.tail(env, &c.Common, c.Worker, client.EventQuery{WorkerID: workers.named(c.Worker)}, c.After)
}

// workerActs is what acts on workers have in common.
type workerActs struct {
	Workers      []string `arg:"" optional:"" predictor:"worker" name:"id" help:"Workers; without any, filters say which."`
	WorkerFilter `embed:""`
	Explained    `embed:""`
	Acting       `embed:""`
	Common       `embed:""`
}

// act does something to workers: to those that are named, or, once it is counted and agreed, to all that filters name. It returns
// the ids of those that it was done to.
func (c *workerActs) act(s *session, verb string, one any, many func(sel v1.WorkerSelector, dry bool) any, extra string) ([]string, error) {
	all, err := labels(c.Selector)
	if err != nil {
		return nil, err
	}
	sel := v1.WorkerSelector{Labels: all, Queue: c.Queue, Version: c.Version, MachineID: c.Machine}
	filtered := selectorText(sel) != "{}" || extra != ""
	switch {
	case len(c.Workers) > 0 && filtered:
		return nil, misusef("name workers or filter them, not both")
	case len(c.Workers) == 0 && !filtered:
		return nil, misusef("name the workers to %s, or say which with --queue, --machine, --version or --selector", verb)
	case len(c.Workers) > 0 && c.DryRun:
		return nil, workers.get(s.env, &c.Common, c.Workers)
	case len(c.Workers) > 0:
		return c.Workers, onEach(s, workers, c.Workers, func(ctx context.Context, id string) (json.RawMessage, *v1.Worker, error) {
			raw, w, err := post[v1.Worker](ctx, s, workers.at(id)+"/"+verb, one)
			return raw, w, byName(ctx, s, id, err)
		})
	}
	ctx, path := s.env.Context, workers.path+":"+verb
	raw, counted, err := post[actedOn](ctx, s, path, many(sel, true))
	if err != nil {
		return nil, err
	}
	which := strings.TrimSpace(strings.Trim(selectorText(sel), "{}") + extra)
	what := fmt.Sprintf("%s %s with %s in %s", verb, output.Count(counted.Matched, "worker"), which, s.scope())
	if c.DryRun {
		return nil, s.counted(raw, "This would %s.", what)
	}
	if counted.Matched == 0 {
		s.note("No worker that is ONLINE or DRAINING matches %s in %s.", which, s.scope())
		return nil, s.countedNothing(raw)
	}
	if err := s.agreed(c.Acting, what); err != nil {
		return nil, err
	}
	raw, done, err := post[actedOn](ctx, s, path, many(sel, false))
	if err != nil {
		return nil, fmt.Errorf("%w\nthe same command goes on with the rest", err)
	}
	changed := output.Grouped(int64(max(done.Done, done.Draining)))
	return done.WorkerIDs, s.counted(raw, "%s of %s: done.", changed, output.Count(done.Matched, "worker"))
}

// actedOn counts what an act on many workers did.
type actedOn struct {
	v1.ActOnWorkersResponse
	Draining int `json:"draining"`
}

type workerResume struct {
	workerActs `embed:""`
}

func (c *workerResume) Run(env *Env) error { return c.simple(env, "resume") }

type workerCordon struct {
	workerActs `embed:""`
}

func (c *workerCordon) Run(env *Env) error { return c.simple(env, "cordon") }

type workerUncordon struct {
	workerActs `embed:""`
}

func (c *workerUncordon) Run(env *Env) error { return c.simple(env, "uncordon") }

func (c *workerActs) simple(env *Env, verb string) error {
	s, err := c.open(env)
	if err != nil {
		return err
	}
	_, err = c.act(s, verb, v1.ReasonRequest{Reason: c.Reason}, func(sel v1.WorkerSelector, dry bool) any {
		return v1.ActOnWorkersRequest{Selector: sel, Reason: c.Reason, DryRun: dry}
	}, "")
	return err
}

type workerOffline struct {
	workerActs `embed:""`
	SilentFor  *time.Duration `placeholder:"DURATION" help:"Those that have been silent for so long, outages left out."`
}

func (c *workerOffline) Run(env *Env) error {
	s, err := c.open(env)
	if err != nil {
		return err
	}
	extra := ""
	if c.SilentFor != nil {
		extra = " silentFor:" + c.SilentFor.String()
	}
	_, err = c.act(s, "offline", v1.ReasonRequest{Reason: c.Reason}, func(sel v1.WorkerSelector, dry bool) any {
		return v1.OfflineWorkersRequest{
			Selector: v1.SilentSelector{WorkerSelector: sel}, SilentForMs: milliseconds(c.SilentFor), Reason: c.Reason, DryRun: dry,
		}
	}, extra)
	return err
}
