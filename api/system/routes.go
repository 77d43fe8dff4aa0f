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
			Summary: "Sweep now",
			Description: "Sweeps all shards once, in addition to the sweepers' own sweeps. The counts are of all tenants; machines are " +
				"named in the token's scope only.",
		},
		{
			Method: "POST", Pattern: "/v1/system:release", Op: "releaseBrake", Handle: h.release,
			Access: httpapi.ForControl, Needs: httpapi.MayOperate, LogsItself: true,
			Summary: "Release the mass-expiry brake",
			Description: "For operators who know that the workers that fell silent together are dead: all that the brake holds in this " +
				"tenant and workspace expires now, and the brake holds nothing there for a while. A task or worker whose heartbeats " +
				"arrive meanwhile stays alive. If the brake holds nothing, nothing changes.",
		},
		{
			Method: "POST", Pattern: "/v1/tokens", Op: "createToken", Handle: h.createToken,
			Access: httpapi.ForControl, Needs: httpapi.Anything,
			Summary: "Create a token with fewer rights",
			Description: "Creates a token from the request's control token, with the same scope, queue and subject. Its role may do " +
				"nothing that the request's role may not, and it expires no later. It is valid for an hour, or for ttlMs, 12 hours at " +
				"most. A revocation of the request's token revokes it too, whenever it was created: it counts as issued when the " +
				"request's token was.",
		},
		{
			Method: "POST", Pattern: "/v1/tokens:revoke", Op: "revokeTokens", Handle: h.revokeTokens,
			Access: httpapi.ForControl, Needs: httpapi.MayAdmin, LogsItself: true,
			Summary: "Revoke tokens",
			Description: "Tokens that were issued until now, or until issuedBefore, get 401 from this server at once and from all " +
				"servers within 2 s; tokens that are issued later are valid. A worker whose token was revoked registers again, if its " +
				"enroll token is valid; until then its heartbeats are rejected. A revocation is kept until all tokens that it covers " +
				"have expired. There may be 10,000 revocations at a time, 1,000 of them of one tenant; one more gets 429.",
		},
		{
			Method: "GET", Pattern: "/v1/system", Op: "getSystem", Handle: h.system,
			Access: httpapi.ForControl, Needs: httpapi.MayRead,
			Summary: "Read the state of the deployment",
			Description: "Replicas, shards, Redis servers, brake and reconciler of the whole deployment, at most a second old. A Redis " +
				"server that does not respond has an error and no other field. Summary and findings are those that the CLI and the " +
				"dashboard show: about Lubdub itself, and about the workers and queues of the scope; about queues only if the scope is " +
				"one workspace. A finding that is not ok has a remedy. Codes name what was checked and do not change; messages are for " +
				"people, and do. While no Redis server responds, the answer is a 503 within 3 seconds, which has summary and findings " +
				"too.",
		},
		{
			Method: "GET", Pattern: "/v1/stats", Op: "getStats", Handle: h.stats,
			Access: httpapi.ForControl, Needs: httpapi.MayRead,
			Query:   []string{"steps"},
			Summary: "Count tasks and workers, with rates",
			Description: "Levels are those of the scope: a token for all tenants need not name a tenant, and may name one without a " +
				"workspace. Rates, the last hour and the series are of the whole deployment, counted by its replicas every ten " +
				"seconds; a dead replica is omitted. The levels of the series are shown to a token for all tenants, and to the only " +
				"workspace in a deployment. beatGapRatio is the one of /metrics, of all replicas together. All values are at most a " +
				"second old.",
		},
		{
			Method: "GET", Pattern: "/v1/stats/verdicts", Op: "countVerdicts", Handle: h.verdicts,
			Access: httpapi.ForControl, Needs: httpapi.MayRead,
			Query:   []string{"by", "sinceMs", "reason", "queue", "type"},
			Summary: "Count the attempts that Lubdub ended",
			Description: "Verdicts of the last sinceMs, grouped. They are kept as long as their tasks may be (finished-retention). The " +
				"answer may be a second old, or ten seconds if there are very many. By a label, which is read from the tasks, the " +
				"newest 10,000 verdicts are counted.",
		},
		{
			Method: "GET", Pattern: "/v1/scopes", Op: "listScopes", Handle: h.scopes,
			Access: httpapi.ForControl, Needs: httpapi.MayRead,
			Query:   []string{"order", "pageSize", "pageToken"},
			Summary: "List tenants and workspaces in use",
			Description: "Scopes that have tasks or workers, in the order of their names, for tokens whose workspace is *; tenantId " +
				"chooses one tenant.",
		},
		{
			Method: "GET", Pattern: "/", Op: "index", Handle: h.index,
			Summary:     "List the entry points",
			Description: "A browser, which accepts text/html, is redirected to the dashboard at /ui/. /docs shows this document as a page.",
		},
		{
			Method: "GET", Pattern: "/livez", Op: "livez", Handle: h.livez,
			Summary:     "Check that the process responds",
			Description: "It never sends a request to Redis.",
		},
		{
			Method: "GET", Pattern: "/readyz", Op: "readyz", Handle: h.readyz,
			Summary: "Check that this server is ready",
			Description: "The answer is 503 while the server shuts down. If Redis is not responding, which affects all servers, the " +
				"status is degraded and the answer is still 200, so that a balancer does not remove all servers at once.",
		},
		{
			Method: "GET", Pattern: "/healthz", Op: "healthz", Handle: h.readyz,
			Summary: "The same as /readyz",
		},
		{
			Method: "GET", Pattern: "/version", Op: "version", Handle: h.version,
			Summary: "Read the version of the server",
		},
		{
			Method: "GET", Pattern: "/openapi.json", Op: "openapi", Handle: h.openapi,
			Summary: "Read this document",
		},
	}
}
