package store

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"
)

// EvictionError states that a Redis server may evict Lubdub's keys, or that its policy cannot be read.
type EvictionError struct {
	Message string // the problem and the remedy, without passwords
	Cause   error  // why the policy could not be read
}

func (e *EvictionError) Error() string { return e.Message }

func (e *EvictionError) Unwrap() error { return e.Cause }

// evicts asks one server whether it may evict keys. It returns nil when the server does not, or is unreachable.
func evicts(ctx context.Context, server *redis.Client) *EvictionError {
	addr := server.Options().Addr
	text, err := server.Info(ctx, "memory").Result()
	switch policy, found := infoField(text, "maxmemory_policy"); {
	case IsNetwork(err):
		return nil
	case err != nil || !found:
		return &EvictionError{Cause: err, Message: fmt.Sprintf("redis at %s does not say by INFO whether it evicts keys; "+
			"let Lubdub's user ask it: redis-cli ACL SETUSER <user> +info (deploy/redis/users.acl has all it needs)", addr)}
	case policy != "noeviction":
		return &EvictionError{Message: fmt.Sprintf("redis at %s has maxmemory-policy %s, which may silently drop running tasks; "+
			"set it with: redis-cli CONFIG SET maxmemory-policy noeviction, and in redis.conf", addr, policy)}
	}
	return nil
}

func infoField(text, name string) (value string, ok bool) {
	for line := range strings.Lines(text) {
		if k, v, ok := strings.Cut(strings.TrimSpace(line), ":"); ok && k == name {
			return v, true
		}
	}
	return "", false
}

// anyEvicts asks all servers, and the replicas of a Cluster, which may be promoted. It returns nil when none evicts.
func (s *servers) anyEvicts(ctx context.Context) *EvictionError {
	if s.embedded {
		return nil
	}
	if s.cluster == nil {
		return evicts(ctx, s.single)
	}
	var mu sync.Mutex
	var found []*EvictionError
	_ = s.cluster.ForEachShard(ctx, func(ctx context.Context, server *redis.Client) error {
		if e := evicts(ctx, server); e != nil {
			mu.Lock()
			defer mu.Unlock()
			found = append(found, e)
		}
		return nil // ask the other servers too
	})
	if len(found) == 0 {
		return nil
	}
	return slices.MinFunc(found, func(a, b *EvictionError) int { return strings.Compare(a.Message, b.Message) })
}

const (
	evictionPeriod = time.Minute // between two checks of the same servers
	evictionTurns  = time.Second // between two checks for a changed set of servers
)

// evictionWatch checks whether Redis may evict keys, and keeps the result of the last check.
type evictionWatch struct {
	servers  *servers
	topology *topology
	evicts   prometheus.Gauge
	log      *slog.Logger

	trouble atomic.Pointer[EvictionError]

	mu    sync.Mutex
	at    time.Time
	byMap *[]*Node // the map of shards at the last check
}

// run checks until ctx ends: an operator may reconfigure Redis, or a failover may bring a server with other settings.
func (w *evictionWatch) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(evictionTurns):
			w.check(ctx, time.Now())
		}
	}
}

func (w *evictionWatch) check(ctx context.Context, now time.Time) {
	if !w.due(now, w.topology.byShard.Load()) {
		return
	}
	is := w.servers.anyEvicts(ctx)
	was := w.trouble.Swap(is)
	switch {
	case is != nil && (was == nil || was.Message != is.Message):
		w.log.Error("redis may lose tasks", "reason", is.Message, "error", is.Cause)
	case is == nil && was != nil:
		w.log.Info("redis evicts nothing any more")
	}
	w.evicts.Set(0)
	if is != nil {
		w.evicts.Set(1)
	}
}

// due reports whether a check is due, and records that the caller runs it.
func (w *evictionWatch) due(now time.Time, byMap *[]*Node) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if now.Sub(w.at) < evictionPeriod && byMap == w.byMap {
		return false
	}
	w.at, w.byMap = now, byMap
	return true
}

// evicting returns the *EvictionError of the last check, or nil.
func (w *evictionWatch) evicting() error {
	if e := w.trouble.Load(); e != nil {
		return e
	}
	return nil
}
