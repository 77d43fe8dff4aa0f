// Package embedded runs a Redis inside the process, so that Lubdub can be tried without installing one.
//
// It is miniredis: the same scripts run on it, at about a tenth of the speed, on one core, and everything is gone
// when the process ends. It knows nothing of Lubdub.
package embedded

import (
	"crypto/rand"
	"fmt"

	"github.com/alicebob/miniredis/v2"
)

// Caps for a deployment on an embedded Redis. It runs a few thousand scripts a second, so a queue that a real
// one would empty in a moment holds requests for seconds here; with these, overload is told early, as 503.
const (
	MaxPendingBeats = 1024
	MaxPendingCalls = 256
)

// Shards is how many slices of the keyspace suit it. Each costs some twenty scripts a second when nothing else
// happens, and every script is compiled anew: sixteen would keep half a core busy with nothing.
const Shards = 2

// Caveat is what a user must know, in one line.
var Caveat = fmt.Sprintf("embedded Redis: for trying only. Nothing persists, one process, at most %d heartbeats and %d other calls waiting; for more, run a Redis and say --redis redis://…", MaxPendingBeats, MaxPendingCalls)

// Redis is a running one. Close it when nothing uses it any more.
type Redis struct {
	server *miniredis.Miniredis
	url    string
}

// Start runs a Redis on a free port of the loopback interface. Its password is drawn anew each time: other users
// of the machine can reach the port too.
func Start() (*Redis, error) {
	server := miniredis.NewMiniRedis()
	// By default keys expire only when a test says so; here they follow the clock, as in a real Redis.
	server.ClockTTL(true)
	password := rand.Text()
	server.RequireAuth(password)
	if err := server.StartAddr("127.0.0.1:0"); err != nil {
		return nil, fmt.Errorf("embedded Redis: %w", err)
	}
	return &Redis{server: server, url: fmt.Sprintf("redis://:%s@%s/0", password, server.Addr())}, nil
}

// URL is where it listens, with its password.
func (r *Redis) URL() string { return r.url }

// Close stops it and forgets everything. It may be called again.
func (r *Redis) Close() { r.server.Close() }
