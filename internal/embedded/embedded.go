// Package embedded runs a Redis inside the process, so that Lubdub can be tried without installing one.
//
// It is miniredis: the same scripts run on it, at about a tenth of the speed, on one core, and all data is lost when the process ends.
// The package knows nothing of Lubdub.
package embedded

import (
	"crypto/rand"
	"fmt"
	"sync"
	"time"

	"github.com/alicebob/miniredis/v2"
)

// Limits for a deployment on an embedded Redis. It runs a few thousand scripts a second, so a queue that a real one would empty in
// a moment delays requests for seconds; with these, overload is reported early, as 503.
const (
	MaxPendingBeats = 1024
	MaxPendingCalls = 256
)

// Shards is a suitable number of shards. Each costs some twenty scripts a second when idle, and every script is compiled again on each
// run: sixteen would keep half a core busy for nothing.
const Shards = 2

// EventsPerShard is how many events a shard keeps by default: they use this process's own memory.
const EventsPerShard = 10_000

// Caveat is what a user must know, in one line.
var Caveat = fmt.Sprintf("embedded Redis: only to try Lubdub. Nothing persists, one process, at most %d heartbeats and %d other calls "+
	"wait; for more, run a Redis and pass --redis redis://…", MaxPendingBeats, MaxPendingCalls)

// Redis is a running server. Close it when it is no longer used.
type Redis struct {
	server *miniredis.Miniredis
	url    string
	close  sync.Once
	closed chan struct{}
	aging  sync.WaitGroup
}

// Start runs a Redis on a free port of the loopback interface. It creates a new password each time, because other users of the machine
// can reach the port too.
func Start() (*Redis, error) {
	server := miniredis.NewMiniRedis()
	password := rand.Text()
	server.RequireAuth(password)
	if err := server.StartAddr("127.0.0.1:0"); err != nil {
		return nil, fmt.Errorf("embedded Redis: %w", err)
	}
	r := &Redis{server: server, url: fmt.Sprintf("miniredis://:%s@%s/0", password, server.Addr()), closed: make(chan struct{})}
	r.aging.Go(r.age)
	return r, nil
}

// ageStep is about how much too early or too late keys may expire; longer if scanning them takes more than a hundredth of it.
const ageStep = 100 * time.Millisecond

// age expires keys by the clock, as in a real Redis; miniredis does so only when a test calls it. Its own ClockTTL would scan every key
// in every command: in a show of a minute that took four fifths of the time.
func (r *Redis) age() {
	timer := time.NewTimer(ageStep)
	defer timer.Stop()
	for last := time.Now(); ; {
		select {
		case <-r.closed:
			return
		case <-timer.C:
		}
		began := time.Now()
		r.server.FastForward(began.Sub(last))
		last = began
		timer.Reset(max(ageStep, 100*time.Since(began)))
	}
}

// URL returns its address, with its password.
func (r *Redis) URL() string { return r.url }

// Close stops it and drops all data. It may be called again.
func (r *Redis) Close() {
	r.close.Do(func() { close(r.closed) })
	r.aging.Wait()
	r.server.Close()
}
