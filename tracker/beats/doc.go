// Package beats takes an attempt through its life: started, heartbeat, completed. Beats of all callers go to Redis in batches,
// the next one collecting while the one before it is under way; and they drive shard time, by which everyone's liveness is
// judged.
package beats
