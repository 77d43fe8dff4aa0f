package api

import (
	"github.com/valyala/fasthttp"

	v1 "github.com/lubdub-io/lubdub/api/v1"
	"github.com/lubdub-io/lubdub/tracker"
)

// getMachine answers GET /v1/machines/{machineId}.
func (c *call) getMachine() (int, any, error) {
	scope, err := c.scope("", "")
	if err != nil {
		return 0, nil, err
	}
	m, err := c.s.tracker.Machine(c.context(), scope, c.id)
	if err != nil {
		return 0, nil, err
	}
	return fasthttp.StatusOK, machineView(m), nil
}

// listMachines answers GET /v1/machines.
func (c *call) listMachines() (int, any, error) {
	scope, err := c.scope("", "")
	if err != nil {
		return 0, nil, err
	}
	f := tracker.MachineFilter{Scope: scope}
	bound := f // what its page tokens are bound to
	if f.PageSize, err = c.pageSize(); err != nil {
		return 0, nil, err
	}
	if c.query.Has("pageToken") {
		if f.After, err = afterIn(bound, c.query.Get("pageToken")); err != nil {
			return 0, nil, err
		}
	}
	page, err := c.s.tracker.Machines(c.context(), f)
	if err != nil {
		return 0, nil, err
	}
	list := v1.MachineList{Machines: make([]v1.Machine, len(page.Machines)), TotalCount: page.Total}
	for i, m := range page.Machines {
		list.Machines[i] = *machineView(m)
	}
	if page.Next != "" {
		list.NextPageToken = pageTokenOf(bound, page.Next)
	}
	return fasthttp.StatusOK, list, nil
}

// drainMachine answers POST /v1/machines/{machineId}/drain.
func (c *call) drainMachine() (int, any, error) {
	var req v1.DrainRequest
	scope, err := c.optional(&req)
	if err != nil {
		return 0, nil, err
	}
	d, err := c.drain(&req)
	if err != nil {
		return 0, nil, err
	}
	return drainedBody(false)(c.s.tracker.DrainMachine(c.context(), scope, c.id, d))
}

func machineView(m *tracker.Machine) *v1.Machine {
	return &v1.Machine{
		MachineID: m.ID, Status: v1.WorkerStatus(m.Status),
		Workers: v1.MachineCounts{
			Online: m.Workers[tracker.Online], Draining: m.Workers[tracker.Draining], Offline: m.Workers[tracker.Offline],
		},
		LastHeartbeatAt: v1.At(m.LastHeartbeatAt), UptimePct24h: m.Uptime, StaleCount24h: m.StaleCount, Flapping: m.Flapping,
	}
}
