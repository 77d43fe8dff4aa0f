// Package sweep finds what has gone silent or has come due and ends it: zombies, timeouts, workers, drains. It recovers what
// ended workers held and places again what was meant for them.
package sweep
