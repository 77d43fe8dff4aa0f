package system

import (
	"time"

	"github.com/valyala/fasthttp"

	"github.com/lubdub-io/lubdub/api/httpapi"
	"github.com/lubdub-io/lubdub/api/token"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

// sweep answers POST /v1/system:sweep. A sweep concerns every tenant, so a token for all tenants need not name one; its counts are for
// any admin, names only for those whose token allows them.
func (h *Handlers) sweep(req *httpapi.Request) (int, any, error) {
	if err := req.OptionalBody(&struct{}{}); err != nil {
		return 0, nil, err
	}
	if req.Caller.Claims.Tenant != token.Wildcard || len(req.Query) > 0 {
		if _, err := req.Scope("", ""); err != nil {
			return 0, nil, err
		}
	}
	r, err := h.Sweeper.Sweep(req.Context())
	if err != nil {
		return 0, nil, err
	}
	machines := []string{}
	for _, m := range r.Machines {
		if opens(req.Caller.Claims.Tenant, m.Scope.Tenant) && opens(req.Caller.Claims.Workspace, m.Scope.Workspace) {
			machines = append(machines, m.ID)
		}
	}
	return fasthttp.StatusOK, &v1.SweepResponse{Success: true, Results: v1.SweepResults{
		Zombies: v1.SweptTasks{
			Success: true, ZombieCount: r.Zombies, TimedOutCount: r.TimedOut, RequeuedCount: r.Requeued, ReadyCount: r.Ready,
			DeletedCount: r.Removed,
		},
		StaleWorkers: v1.SweptWorkers{
			Success: true, DeletedCount: r.RemovedWorkers, MarkedOfflineCount: r.StaleWorkers, DrainedCount: r.DrainedWorkers,
			RecoveredCount: r.Recovered, AffectedMachineIDs: machines,
		},
	}}, nil
}

// opens reports whether a token's tenant or workspace, possibly a wildcard, includes another.
func opens(own, half string) bool { return own == token.Wildcard || own == half }

// release answers POST /v1/system:release.
func (h *Handlers) release(req *httpapi.Request) (int, any, error) {
	var body v1.ReleaseRequest
	scope, err := req.Optional(&body)
	if err != nil {
		return 0, nil, err
	}
	var d httpapi.Durations
	lasts := d.Positive("durationMs", body.DurationMs, time.Millisecond)
	if d.Err != nil {
		return 0, nil, d.Err
	}
	r, err := h.Brake.Release(req.Context(), scope, lasts)
	if err != nil {
		return 0, nil, err
	}
	return fasthttp.StatusOK, &v1.ReleaseResponse{TasksReleased: r.Tasks, WorkersReleased: r.Workers, ReleasedUntil: v1.At(r.Until)}, nil
}
