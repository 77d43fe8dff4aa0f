// Package store is Redis as the domain sees it: shards on nodes, lanes to them, and the scripts that run there, on one server, behind
// Sentinel or on Cluster. It decides when an answer is too late, when a write is safe, and which version of the stored format the store
// has. It is the only package that uses go-redis, and it does not know what scripts mean.
package store
