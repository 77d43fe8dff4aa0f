// Package queues leads from a created task to the worker that claims it: who waits, what is ready, who gets it, once.
package queues
