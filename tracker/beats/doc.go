// Package beats is the way of a heartbeat: started, beat, completed. Beats of all callers go to Redis in batches, one flush
// collecting while the one before it is under way; and shard time, by which everyone lives, runs on them.
package beats
