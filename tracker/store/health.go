package store

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// NodeHealth is what a Redis server reports about itself. Fields that it does not report are zero.
type NodeHealth struct {
	Address     string
	Version     string // "embedded": it runs in a Lubdub process
	Role        string // master or slave
	Replicas    int    // connected to it
	Memory      int64  // bytes in use
	MaxMemory   int64  // limit of the bytes in use; 0: none
	Policy      string // maxmemory-policy
	Append      bool   // appendonly is on
	SavedAt     time.Time
	RoundTrip   time.Duration
	ClockOffset time.Duration // how far its clock is ahead of this process's
	Err         error         // nil: it responds
}

// NodesHealth asks every server that has shards, concurrently, and returns the results sorted by address. A server that does not respond
// has Err set.
func (s *Store) NodesHealth(ctx context.Context) []NodeHealth {
	var nodes []*Node
	for n := range s.ByNode() {
		nodes = append(nodes, n)
	}
	found := make([]NodeHealth, len(nodes))
	var wg sync.WaitGroup
	for i, n := range nodes {
		wg.Add(1)
		go func() {
			defer wg.Done()
			found[i] = s.nodeHealth(ctx, n)
		}()
	}
	wg.Wait()
	slices.SortFunc(found, func(a, b NodeHealth) int { return strings.Compare(a.Address, b.Address) })
	return found
}

func (s *Store) nodeHealth(ctx context.Context, n *Node) NodeHealth {
	if n.silent.Load() {
		return NodeHealth{Address: n.client.Options().Addr, Err: s.TooLateError()}
	}
	return s.servers.healthOf(ctx, n.client)
}

// healthOf asks a server even if it is known not to respond.
func (s *servers) healthOf(ctx context.Context, client *redis.Client) NodeHealth {
	h := NodeHealth{Address: client.Options().Addr}
	ctx, cancel := context.WithTimeout(ctx, s.opts.Timeout)
	defer cancel()
	sent := time.Now()
	now, err := client.Time(ctx).Result()
	if err != nil {
		h.Err = err
		return h
	}
	h.RoundTrip = time.Since(sent)
	h.ClockOffset = now.Sub(sent.Add(h.RoundTrip / 2))
	if s.embedded {
		h.Address, h.Version, h.Role = "", "embedded", "master"
		return h
	}
	text, err := client.Info(ctx, "server", "memory", "replication", "persistence").Result()
	if err != nil {
		h.Err = err
		return h
	}
	field := func(name string) string { value, _ := infoField(text, name); return value }
	number := func(name string) int64 { v, _ := strconv.ParseInt(field(name), 10, 64); return v }
	h.Version, h.Role, h.Policy = field("redis_version"), field("role"), field("maxmemory_policy")
	if valkey := field("valkey_version"); valkey != "" {
		h.Version = "valkey " + valkey
	}
	h.Memory, h.MaxMemory, h.Replicas = number("used_memory"), number("maxmemory"), int(number("connected_slaves"))
	h.Append = field("aof_enabled") == "1"
	if at := number("rdb_last_save_time"); at > 0 {
		h.SavedAt = time.Unix(at, 0)
	}
	return h
}
