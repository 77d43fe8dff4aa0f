package resource

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/lubdub-io/lubdub/internal/cli/exit"
	"github.com/lubdub-io/lubdub/internal/cli/output"
	"github.com/lubdub-io/lubdub/internal/cli/session"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

var Workers = &Kind[v1.Worker]{
	Noun: "worker", Path: "/v1/workers", Entries: "workers", ID: func(w *v1.Worker) string { return w.WorkerID },
	Columns: []Column[v1.Worker]{
		{Name: "WORKER", Cell: func(w *v1.Worker, _ time.Time) output.Cell { return output.Text(w.WorkerID) }},
		{Name: "NAME", Cell: func(w *v1.Worker, _ time.Time) output.Cell { return output.Optional(w.Name) }},
		{Name: "QUEUE", Cell: func(w *v1.Worker, _ time.Time) output.Cell { return output.Text(w.Queue) }},
		{Name: "MACHINE", Cell: func(w *v1.Worker, _ time.Time) output.Cell { return output.Text(w.MachineID) }},
		{Name: "STATUS", Cell: func(w *v1.Worker, _ time.Time) output.Cell { return output.Word(w.Status) }},
		{Name: "LIVENESS", Cell: func(w *v1.Worker, _ time.Time) output.Cell {
			if w.Status == v1.Offline {
				return output.Text("")
			}
			return output.Word(w.Liveness)
		}},
		{Name: "BEAT", Volatile: true, Cell: func(w *v1.Worker, _ time.Time) output.Cell { return Silence(w) }},
		{Name: "HOLDS", Cell: func(w *v1.Worker, _ time.Time) output.Cell {
			return output.Text(fmt.Sprintf("%d/%d", w.HeldCount, w.MaxConcurrent))
		}},
		{Name: "HINDERED", Cell: func(w *v1.Worker, _ time.Time) output.Cell {
			return output.Cell{Text: strings.Join(w.UnschedulableReasons, ","), Mood: output.Doubtful}
		}},
		{Name: "VERSION", Cell: func(w *v1.Worker, _ time.Time) output.Cell { return output.Optional(w.Version) }},
		{Name: "AGE", Volatile: true, Cell: func(w *v1.Worker, now time.Time) output.Cell { return output.Age(w.RegisteredAt.Time, now) }},
		{Name: "UP24H", Wide: true, Volatile: true, Cell: func(w *v1.Worker, _ time.Time) output.Cell {
			return output.Text(fmt.Sprintf("%.1f%%", w.UptimePct24h))
		}},
		{Name: "STALE24H", Wide: true, Cell: func(w *v1.Worker, _ time.Time) output.Cell { return output.Number(w.StaleCount24h) }},
		{Name: "FLAPPING", Wide: true, Cell: func(w *v1.Worker, _ time.Time) output.Cell { return output.Flag(w.Flapping) }},
		{Name: "REASON", Wide: true, Cell: func(w *v1.Worker, _ time.Time) output.Cell { return output.Optional(w.StatusReason) }},
		{Name: "TYPES", Wide: true, Cell: func(w *v1.Worker, _ time.Time) output.Cell { return output.Text(strings.Join(w.Types, ",")) }},
		{Name: "LABELS", Wide: true, Cell: func(w *v1.Worker, _ time.Time) output.Cell { return output.Text(formatLabels(w.Labels)) }},
	}}

// Silence shows how long ago the last heartbeat of a worker was.
func Silence(w *v1.Worker) output.Cell {
	if w.LastHeartbeatAgeMs == nil {
		return output.Cell{}
	}
	return output.Text(output.Milliseconds(*w.LastHeartbeatAgeMs))
}

// FindWorker reads a worker by its id, or by its name where one worker that is not OFFLINE has it.
func FindWorker(ctx context.Context, s *session.Session, id string) (json.RawMessage, *v1.Worker, error) {
	raw, w, err := session.Get[v1.Worker](ctx, s, Workers.PathOf(id), nil)
	if exit.Code(err) != exit.NotFound {
		return raw, w, err
	}
	named, failed := OnlineWorkersNamed(ctx, s, id)
	if failed != nil || len(named) != 1 {
		return nil, nil, err
	}
	return named[0].Raw, named[0].Value, nil
}

// OnlineWorkersNamed reads workers that are ONLINE under a name, two at most.
func OnlineWorkersNamed(ctx context.Context, s *session.Session, name string) ([]Entry[v1.Worker], error) {
	p, err := Workers.ReadPage(ctx, s, url.Values{"name": {Workers.BareID(name)}, "status": {"ONLINE"}, "pageSize": {"2"}})
	if err != nil {
		return nil, err
	}
	return p.Entries, nil
}
