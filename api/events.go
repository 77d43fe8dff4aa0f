package api

import (
	"encoding/json"
	"strings"

	"github.com/valyala/fasthttp"

	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
	"github.com/lubdub-io/lubdub/tracker/events"
)

// events answers GET /v1/events, with a page or a stream.
func (h *eventHandlers) events(req *request) (int, any, error) {
	p := parameters{Values: req.query}
	filter, err := eventFilter(req, &p)
	if err != nil {
		return 0, nil, err
	}
	if p.Has("after") && p.Get("after") == "" {
		return 0, nil, invalidField("after", "after is empty; use a cursor, now or a time in RFC 3339, or leave it out")
	}
	if wantsStream(&req.ctx.Request.Header) {
		return h.streamEvents(req, &p, filter)
	}
	return h.eventPage(req, &p, filter)
}

func (h *eventHandlers) eventPage(req *request, p *parameters, filter events.Filter) (int, any, error) {
	q := events.Query{Filter: filter, After: p.Get("after"), Back: wordOf(p, "order", "asc", "desc") == "desc", Size: p.pageSize()}
	if p.err != nil {
		return 0, nil, p.err
	}
	page, err := h.Events.List(req.context(), q)
	if err != nil {
		return 0, nil, err
	}
	list := eventList{Events: make([]json.RawMessage, len(page.Events)), Next: page.Next, More: page.More, Gap: gapView(page.Gap)}
	for i, e := range page.Events {
		list.Events[i] = e.AppendJSON(nil)
	}
	return fasthttp.StatusOK, list, nil
}

// eventList is a v1.EventList whose events are encoded already.
type eventList struct {
	Events []json.RawMessage `json:"events"`
	Next   string            `json:"next"`
	More   bool              `json:"more"`
	Gap    *v1.EventGap      `json:"gap,omitempty"`
}

// eventFilter reads which events are asked for.
func eventFilter(req *request, p *parameters) (f events.Filter, err error) {
	if f.Tenant, f.Workspace, err = req.openScope(); err != nil {
		return f, err
	}
	for _, list := range p.Values["type"] {
		f.Types = append(f.Types, strings.Split(list, ",")...)
	}
	f.Subject, f.RunID, f.Queue, f.TaskType = p.id("subject"), p.id("runId"), p.id("queue"), p.id("taskType")
	f.WorkerID, f.MachineID = p.id("workerId"), p.id("machineId")
	if err := f.Validate(); err != nil {
		return f, err
	}
	if f.Subject != "" && (f.Tenant == "" || f.Workspace == "") {
		p.refuse(invalidField("subject", "subject needs tenantId and workspaceId, which the token leaves open: say whose it is"))
	}
	return f, p.err
}
