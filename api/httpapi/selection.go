package httpapi

import (
	"context"
	"errors"
	"log/slog"

	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
	"github.com/lubdub-io/lubdub/tracker/model"
)

// SelectionRefusal adds the counts to the refusal of a selection that found no worker.
func (req *Request) SelectionRefusal(err error) error {
	var selection *model.SelectionError
	if !errors.As(err, &selection) {
		return err
	}
	r := RefusalOf("select", err)
	if r.Body.Error == v1.CodeNoFreshWorkers {
		req.logNoFreshWorkers(selection)
	}
	rejected := Rejected(selection.Rejected)
	r.Body.Considered, r.Body.Rejected = &selection.Considered, &rejected
	return r
}

// Rejected returns how many workers each filter of a selection rejected.
func Rejected(n map[model.Filter]int) v1.Rejected {
	return v1.Rejected{
		Runtime: n[model.ByRuntime], Type: n[model.ByType], Labels: n[model.ByLabels],
		Status: n[model.ByStatus], Cordoned: n[model.ByCordon], Stale: n[model.ByFreshness], Full: n[model.ByCapacity],
	}
}

// logNoFreshWorkers logs that a selection or a placement found no worker with fresh heartbeats.
func (req *Request) logNoFreshWorkers(of *model.SelectionError) {
	suppressed, ok := req.API.logNoWorkers.Allow(req.Local())
	if !ok {
		return
	}
	req.API.Logger.LogAttrs(context.Background(), slog.LevelWarn, "no workers with fresh heartbeats available",
		slog.String("op", req.Route.Op), slog.Int("considered", of.Considered), slog.Int("stale", of.Rejected[model.ByFreshness]),
		slog.String("by", req.Caller.actor()), slog.Int64("moreNotLogged", suppressed))
}
