package system

import (
	"github.com/lubdub-io/lubdub/api/httpapi"
)

// Routes returns the routes of the package.
func (h *Handlers) Routes() []*httpapi.Route {
	return []*httpapi.Route{
		{
			Method: "POST", Pattern: "/v1/system:sweep", Op: "sweep", Handle: h.sweep,
			Access: httpapi.ForControl, Needs: httpapi.MayAdmin,
		},
		{
			Method: "POST", Pattern: "/v1/system:release", Op: "releaseBrake", Handle: h.release,
			Access: httpapi.ForControl, Needs: httpapi.MayOperate, LogsItself: true,
		},
		{
			Method: "POST", Pattern: "/v1/tokens", Op: "createToken", Handle: h.createToken,
			Access: httpapi.ForControl, Needs: httpapi.Anything,
		},
		{
			Method: "POST", Pattern: "/v1/tokens:revoke", Op: "revokeTokens", Handle: h.revokeTokens,
			Access: httpapi.ForControl, Needs: httpapi.MayAdmin, LogsItself: true,
		},
		{
			Method: "GET", Pattern: "/v1/system", Op: "getSystem", Handle: h.system,
			Access: httpapi.ForControl, Needs: httpapi.MayRead,
		},
		{
			Method: "GET", Pattern: "/v1/stats", Op: "getStats", Handle: h.stats,
			Access: httpapi.ForControl, Needs: httpapi.MayRead,
			Query: []string{"steps"},
		},
		{
			Method: "GET", Pattern: "/v1/stats/verdicts", Op: "countVerdicts", Handle: h.verdicts,
			Access: httpapi.ForControl, Needs: httpapi.MayRead,
			Query: []string{"by", "sinceMs", "reason", "queue", "type"},
		},
		{
			Method: "GET", Pattern: "/v1/scopes", Op: "listScopes", Handle: h.scopes,
			Access: httpapi.ForControl, Needs: httpapi.MayRead,
			Query: []string{"order", "pageSize", "pageToken"},
		},
		{Method: "GET", Pattern: "/", Op: "index", Handle: h.index},
		{Method: "GET", Pattern: "/livez", Op: "livez", Handle: h.livez},
		{Method: "GET", Pattern: "/readyz", Op: "readyz", Handle: h.readyz},
		{Method: "GET", Pattern: "/healthz", Op: "healthz", Handle: h.readyz},
		{Method: "GET", Pattern: "/version", Op: "version", Handle: h.version},
		{Method: "GET", Pattern: "/openapi.json", Op: "openapi", Handle: h.openapi},
	}
}
