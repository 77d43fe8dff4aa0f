// Package beats answers the heartbeats of tasks, alone and in batches, on fasthttp and on the event loop.
package beats
