package sweep

import (
	"maps"
	"slices"
	"sync"
	"time"
)

// timeouts are the heartbeat timeouts in use, as far as a sweeper knows of them. Rounds over tasks and the brake's censuses
// share them, those of several nodes concurrently; mu guards all of it.
type timeouts struct {
	mu    sync.Mutex
	inUse [][]string         // by shard, ms, sorted, as it was last peeked at
	idle  []map[string]int64 // by shard: since when, wall ms, no attempt has lived by a timeout
}

func newTimeouts(shards int) *timeouts {
	return &timeouts{inUse: make([][]string, shards), idle: make([]map[string]int64, shards)}
}

// Of returns those that are known of a shard.
func (t *timeouts) Of(shard int) []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.inUse[shard]
}

// Learn keeps the timeouts that are in use; it reports whether there are new ones.
func (t *timeouts) Learn(shard int, inUse []string) (more bool) {
	inUse = slices.DeleteFunc(inUse, func(t string) bool { return t == sentinel })
	slices.Sort(inUse)
	t.mu.Lock()
	defer t.mu.Unlock()
	known := t.inUse[shard]
	if slices.Equal(known, inUse) {
		return false
	}
	t.inUse[shard] = inUse
	maps.DeleteFunc(t.idle[shard], func(t string, _ int64) bool { _, in := slices.BinarySearch(inUse, t); return !in })
	return slices.ContainsFunc(inUse, func(t string) bool { _, in := slices.BinarySearch(known, t); return !in })
}

// idleFor returns how long this sweeper has seen nobody live by a timeout; now is wall ms.
func (t *timeouts) idleFor(shard int, timeout string, now int64) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.idle[shard] == nil {
		t.idle[shard] = map[string]int64{}
	}
	since, seen := t.idle[shard][timeout]
	if !seen || since > now { // the clock was put back
		since = now
		t.idle[shard][timeout] = since
	}
	return time.Duration(now-since) * time.Millisecond
}

// lives notes that somebody lives by a timeout.
func (t *timeouts) lives(shard int, timeout string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.idle[shard], timeout)
}
