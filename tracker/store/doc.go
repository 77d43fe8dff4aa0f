// Package store is Redis as the domain sees it: shards on nodes, lanes to them, and the scripts that run there, on one
// server, behind Sentinel or on Cluster. It says when an answer is too late, when a write is safe, and in which version of
// the stored format the store is. It is the only room that knows go-redis, and it knows nothing of what scripts mean.
package store
