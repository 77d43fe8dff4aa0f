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
			Description: "One sweep of everything, whatever the sweepers do by themselves. The counts are of every tenant; " +
				"machines are named in the token's scope only.",
		},
		{
			Method: "POST", Pattern: "/v1/system:release", Op: "releaseBrake", Handle: h.release,
			Tag: "system", Body: v1.ReleaseRequest{}, OptionalBody: true, Answers: map[int]any{200: v1.ReleaseResponse{}},
			Examples: map[string]string{"half an hour": `{"durationMs":1800000}`},
			Access:   httpapi.ForControl, Needs: httpapi.MayOperate, LogsItself: true,
			Summary: "Release the mass expiry brake",
			Description: "For operators who know that what went silent together has died: what the brake holds in this tenant and " +
				"workspace expires now, and nothing is held there for a while. What beats meanwhile lives as ever. Without a brake " +
				"that holds it changes nothing.",
		},
		{
			Method: "POST", Pattern: "/v1/tokens", Op: "createToken", Handle: h.createToken,
			Tag: "system", Body: v1.CreateTokenRequest{}, OptionalBody: true, Answers: map[int]any{201: v1.CreateTokenResponse{}},
			Examples: map[string]string{"for somebody who only looks": `{"role":"viewer","ttlMs":900000}`},
			Access:   httpapi.ForControl, Needs: httpapi.Anything,
			Summary: "Make a shorter token",
			Description: "From the request's control token another one of the same scope, queue and subject, whose role may " +
				"nothing that its own may not, and which ends no later. It holds an hour, or for ttlMs, 12 hours at most. What " +
				"takes the request's own token back takes this one back too, whenever it was made: it counts as issued when that " +
				"one was.",
		},
		{
			Method: "POST", Pattern: "/v1/tokens:revoke", Op: "revokeTokens", Handle: h.revokeTokens,
			Tag: "system", Body: v1.RevokeTokensRequest{}, Answers: map[int]any{200: v1.RevokeTokensResponse{}},
			Examples: map[string]string{
				"somebody left":             `{"subject":"ann@example.com"}`,
				"a machine was broken into": `{"workerId":"wkr_01HGW5N7XHJM4GX29KZRXQP6N9000","issuedBefore":"2025-01-15T10:00:00Z"}`,
			},
			Access: httpapi.ForControl, Needs: httpapi.MayAdmin, LogsItself: true,
			Summary: "Take tokens back",
			Description: "Those that were issued until now, or until issuedBefore, are answered 401 by this server at once and by " +
				"all within 2 s; what is issued later holds. A worker whose token does not hold registers again, if its enroll " +
				"token does; until then nobody hears it. It stands for as long as such a token may hold. At most 10,000 stand at a " +
				"time, 1,000 of them of one tenant: one more is answered 429.",
		},
		{
			Method: "GET", Pattern: "/v1/system", Op: "getSystem", Handle: h.system,
			Tag: "system", Answers: map[int]any{200: v1.System{}, 503: []any{v1.SystemUnavailable{}, v1.Error{}}},
			Access: httpapi.ForControl, Needs: httpapi.MayRead,
			Summary: "How the deployment does",
			Description: "Replicas, shards, Redis servers, brake and reconciler, of the whole deployment. At most a second old. A " +
				"Redis server that does not answer has an error and nothing else. Summary and findings are the judgement that " +
				"every surface shows: of Lubdub itself, and of the workers and queues of the scope; of queues only where the scope " +
				"is one workspace. A finding that is not ok has a remedy. Codes stand for what was looked at; messages are for " +
				"people, and change. While no Redis responds the answer is a 503 within 3 seconds, which has summary and findings " +
				"too.",
		},
		{
			Method: "GET", Pattern: "/v1/stats", Op: "getStats", Handle: h.stats,
			Query: []httpapi.Param{steps},
			Tag:   "system", Answers: map[int]any{200: v1.Stats{}},
			Access: httpapi.ForControl, Needs: httpapi.MayRead,
			Summary: "What there is, and what goes on",
			Description: "Levels are those of the scope: a token that opens all tenants need name none, and may name a tenant " +
				"alone. Rates, the last hour and the series are of the whole deployment, counted by its replicas every ten " +
				"seconds; one that has died drops out. The levels of the series are shown to a token that opens everything, and to " +
				"the only workspace that there is. beatGapRatio is that of /metrics, of all replicas together. At most a second old.",
		},
		{
			Method: "GET", Pattern: "/v1/stats/verdicts", Op: "countVerdicts", Handle: h.verdicts,
			Query: []httpapi.Param{groupBy, sinceMs, httpapi.ParamReason, httpapi.ParamQueue, httpapi.ParamType},
			Tag:   "system", Answers: map[int]any{200: v1.VerdictCounts{}},
			AnswerExamples: map[int]map[string]string{200: {"by machine": `{"since":"2025-01-15T09:05:00.000Z","total":12,` +
				`"truncated":false,"groups":[{"machineId":"host-7","version":"1.2.3","count":12,"lastAt":"2025-01-15T10:04:00.000Z"}]}`}},
			Access: httpapi.ForControl, Needs: httpapi.MayRead,
			Summary: "Count the attempts that Lubdub ended",
			Description: "Of the last sinceMs, grouped. They are kept as long as their tasks may be (finished-retention). The " +
				"answer may be a second old; where there are very many, up to ten. By a label, which is read from the tasks, the " +
				"newest 10,000 verdicts are counted.",
		},
		{
			Method: "GET", Pattern: "/v1/scopes", Op: "listScopes", Handle: h.scopes,
			Query: []httpapi.Param{httpapi.ParamOrder, httpapi.ParamPageSize, httpapi.ParamPageToken},
			Tag:   "system", Answers: map[int]any{200: v1.ScopeList{}},
			Access: httpapi.ForControl, Needs: httpapi.MayRead,
			Summary: "List tenants and workspaces in use",
			Description: "Those that have tasks or workers, in the order of their names, for tokens whose workspace is *; tenantId " +
				"chooses one tenant.",
		},
		{
			Method: "GET", Pattern: "/", Op: "index", Handle: h.index,
			Tag: "system", Answers: map[int]any{200: v1.Index{}},
			Summary: "Where things are",
			Description: "Of a browser, which asks for text/html, it is the way to /ui/, the dashboard. /docs is this document to " +
				"be read.",
		},
		{
			Method: "GET", Pattern: "/livez", Op: "livez", Handle: h.livez,
			Tag: "system", Answers: map[int]any{200: v1.Health{}},
			Summary:     "The process answers",
			Description: "Never asks the store.",
		},
		{
			Method: "GET", Pattern: "/readyz", Op: "readyz", Handle: h.readyz,
			Tag: "system", Answers: map[int]any{200: v1.Health{}, 503: v1.Health{}},
			Summary: "This server should get work",
			Description: "503 while it shuts down. The store's trouble, which is that of all servers, is told as status degraded: " +
				"a balancer must not send nobody anywhere for it.",
		},
		{
			Method: "GET", Pattern: "/healthz", Op: "healthz", Handle: h.readyz,
			Tag: "system", Answers: map[int]any{200: v1.Health{}, 503: v1.Health{}},
			Summary: "The same as /readyz",
		},
		{
			Method: "GET", Pattern: "/version", Op: "version", Handle: h.version,
			Tag: "system", Answers: map[int]any{200: v1.Version{}},
			Summary: "What runs here",
		},
		{
			Method: "GET", Pattern: "/openapi.json", Op: "openapi", Handle: h.openapi,
			Tag: "system", Answers: map[int]any{200: nil},
			Summary: "This document",
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
