package api

// Routes returns the routes of the package.
func (h *systemHandlers) Routes() []*route {
	return []*route{
		{method: "POST", pattern: "/v1/system:sweep", op: "sweep", access: forControl, needs: mayAdmin, handle: h.sweep},
		{
			method: "POST", pattern: "/v1/system:release", op: "releaseBrake", access: forControl, needs: mayOperate,
			logsItself: true, handle: h.release,
		},
		{method: "POST", pattern: "/v1/tokens", op: "createToken", access: forControl, needs: anything, handle: h.createToken},
		{
			method: "POST", pattern: "/v1/tokens:revoke", op: "revokeTokens", access: forControl, needs: mayAdmin,
			logsItself: true, handle: h.revokeTokens,
		},
		{method: "GET", pattern: "/v1/system", op: "getSystem", access: forControl, needs: mayRead, handle: h.system},
		{
			method: "GET", pattern: "/v1/stats", op: "getStats", access: forControl, needs: mayRead,
			handle: h.stats,
			query:  []string{"steps"},
		},
		{
			method: "GET", pattern: "/v1/stats/verdicts", op: "countVerdicts", access: forControl, needs: mayRead,
			handle: h.verdicts,
			query:  []string{"by", "sinceMs", "reason", "queue", "type"},
		},
		{
			method: "GET", pattern: "/v1/scopes", op: "listScopes", access: forControl, needs: mayRead,
			handle: h.scopes,
			query:  []string{"order", "pageSize", "pageToken"},
		},
		{method: "GET", pattern: "/", op: "index", handle: h.index},
		{method: "GET", pattern: "/livez", op: "livez", handle: h.livez},
		{method: "GET", pattern: "/readyz", op: "readyz", handle: h.readyz},
		{method: "GET", pattern: "/healthz", op: "healthz", handle: h.readyz},
		{method: "GET", pattern: "/version", op: "version", handle: h.version},
		{method: "GET", pattern: "/openapi.json", op: "openapi", handle: h.openapi},
	}
}
