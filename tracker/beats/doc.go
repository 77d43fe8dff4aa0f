// Package beats takes an attempt through its life: started, heartbeat, completed. Beats of all callers go to Redis in batches: while one
// batch is written, the next one collects. Beats also drive shard time, on which every liveness decision is based.
package beats
