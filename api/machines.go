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

// resumeMachine answers POST /v1/machines/{machineId}/resume.
func (c *call) resumeMachine() (int, any, error) {
	var req v1.ReasonRequest
	scope, err := c.reasoned(&req, &req.Reason)
	if err != nil {
		return 0, nil, err
	}
	r, err := c.s.tracker.ResumeMachine(c.context(), scope, c.id, req.Reason)
	if err != nil {
		return 0, nil, err
	}
	return fasthttp.StatusOK, &v1.ResumeMachineResponse{Matched: r.Matched, Resumed: len(r.Workers), WorkerIDs: orEmpty(r.Workers)}, nil
}

func machineView(m *tracker.Machine) *v1.Machine {
	v := &v1.Machine{
		MachineID: m.ID, Status: v1.WorkerStatus(m.Status),
		Workers: v1.MachineCounts{
			Online: m.Workers[tracker.Online], Draining: m.Workers[tracker.Draining], Offline: m.Workers[tracker.Offline],
		},
		LastHeartbeatAt: v1.At(m.LastHeartbeatAt), UptimePct24h: m.Uptime, StaleCount24h: m.StaleCount, Flapping: m.Flapping,
	}
	if d := m.Drain; d != nil {
		v.Drain = &v1.MachineDrain{Since: v1.At(d.Since), Deadline: v1.At(d.Deadline), Reason: orNull(d.Reason)}
	}
	return v
}
