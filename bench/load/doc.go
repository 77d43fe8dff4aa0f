// Package load is the generator: connections that send rendered requests as fast as answers come (closed loop) or by
// a schedule (open loop), and histograms of what came back. It shares its cores with what it measures, so it is
// cheap: one goroutine and one plain socket for each connection, no allocation for a request. It knows the shape of
// HTTP answers and nothing of what the requests say.
package load
