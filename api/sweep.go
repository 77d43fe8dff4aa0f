package api

import (
	"github.com/valyala/fasthttp"

	v1 "github.com/lubdub-io/lubdub/api/v1"
)

// sweep answers POST /v1/system:sweep. A sweep is about every tenant, so the token must be for all of them.
func (c *call) sweep() (int, any, error) {
	if c.control.Tenant != Wildcard || c.control.Workspace != Wildcard {
		return 0, nil, forbidden("A sweep looks at every tenant and workspace; use an admin token for all of them: lubdub token --role admin --tenant '*' --workspace '*'")
	}
	r, err := c.s.tracker.Sweep(c.context())
	if err != nil {
		return 0, nil, err
	}
	return fasthttp.StatusOK, &v1.SweepResponse{Success: true, Results: v1.SweepResults{
		Zombies: v1.SweptTasks{
			Success: true, ZombieCount: r.Zombies, TimedOutCount: r.TimedOut, RequeuedCount: r.Requeued, ReadyCount: r.Ready, DeletedCount: r.Removed,
		},
		StaleWorkers: v1.SweptWorkers{
			Success: true, DeletedCount: r.RemovedWorkers, MarkedOfflineCount: r.StaleWorkers, DrainedCount: r.DrainedWorkers,
			RecoveredCount: r.Recovered, AffectedMachineIDs: orEmpty(r.Machines),
		},
	}}, nil
}
