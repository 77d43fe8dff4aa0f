package system

import (
	"strings"
	"time"

	"github.com/lubdub-io/lubdub/api/httpapi"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
	"github.com/lubdub-io/lubdub/tracker/stats"
)

// Routes returns the routes of the package.
func (h *Handlers) Routes() []*httpapi.Route {
	return []*httpapi.Route{
		{
			Method: "POST", Pattern: "/v1/system:sweep", Op: "sweep", Handle: h.sweep,
			Tag: "system", Body: struct{}{}, OptionalBody: true, Answers: map[int]any{200: v1.SweepResponse{}},
			Access: httpapi.ForControl, Needs: httpapi.MayAdmin,
			Summary: "Sweep now",
			Description: "Sweeps all shards once, in addition to the sweepers' own sweeps. The counts are of all tenants; machines are " +
				"named in the token's scope only.",
		},
		{
			Method: "POST", Pattern: "/v1/system:release", Op: "releaseBrake", Handle: h.release,
			Tag: "system", Body: v1.ReleaseRequest{}, OptionalBody: true, Answers: map[int]any{200: v1.ReleaseResponse{}},
			Examples: map[string]string{"half an hour": `{"durationMs":1800000}`},
			Access:   httpapi.ForControl, Needs: httpapi.MayOperate, LogsItself: true,
			Summary: "Release the mass-expiry brake",
			Description: "For operators who know that the workers that fell silent together are dead: all that the brake holds in this " +
				"tenant and workspace expires now, and the brake holds nothing there for a while. A task or worker whose heartbeats " +
				"arrive meanwhile stays alive. If the brake holds nothing, nothing changes.",
		},
		{
			Method: "POST", Pattern: "/v1/tokens", Op: "createToken", Handle: h.createToken,
			Tag: "system", Body: v1.CreateTokenRequest{}, OptionalBody: true, Answers: map[int]any{201: v1.CreateTokenResponse{}},
			Examples: map[string]string{"a token that only reads": `{"role":"viewer","ttlMs":900000}`},
			Access:   httpapi.ForControl, Needs: httpapi.Anything,
			Summary: "Create a token with no more rights than the request's",
			Description: "It has the scope, queue and subject of the request's control token. Its role may do " +
				"nothing that the request's role may not, and it expires no later. It is valid for an hour, or for ttlMs, 12 hours at " +
				"most. A revocation of the request's token revokes it too, whenever it was created: it counts as issued when the " +
				"request's token was.",
		},
		{
			Method: "POST", Pattern: "/v1/tokens:revoke", Op: "revokeTokens", Handle: h.revokeTokens,
			Tag: "system", Body: v1.RevokeTokensRequest{}, Answers: map[int]any{200: v1.RevokeTokensResponse{}},
			Examples: map[string]string{
				"a person has left":         `{"subject":"ann@example.com"}`,
				"a machine was broken into": `{"workerId":"wkr_01HGW5N7XHJM4GX29KZRXQP6N9000","issuedBefore":"2025-01-15T10:00:00Z"}`,
			},
			Access: httpapi.ForControl, Needs: httpapi.MayAdmin, LogsItself: true,
			Summary: "Revoke tokens",
			Description: "Tokens that were issued until now, or until issuedBefore, get 401 from this server at once and from all " +
				"servers within 2 s; tokens that are issued later are valid. A worker whose token was revoked registers again, if its " +
				"enroll token is valid; until then its heartbeats are rejected. A revocation is kept until all tokens that it covers " +
				"have expired. There may be 10,000 revocations at a time, 1,000 of them of one tenant; one more gets 429.",
		},
		{
			Method: "GET", Pattern: "/v1/system", Op: "getSystem", Handle: h.system,
			Tag: "system", Answers: map[int]any{200: v1.System{}, 503: []any{v1.SystemUnavailable{}, v1.Error{}}},
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
			Query: []httpapi.Param{steps},
			Tag:   "system", Answers: map[int]any{200: v1.Stats{}},
			Access: httpapi.ForControl, Needs: httpapi.MayRead,
			Summary: "Count tasks and workers, with rates",
			Description: "Levels are those of the scope: a token for all tenants need not name a tenant, and may name one without a " +
				"workspace. Rates, the last hour and the series are of the whole deployment, counted by its replicas every ten " +
				"seconds; a dead replica is omitted. The levels of the series are shown to a token for all tenants, and to the only " +
				"workspace in a deployment. beatGapRatio is the one of /metrics, of all replicas together. All values are at most a " +
				"second old.",
		},
		{
			Method: "GET", Pattern: "/v1/stats/verdicts", Op: "countVerdicts", Handle: h.verdicts,
			Query: []httpapi.Param{groupBy, sinceMs, httpapi.ParamReason, httpapi.ParamQueue, httpapi.ParamType},
			Tag:   "system", Answers: map[int]any{200: v1.VerdictCounts{}},
			AnswerExamples: map[int]map[string]string{200: {"by machine": `{"since":"2025-01-15T09:05:00.000Z","total":12,` +
				`"truncated":false,"groups":[{"machineId":"host-7","version":"1.2.3","count":12,"lastAt":"2025-01-15T10:04:00.000Z"}]}`}},
			Access: httpapi.ForControl, Needs: httpapi.MayRead,
			Summary: "Count the attempts that Lubdub ended",
			Description: "Verdicts of the last sinceMs, grouped. They are kept as long as their tasks may be (finished-retention). The " +
				"answer may be a second old, or ten seconds if there are very many. By a label, which is read from the tasks, the " +
				"newest 10,000 verdicts are counted.",
		},
		{
			Method: "GET", Pattern: "/v1/scopes", Op: "listScopes", Handle: h.scopes,
			Query: []httpapi.Param{httpapi.ParamOrder, httpapi.ParamPageSize, httpapi.ParamPageToken},
			Tag:   "system", Answers: map[int]any{200: v1.ScopeList{}},
			Access: httpapi.ForControl, Needs: httpapi.MayRead,
			Summary: "List tenants and workspaces in use",
			Description: "Scopes that have tasks or workers, in the order of their names, for tokens whose workspace is *: those of one " +
				"tenant if the request names one.",
		},
		{
			Method: "GET", Pattern: "/", Op: "index", Handle: h.index,
			Tag: "system", Answers: map[int]any{200: v1.Index{}},
			Summary:     "List the paths of the API, its documents and the dashboard",
			Description: "A browser, which accepts text/html, is redirected to the dashboard.",
		},
		{
			Method: "GET", Pattern: "/livez", Op: "livez", Handle: h.livez,
			Tag: "system", Answers: map[int]any{200: v1.Health{}},
			Summary:     "Check that the process responds",
			Description: "It never sends a request to Redis.",
		},
		{
			Method: "GET", Pattern: "/readyz", Op: "readyz", Handle: h.readyz,
			Tag: "system", Answers: map[int]any{200: v1.Health{}, 503: v1.Health{}},
			Summary: "Check that this server is ready",
			Description: "The answer is 503 while the server shuts down. If Redis is not responding, which affects all servers, the " +
				"status is degraded and the answer is still 200, so that a balancer does not remove all servers at once.",
		},
		{
			Method: "GET", Pattern: "/healthz", Op: "healthz", Handle: h.readyz,
			Tag: "system", Answers: map[int]any{200: v1.Health{}, 503: v1.Health{}},
			Summary: "Check that this server is ready, as /readyz does",
		},
		{
			Method: "GET", Pattern: "/version", Op: "version", Handle: h.version,
			Tag: "system", Answers: map[int]any{200: v1.Version{}},
			Summary: "Read the version of the server",
		},
		{
			Method: "GET", Pattern: "/openapi.json", Op: "openapi", Handle: h.openapi,
			Tag: "system", Answers: map[int]any{200: nil},
			Summary: "Read this document",
		},
	}
}

// The parameters of these routes.
var (
	steps = httpapi.Param{
		Name: "steps", Schema: httpapi.Between(1, stats.MaxSteps),
		Description: "Only so many of the newest steps of the series; the last hour is the sum of all. Default: all.",
	}
	groupBy = httpapi.Param{
		Name: "by", Commas: true,
		Schema: httpapi.ListOf(httpapi.Of("string").With("pattern", "^("+strings.Join(stats.VerdictGroups, "|")+"|label:.+)$")).
			With("uniqueItems", true),
		Description: "What to group by, with commas between them; nothing: one group of all. label:<name> groups by a label of the tasks.",
	}
	sinceMs = httpapi.Param{
		Name: "sinceMs", Schema: httpapi.Between(1, (365*24*time.Hour).Milliseconds()).With("default", time.Hour.Milliseconds()),
		Description: "How far back to count.",
	}
)
