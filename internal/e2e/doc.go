// Package e2e tests the binary as its users run it: the tutorial as printed, on an embedded Redis and
// on a real one behind several replicas.
package e2e
