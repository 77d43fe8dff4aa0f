package events

import (
	"encoding/json"
	"strings"

	"github.com/valyala/fasthttp"

	"github.com/lubdub-io/lubdub/api/convert"
	"github.com/lubdub-io/lubdub/api/httpapi"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
	"github.com/lubdub-io/lubdub/tracker/events"
)

// get answers GET /v1/events, with a page or a stream.
func (h *Handlers) get(req *httpapi.Request) (int, any, error) {
	p := httpapi.Parameters{Values: req.Query}
	filter, err := eventFilter(req, &p)
	if err != nil {
		return 0, nil, err
	}
	if p.Has("after") && p.Get("after") == "" {
		return 0, nil, httpapi.InvalidField("after", "after is empty; use a cursor, now or a time in RFC 3339, or omit it")
	}
	if wantsStream(&req.Ctx.Request.Header) {
		return h.stream(req, &p, filter)
	}
	return h.page(req, &p, filter)
}

func (h *Handlers) page(req *httpapi.Request, p *httpapi.Parameters, filter events.Filter) (int, any, error) {
	q := events.Query{Filter: filter, After: p.Get("after"), Back: httpapi.WordOf(p, "order", "asc", "desc") == "desc", Size: p.PageSize()}
	if p.Err != nil {
		return 0, nil, p.Err
	}
	page, err := h.Events.List(req.Context(), q)
	if err != nil {
		return 0, nil, err
	}
	list := eventList{Events: make([]json.RawMessage, len(page.Events)), Next: page.Next, More: page.More, Gap: convert.Gap(page.Gap)}
	for i, e := range page.Events {
		list.Events[i] = e.AppendJSON(nil)
	}
	return fasthttp.StatusOK, list, nil
}

// eventList is a v1.EventList whose events are already encoded.
type eventList struct {
	Events []json.RawMessage `json:"events"`
	Next   string            `json:"next"`
	More   bool              `json:"more"`
	Gap    *v1.EventGap      `json:"gap,omitempty"`
}

// eventFilter reads the filter from the query.
func eventFilter(req *httpapi.Request, p *httpapi.Parameters) (f events.Filter, err error) {
	if f.Tenant, f.Workspace, err = req.OpenScope(); err != nil {
		return f, err
	}
	for _, list := range p.Values["type"] {
		f.Types = append(f.Types, strings.Split(list, ",")...)
	}
	f.Subject, f.RunID, f.Queue, f.TaskType = p.ID("subject"), p.ID("runId"), p.ID("queue"), p.ID("taskType")
	f.WorkerID, f.MachineID = p.ID("workerId"), p.ID("machineId")
	if err := f.Validate(); err != nil {
		return f, err
	}
	if f.Subject != "" && (f.Tenant == "" || f.Workspace == "") {
		p.Refuse(httpapi.InvalidField("subject", "subject needs tenantId and workspaceId, which the token leaves open: say whose it is"))
	}
	return f, p.Err
}
