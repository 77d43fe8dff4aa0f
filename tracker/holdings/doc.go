// Package holdings is about what a worker holds: the entries of its attempts, how its inventory compares with them, the notices that it
// must receive about them, and their recovery after its end.
package holdings
