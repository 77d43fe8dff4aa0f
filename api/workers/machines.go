package workers

import (
	"github.com/valyala/fasthttp"

	"github.com/lubdub-io/lubdub/api/convert"
	"github.com/lubdub-io/lubdub/api/httpapi"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/workers"
)

// getMachine answers GET /v1/machines/{machineId}.
func (h *Handlers) getMachine(req *httpapi.Request) (int, any, error) {
	scope, err := req.Scope("", "")
	if err != nil {
		return 0, nil, err
	}
	m, err := h.Machines.Machine(req.Context(), scope, req.ID)
	if err != nil {
		return 0, nil, err
	}
	return fasthttp.StatusOK, machineView(m), nil
}

// listMachines answers GET /v1/machines.
func (h *Handlers) listMachines(req *httpapi.Request) (int, any, error) {
	scope, err := req.Scope("", "")
	if err != nil {
		return 0, nil, err
	}
	p := httpapi.Parameters{Values: req.Query}
	filter := workers.MachineFilter{Scope: scope, Status: httpapi.WordOf(&p, "status", model.WorkerStatuses...), Descending: p.Descending()}
	paged := filter
	if paged.PageSize, paged.After = p.Page(filter); p.Err != nil {
		return 0, nil, p.Err
	}
	page, err := h.Machines.Machines(req.Context(), paged)
	if err != nil {
		return 0, nil, err
	}
	list := v1.MachineList{Machines: make([]v1.Machine, len(page.Machines)), TotalCount: page.Total,
		NextPageToken: httpapi.PageToken(filter, page.Next)}
	for i, m := range page.Machines {
		list.Machines[i] = *machineView(m)
	}
	return fasthttp.StatusOK, list, nil
}

// drainMachine answers POST /v1/machines/{machineId}/drain.
func (h *Handlers) drainMachine(req *httpapi.Request) (int, any, error) {
	scope, d, err := drainRequest(req)
	if err != nil {
		return 0, nil, err
	}
	return drained(req, false)(h.Machines.DrainMachine(req.Context(), scope, req.ID, d))
}

// offlineMachine answers POST /v1/machines/{machineId}/offline.
func (h *Handlers) offlineMachine(req *httpapi.Request) (int, any, error) {
	var body v1.ReasonRequest
	scope, err := reasoned(req, &body, &body.Reason)
	if err != nil {
		return 0, nil, err
	}
	return acted(req, false)(h.Machines.OfflineMachine(req.Context(), scope, req.ID, body.Reason))
}

// resumeMachine answers POST /v1/machines/{machineId}/resume.
func (h *Handlers) resumeMachine(req *httpapi.Request) (int, any, error) {
	var body v1.ReasonRequest
	scope, err := reasoned(req, &body, &body.Reason)
	if err != nil {
		return 0, nil, err
	}
	r, err := h.Machines.ResumeMachine(req.Context(), scope, req.ID, body.Reason)
	if err != nil {
		return 0, nil, err
	}
	return fasthttp.StatusOK, &v1.ResumeMachineResponse{
		Matched: r.Matched, Resumed: len(r.Workers), WorkerIDs: convert.OrEmpty(r.Workers),
	}, nil
}

func machineView(m *workers.Machine) *v1.Machine {
	v := &v1.Machine{
		MachineID: m.ID, Status: v1.WorkerStatus(m.Status),
		Workers: v1.MachineCounts{
			Online: m.Workers[model.Online], Draining: m.Workers[model.Draining], Offline: m.Workers[model.Offline],
		},
		LastHeartbeatAt: v1.At(m.LastHeartbeatAt), UptimePct24h: m.Uptime, StaleCount24h: m.StaleCount, Flapping: m.Flapping,
	}
	if d := m.Drain; d != nil {
		v.Drain = &v1.MachineDrain{Since: v1.At(d.Since), Deadline: v1.At(d.Deadline), Reason: convert.OrNull(d.Reason)}
	}
	v.Hold = holdView(m.Hold)
	return v
}

func holdView(h *model.Hold) *v1.Hold {
	if h == nil {
		return nil
	}
	return &v1.Hold{Since: v1.At(h.Since), Reason: convert.OrNull(h.Reason)}
}
