// Package queues hands waiting tasks to the workers that claim them: it tracks the waiting claims and the ready tasks, and gives
// each task to one claim, once.
package queues
