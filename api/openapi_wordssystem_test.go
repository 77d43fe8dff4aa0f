package api

import (
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

// systemWords are what callers are told of the deployment, and of events.
var systemWords = map[string]words{
	opSweep: {
		tag: "system", summary: "Sweep now", description: "One sweep of everything, whatever the sweepers do by themselves. The counts are of " +
			"every tenant; machines are named in the token's scope only.",
		request: noFields{}, optionalBody: true, answers: map[int]any{200: v1.SweepResponse{}},
	},
	opStats: {
		tag: "system", summary: "What there is, and what goes on",
		description: "Levels are those of the scope: a token that opens all tenants need name none, and may name a tenant alone. Rates, the " +
			"last hour and the series are of the whole deployment, counted by its replicas every ten seconds; one that has died drops out. " +
			"The levels of the series are shown to a token that opens everything, and to the only workspace that there is. beatGapRatio is that " +
			"of /metrics, of all replicas together. At most a second old.",
		answers: map[int]any{200: v1.Stats{}},
	},
	opVerdicts: {
		tag: "system", summary: "Count the attempts that Lubdub ended",
		description: "Of the last sinceMs, grouped. They are kept as long as their tasks may be (finished-retention). The answer may be a " +
			"second old; where there are very many, up to ten. By a label, which is read from the tasks, the newest 10,000 verdicts are counted.",
		answers: map[int]any{200: v1.VerdictCounts{}},
		answerExamples: map[int][]example{200: {{"by machine", `{"since":"2025-01-15T09:05:00.000Z","total":12,"truncated":false,"groups":[` +
			`{"machineId":"host-7","version":"1.2.3","count":12,"lastAt":"2025-01-15T10:04:00.000Z"}]}`}}},
	},
	opSystem: {
		tag: "system", summary: "How the deployment does",
		description: "Replicas, shards, Redis servers, brake and reconciler, of the whole deployment. At most a second old. A Redis server " +
			"that does not answer has an error and nothing else. Summary and findings are the judgement that every surface shows: of Lubdub " +
			"itself, and of the workers and queues of the scope; of queues only where the scope is one workspace. A finding that is not ok has " +
			"a remedy. Codes stand for what was looked at; messages are for people, and change. While no Redis responds the answer is a 503 " +
			"within 3 seconds, which has summary and findings too.",
		answers: map[int]any{200: v1.System{}, 503: []any{v1.SystemUnavailable{}, v1.Error{}}},
	},
	opScopes: {
		tag: "system", summary: "List tenants and workspaces in use",
		description: "Those that have tasks or workers, in the order of their names, for tokens whose workspace is *; tenantId " +
			"chooses one tenant.",
		answers: map[int]any{200: v1.ScopeList{}},
	},
	opRelease: {
		tag: "system", summary: "Release the mass expiry brake",
		description: "For operators who know that what went silent together has died: what the brake holds in this tenant and workspace " +
			"expires now, and nothing is held there for a while. What beats meanwhile lives as ever. Without a brake that holds it changes nothing.",
		request: v1.ReleaseRequest{}, optionalBody: true, requestExamples: []example{{"half an hour", `{"durationMs":1800000}`}},
		answers: map[int]any{200: v1.ReleaseResponse{}},
	},
	opCreateToken: {
		tag: "system", summary: "Make a shorter token",
		description: "From the request's control token another one of the same scope, queue and subject, whose role may nothing that its own " +
			"may not, and which ends no later. It holds an hour, or for ttlMs, 12 hours at most. What takes the request's own token back takes " +
			"this one back too, whenever it was made: it counts as issued when that one was.",
		request: v1.CreateTokenRequest{}, optionalBody: true,
		requestExamples: []example{{"for somebody who only looks", `{"role":"viewer","ttlMs":900000}`}},
		answers:         map[int]any{201: v1.CreateTokenResponse{}},
	},
	opRevoke: {
		tag: "system", summary: "Take tokens back",
		description: "Those that were issued until now, or until issuedBefore, are answered 401 by this server at once and by all within 2 s; " +
			"what is issued later holds. A worker whose token does not hold registers again, if its enroll token does; until then nobody hears " +
			"it. It stands for as long as such a token may hold. At most 10,000 stand at a time, 1,000 of them of one tenant: one more is " +
			"answered 429.",
		request: v1.RevokeTokensRequest{}, requestExamples: []example{{"somebody left", `{"subject":"ann@example.com"}`},
			{"a machine was broken into", `{"workerId":"wkr_01HGW5N7XHJM4GX29KZRXQP6N9000","issuedBefore":"2025-01-15T10:00:00Z"}`}},
		answers: map[int]any{200: v1.RevokeTokensResponse{}},
	},
	opEvents: {
		tag: "events", summary: "What has happened",
		description: "A page of events of all shards, or, where Accept asks for text/event-stream, a stream of them. The cursor resumes both: " +
			"nothing is missed, and what comes twice has the same id. Where events are not kept any more a page has a gap, " +
			"and a stream an event of that name. Pages may be short, or empty, where little passes the filter: more says whether there " +
			"may be more. A stream says every 15 s that it is alive, and where it is. It ends with an event and the cursor to go on from: " +
			"lagged, when its client does not keep up, or end, with a reason: draining, token_expired or token_revoked.",
		answers: map[int]any{200: v1.EventList{}},
	},
	"index": {tag: "system", summary: "Where things are", description: "Of a browser, which asks for text/html, it is the way to /ui/, the " +
		"dashboard. /docs is this document to be read.", answers: map[int]any{200: v1.Index{}}},
	"livez": {tag: "system", summary: "The process answers", description: "Never asks the store.",
		answers: map[int]any{200: v1.Health{}}},
	"readyz": {
		tag: "system", summary: "This server should get work",
		description: "503 while it shuts down. The store's trouble, which is that of all servers, is told as status degraded: a balancer must " +
			"not send nobody anywhere for it.", answers: map[int]any{200: v1.Health{}, 503: v1.Health{}},
	},
	"healthz": {tag: "system", summary: "The same as /readyz", answers: map[int]any{200: v1.Health{}, 503: v1.Health{}}},
	"version": {tag: "system", summary: "What runs here", answers: map[int]any{200: v1.Version{}}},
	"openapi": {tag: "system", summary: "This document", answers: map[int]any{200: nil}},
}
