// Package httpapi is the core of the HTTP API, and knows none of its resources: the table of routes, who may call them and how
// often, how bodies and queries are read, and how requests are answered, refused and counted.
//
// A request's way: Wire scans the raw headers once, Serve finds its Route, authorizes it in the order of the contract, and calls the
// route's handler with a Request; the handler reads its input from that, asks the domain, and returns a body of package v1 or a
// Refusal.
//
// Ownership: a slice that comes from a fasthttp request dies with its handler. Whatever outlives the handler (the token cache, a
// pending task) is a copy.
package httpapi
