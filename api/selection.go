package api

import (
	"context"
	"errors"
	"log/slog"

	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
	"github.com/lubdub-io/lubdub/tracker/model"
)

// selectionRefusal adds the counts to the refusal of a selection that left nobody.
func (req *request) selectionRefusal(err error) error {
	var nobody *model.SelectionError
	if !errors.As(err, &nobody) {
		return err
	}
	r := refusalOf("select", err)
	if r.body.Error == v1.CodeNoFreshWorkers {
		req.logNoFreshWorkers(nobody)
	}
	rejected := rejectedView(nobody.Rejected)
	r.body.Considered, r.body.Rejected = &nobody.Considered, &rejected
	return r
}

// rejectedView returns which filters of a selection rejected how many workers.
func rejectedView(n map[model.Filter]int) v1.Rejected {
	return v1.Rejected{
		Runtime: n[model.ByRuntime], Type: n[model.ByType], Labels: n[model.ByLabels],
		Status: n[model.ByStatus], Cordoned: n[model.ByCordon], Stale: n[model.ByFreshness], Full: n[model.ByCapacity],
	}
}

// logNoFreshWorkers writes down that a selection or a placement found nobody whose beats are fresh.
func (req *request) logNoFreshWorkers(of *model.SelectionError) {
	suppressed, ok := req.api.logNobody.Allow(req.local())
	if !ok {
		return
	}
	req.api.Log.LogAttrs(context.Background(), slog.LevelWarn, "no workers with fresh heartbeats available",
		slog.String("op", req.route.op), slog.Int("considered", of.Considered), slog.Int("stale", of.Rejected[model.ByFreshness]),
		slog.String("by", req.who.actor()), slog.Int64("moreNotLogged", suppressed))
}
