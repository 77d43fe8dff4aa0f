package api

import (
	"cmp"
	"context"
	"log/slog"

	"github.com/lubdub-io/lubdub/tracker/model"
)

// actLines are how many acts on tasks are logged in a second; the others are only counted.
const actLines = 10

// many is what an act on many has done.
type many struct {
	dryRun        bool
	matched, done int
}

// logAct writes down what somebody did to what is there, and who: cancels, drains, pauses and the like. What makes tasks and workers is
// told in events only, and a few acts are logged by the domain, which knows more of them.
func (req *request) logAct() {
	r := req.route
	onTasks := r.needs&(mayCancel|mayDispatch) != 0
	if req.many != nil && req.many.dryRun {
		return
	}
	if r.method == "GET" || r.needs&(mayCancel|mayDispatch|mayOperate|mayAdmin) == 0 || r.logsItself {
		return
	}
	suppressed := int64(0)
	if onTasks {
		var ok bool
		if suppressed, ok = req.api.logActs.Allow(req.local()); !ok {
			return
		}
	}
	attrs := []slog.Attr{slog.String("op", r.op), slog.String("by", req.who.actor())}
	if req.id != "" {
		attrs = append(attrs, slog.String(r.idField(), req.id))
	}
	scope := model.Scope{Tenant: cmp.Or(req.query.Get("tenantId"), req.who.claims.Tenant),
		Workspace: cmp.Or(req.query.Get("workspaceId"), req.who.claims.Workspace)}
	attrs = append(attrs, scope.LogAttr(), slog.String("requestId", string(req.ctx.Response.Header.Peek(headerRequestID))))
	if req.many != nil {
		attrs = append(attrs, slog.Int("matched", req.many.matched), slog.Int("done", req.many.done))
	}
	if suppressed > 0 {
		attrs = append(attrs, slog.Int64("moreNotLogged", suppressed))
	}
	req.api.Log.LogAttrs(context.Background(), slog.LevelInfo, "act", attrs...)
}
