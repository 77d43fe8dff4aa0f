// Package httpapi is the core of the HTTP API, and knows none of its resources. It contains the route table, authorization and limits, the
// decoding of bodies and queries, and the answers, refusals and metrics.
//
// A request is processed in this order: Wire scans the raw headers once, Serve finds its Route, authorizes it in the order of the contract,
// and calls the route's handler with a Request; the handler reads its input from that, calls the domain, and returns a body of package v1
// or a Refusal.
//
// Ownership: a slice that comes from a fasthttp request is valid only until its handler returns. Whatever outlives the handler (the
// token cache, a pending task) is a copy.
package httpapi
