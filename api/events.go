package api

import (
	"encoding/json"
	"strings"

	"github.com/valyala/fasthttp"

	"github.com/lubdub-io/lubdub/api/token"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
	"github.com/lubdub-io/lubdub/tracker/events"
)

// events answers GET /v1/events, with a page or a stream.
func (req *request) events() (int, any, error) {
	p := parameters{Values: req.query}
	filter, err := req.eventFilter(&p)
	if err != nil {
		return 0, nil, err
	}
	if p.Has("after") && p.Get("after") == "" {
		return 0, nil, invalidField("after", "after is empty; use a cursor, now or a time in RFC 3339, or leave it out")
	}
	if wantsStream(&req.ctx.Request.Header) {
		return req.streamEvents(&p, filter)
	}
	return req.eventPage(&p, filter)
}

func (req *request) eventPage(p *parameters, filter events.Filter) (int, any, error) {
	q := events.Query{Filter: filter, After: p.Get("after"), Back: wordOf(p, "order", "asc", "desc") == "desc", Size: p.pageSize()}
	if p.err != nil {
		return 0, nil, p.err
	}
	page, err := req.s.services.Events.List(req.context(), q)
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

func gapView(g *events.Gap) *v1.EventGap {
	if g == nil {
		return nil
	}
	return &v1.EventGap{From: v1.At(g.From), To: v1.At(g.To), Shards: g.Shards}
}

// eventFilter reads which events are asked for.
func (req *request) eventFilter(p *parameters) (f events.Filter, err error) {
	if f.Tenant, f.Workspace, err = req.eventScope(); err != nil {
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

// eventScope is the scope whose events are asked for. A half that the token leaves open may be left open, "".
func (req *request) eventScope() (tenant, workspace string, err error) {
	half := func(field, own string) (string, error) {
		if own == token.Wildcard && !req.query.Has(field) {
			return "", nil
		}
		return req.half(field, "", own)
	}
	if tenant, err = half("tenantId", req.who.claims.Tenant); err != nil {
		return "", "", err
	}
	if workspace, err = half("workspaceId", req.who.claims.Workspace); err != nil {
		return "", "", err
	}
	if tenant != "" {
		if r := req.s.tenantCalls.take(tenant, nil, req.local()); r != nil {
			return "", "", r
		}
	}
	return tenant, workspace, nil
}
