// Package sweep finds what has gone silent or has come due and ends it: zombies, timeouts, workers, drains. It recovers what
// ended workers held, places again what was meant for them, and repairs what a store that lost writes left behind.
package sweep
