// Package api is the HTTP front end of Lubdub: routes, tokens, codecs, the error table and the OpenAPI
// document, on fasthttp. It knows no Redis; what it needs of the domain is the interface Tracker.
//
// A request's way through the package: Handler scans the raw headers once (wire.go), recognises the beat of
// one task before any routing (heartbeat.go) and sends everything else through the route table (routes.go).
// A route's handler is a method of request (request.go): it reads its input, asks the Tracker
// and answers with a body of package v1 or with a refusal (errors.go).
//
// Ownership: a slice that comes from a fasthttp request dies with its handler. Whatever outlives the handler
// (the token cache, a pending task) is a copy.
package api
