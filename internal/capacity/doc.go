// Package capacity computes what a fleet needs (cores for the API, Redis servers, memory, connections and shards) from the measured cost
// of a beat. It knows the benchmark's report but not the implementation.
package capacity
