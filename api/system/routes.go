package system

import (
	"github.com/lubdub-io/lubdub/api/httpapi"
)

// Routes returns the routes of the package.
func (h *Handlers) Routes() []*httpapi.Route {
	return []*httpapi.Route{
		{Method: "POST", Pattern: "/v1/system:sweep", Op: "sweep", Access: httpapi.ForControl, Needs: httpapi.MayAdmin, Handle: h.sweep},
		{
			Method: "POST", Pattern: "/v1/system:release", Op: "releaseBrake", Access: httpapi.ForControl, Needs: httpapi.MayOperate,
			LogsItself: true, Handle: h.release,
		},
		{Method: "POST", Pattern: "/v1/tokens", Op: "createToken", Access: httpapi.ForControl, Needs: httpapi.Anything, Handle: h.createToken},
		{
			Method: "POST", Pattern: "/v1/tokens:revoke", Op: "revokeTokens", Access: httpapi.ForControl, Needs: httpapi.MayAdmin,
			LogsItself: true, Handle: h.revokeTokens,
		},
		{Method: "GET", Pattern: "/v1/system", Op: "getSystem", Access: httpapi.ForControl, Needs: httpapi.MayRead, Handle: h.system},
		{
			Method: "GET", Pattern: "/v1/stats", Op: "getStats", Access: httpapi.ForControl, Needs: httpapi.MayRead,
			Handle: h.stats,
			Query:  []string{"steps"},
		},
		{
			Method: "GET", Pattern: "/v1/stats/verdicts", Op: "countVerdicts", Access: httpapi.ForControl, Needs: httpapi.MayRead,
			Handle: h.verdicts,
			Query:  []string{"by", "sinceMs", "reason", "queue", "type"},
		},
		{
			Method: "GET", Pattern: "/v1/scopes", Op: "listScopes", Access: httpapi.ForControl, Needs: httpapi.MayRead,
			Handle: h.scopes,
			Query:  []string{"order", "pageSize", "pageToken"},
		},
		{Method: "GET", Pattern: "/", Op: "index", Handle: h.index},
		{Method: "GET", Pattern: "/livez", Op: "livez", Handle: h.livez},
		{Method: "GET", Pattern: "/readyz", Op: "readyz", Handle: h.readyz},
		{Method: "GET", Pattern: "/healthz", Op: "healthz", Handle: h.readyz},
		{Method: "GET", Pattern: "/version", Op: "version", Handle: h.version},
		{Method: "GET", Pattern: "/openapi.json", Op: "openapi", Handle: h.openapi},
	}
}
