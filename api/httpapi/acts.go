package httpapi

import (
	"cmp"
	"context"
	"log/slog"

	"github.com/lubdub-io/lubdub/tracker/model"
)

// actLines is how many operations on tasks are logged per second; further ones are only counted.
const actLines = 10

// BulkResult is the result of an operation on many objects.
type BulkResult struct {
	DryRun        bool
	Matched, Done int
}

// logAct logs who changed existing objects: cancels, drains, pauses and the like. Creations of tasks and workers are only in events, and a
// few operations are logged by the domain, which knows more about them.
func (req *Request) logAct() {
	r := req.Route
	onTasks := r.Needs&(MayCancel|MayDispatch) != 0
	if req.Bulk != nil && req.Bulk.DryRun {
		return
	}
	if r.Method == "GET" || r.Needs&(MayCancel|MayDispatch|MayOperate|MayAdmin) == 0 || r.LogsItself {
		return
	}
	suppressed := int64(0)
	if onTasks {
		var ok bool
		if suppressed, ok = req.API.logActs.Allow(req.Local()); !ok {
			return
		}
	}
	attrs := []slog.Attr{slog.String("op", r.Op), slog.String("by", req.Caller.actor())}
	if req.ID != "" {
		attrs = append(attrs, slog.String(r.IDField(), req.ID))
	}
	scope := model.Scope{Tenant: cmp.Or(req.Query.Get("tenantId"), req.Caller.Claims.Tenant),
		Workspace: cmp.Or(req.Query.Get("workspaceId"), req.Caller.Claims.Workspace)}
	attrs = append(attrs, scope.LogAttr(), slog.String("requestId", string(req.Ctx.Response.Header.Peek(HeaderRequestID))))
	if req.Bulk != nil {
		attrs = append(attrs, slog.Int("matched", req.Bulk.Matched), slog.Int("done", req.Bulk.Done))
	}
	if suppressed > 0 {
		attrs = append(attrs, slog.Int64("moreNotLogged", suppressed))
	}
	req.API.Logger.LogAttrs(context.Background(), slog.LevelInfo, "act", attrs...)
}
