// Package exchange answers the route with which a worker does everything in one request: it reports progress and results, sends its
// heartbeat and claims tasks. It combines the handlers of these calls.
package exchange
