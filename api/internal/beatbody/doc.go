// Package beatbody reads the JSON of a heartbeat in one pass without allocating: a request body, an item of a batch, or an entry
// of a worker's inventory.
package beatbody
