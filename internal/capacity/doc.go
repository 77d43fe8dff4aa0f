// Package capacity works out what a fleet needs (cores for the API, Redis servers, memory, connections and shards) from what a
// beat was measured to cost. It knows the benchmark's report and nothing of the inside.
package capacity
