// Package beatbody reads the JSON of a heartbeat in one pass without allocating: a body of its own, an item of a batch, or an entry
// of a worker's inventory.
package beatbody
