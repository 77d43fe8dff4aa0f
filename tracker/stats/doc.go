// Package stats counts tasks and workers by scope, collects the activity of the last hour, and reports the state of replicas,
// shards and Redis. Its results may be a second old and cost the same for any number of callers.
package stats
