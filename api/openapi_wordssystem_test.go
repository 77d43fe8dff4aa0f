package api

import (
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

// systemWords are the descriptions of the deployment and of events.
var systemWords = map[string]words{
	opSweep: {
		tag: "system", request: noFields{}, optionalBody: true, answers: map[int]any{200: v1.SweepResponse{}},
	},
	opStats: {
		tag: "system", answers: map[int]any{200: v1.Stats{}},
	},
	opVerdicts: {
		tag: "system", answers: map[int]any{200: v1.VerdictCounts{}},
		answerExamples: map[int][]example{200: {{"by machine", `{"since":"2025-01-15T09:05:00.000Z","total":12,"truncated":false,"groups":[` +
			`{"machineId":"host-7","version":"1.2.3","count":12,"lastAt":"2025-01-15T10:04:00.000Z"}]}`}}},
	},
	opSystem: {
		tag: "system", answers: map[int]any{200: v1.System{}, 503: []any{v1.SystemUnavailable{}, v1.Error{}}},
	},
	opScopes: {
		tag: "system", answers: map[int]any{200: v1.ScopeList{}},
	},
	opRelease: {
		tag: "system", request: v1.ReleaseRequest{}, optionalBody: true, requestExamples: []example{{"half an hour", `{"durationMs":1800000}`}},
		answers: map[int]any{200: v1.ReleaseResponse{}},
	},
	opCreateToken: {
		tag: "system", request: v1.CreateTokenRequest{}, optionalBody: true,
		requestExamples: []example{{"for somebody who only looks", `{"role":"viewer","ttlMs":900000}`}},
		answers:         map[int]any{201: v1.CreateTokenResponse{}},
	},
	opRevoke: {
		tag: "system", request: v1.RevokeTokensRequest{}, requestExamples: []example{{"somebody left", `{"subject":"ann@example.com"}`},
			{"a machine was broken into", `{"workerId":"wkr_01HGW5N7XHJM4GX29KZRXQP6N9000","issuedBefore":"2025-01-15T10:00:00Z"}`}},
		answers: map[int]any{200: v1.RevokeTokensResponse{}},
	},
	opEvents: {
		tag: "events", answers: map[int]any{200: v1.EventList{}},
	},
	"index": {tag: "system", answers: map[int]any{200: v1.Index{}}},
	"livez": {tag: "system", answers: map[int]any{200: v1.Health{}}},
	"readyz": {
		tag: "system", answers: map[int]any{200: v1.Health{}, 503: v1.Health{}},
	},
	"healthz": {tag: "system", answers: map[int]any{200: v1.Health{}, 503: v1.Health{}}},
	"version": {tag: "system", answers: map[int]any{200: v1.Version{}}},
	"openapi": {tag: "system", answers: map[int]any{200: nil}},
}
