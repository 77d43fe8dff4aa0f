package sweep

import (
	"maps"
	"slices"
	"sync"
	"time"
)

// timeouts are the heartbeat timeouts in use that a sweeper knows. Its rounds over tasks, which run concurrently for several
// nodes, and the brake's censuses share them, under mu.
type timeouts struct {
	mu    sync.Mutex
	inUse [][]string         // by shard, ms, sorted, as of the last scan
	idle  []map[string]int64 // by shard: since when, wall ms, no attempt has used a timeout
}

func newTimeouts(shards int) *timeouts {
	return &timeouts{inUse: make([][]string, shards), idle: make([]map[string]int64, shards)}
}

// Of returns the known timeouts of a shard.
func (t *timeouts) Of(shard int) []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.inUse[shard]
}

// Learn stores the timeouts in use and reports whether any are new.
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

// idleFor returns for how long this sweeper has seen no attempt with a timeout; now is wall ms.
func (t *timeouts) idleFor(shard int, timeout string, now int64) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.idle[shard] == nil {
		t.idle[shard] = map[string]int64{}
	}
	since, seen := t.idle[shard][timeout]
	if !seen || since > now { // the clock was set back
		since = now
		t.idle[shard][timeout] = since
	}
	return time.Duration(now-since) * time.Millisecond
}

// lives records that an attempt uses a timeout.
func (t *timeouts) lives(shard int, timeout string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.idle[shard], timeout)
}
