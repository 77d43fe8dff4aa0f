// Package stats counts what there is and what is going on: by scope, over the last hour, and how replicas, shards and Redis
// do. What it answers may be a second old, and costs what one answer does however many ask.
package stats
