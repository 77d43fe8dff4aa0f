package redistest

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// Cluster is a Redis Cluster of processes on this machine.
type Cluster struct {
	Servers []*Server // initially: the primaries, then as many replicas of each in turn
	ids     map[*Server]string
}

const slots = 16384

// StartCluster starts a Cluster whose slots are distributed in equal ranges, as by redis-cli. A node that does not answer for nodeTimeout
// is replaced by its replica. The slots of the other nodes remain available meanwhile.
func StartCluster(t testing.TB, primaries, replicasEach int, nodeTimeout time.Duration) *Cluster {
	t.Helper()
	return StartClusterIn(t, primaries, replicasEach, nodeTimeout, func(int) []string { return nil })
}

// StartClusterIn is StartCluster with an environment for each server.
func StartClusterIn(t testing.TB, primaries, replicasEach int, nodeTimeout time.Duration, env func(i int) []string) *Cluster {
	t.Helper()
	c := &Cluster{ids: map[*Server]string{}}
	for i := range primaries * (1 + replicasEach) {
		c.Servers = append(c.Servers, startServerIn(t, env(i), "--cluster-enabled", "yes", "--databases", "1",
			"--cluster-node-timeout", fmt.Sprint(nodeTimeout.Milliseconds()), "--cluster-require-full-coverage", "no",
			"--repl-diskless-sync-delay", "0"))
	}
	if err := c.form(primaries); err != nil {
		t.Fatal(err)
	}
	return c
}

func (c *Cluster) form(primaries int) error {
	host, port, _ := net.SplitHostPort(c.Servers[0].Addr)
	for i, s := range c.Servers {
		err := s.with(func(ctx context.Context, r *redis.Client) (err error) {
			if c.ids[s], err = r.ClusterMyID(ctx).Result(); err != nil {
				return err
			}
			if i < primaries {
				if err = r.ClusterAddSlotsRange(ctx, i*slots/primaries, (i+1)*slots/primaries-1).Err(); err != nil {
					return err
				}
			}
			if err = r.Do(ctx, "cluster", "set-config-epoch", i+1).Err(); err != nil || i == 0 {
				return err
			}
			return r.ClusterMeet(ctx, host, port).Err()
		})
		if err != nil {
			return err
		}
	}
	for _, s := range c.Servers {
		err := s.await("a node that knows the others", func(ctx context.Context, r *redis.Client) bool {
			nodes, err := r.ClusterNodes(ctx).Result()
			return err == nil && strings.Count(nodes, "connected") == len(c.Servers) && !strings.Contains(nodes, "handshake")
		})
		if err != nil {
			return err
		}
	}
	for i, s := range c.Servers[primaries:] {
		err := s.with(func(ctx context.Context, r *redis.Client) error {
			return r.ClusterReplicate(ctx, c.ids[c.Servers[i%primaries]]).Err()
		})
		if err == nil {
			err = s.AwaitSync()
		}
		if err != nil {
			return err
		}
	}
	for _, s := range c.Servers {
		err := s.await("a node of a healthy cluster", func(ctx context.Context, r *redis.Client) bool {
			info, err := r.ClusterInfo(ctx).Result()
			//lint:ignore SA1019 it lists the primary of each range first; CLUSTER SHARDS also lists those that are gone
			served, err2 := r.ClusterSlots(ctx).Result()
			return err == nil && err2 == nil && strings.Contains(info, "cluster_state:ok") && len(served) == primaries &&
				!slices.ContainsFunc(served, func(s redis.ClusterSlot) bool { return len(s.Nodes) != len(c.Servers)/primaries })
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *Server) with(do func(context.Context, *redis.Client) error) error {
	r := s.Client()
	defer func() { _ = r.Close() }()
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	if err := do(ctx, r); err != nil {
		return fmt.Errorf("%s: %w", s.Addr, err)
	}
	return nil
}

// URL contains the addresses of all nodes.
func (c *Cluster) URL() string {
	addrs := make([]string, len(c.Servers))
	for i, s := range c.Servers {
		addrs[i] = s.Addr
	}
	return "redis+cluster://" + As(strings.Join(addrs, ","))
}

// Owner returns the primary that serves a slot, as another of these servers sees it. It waits while there is no primary: on a busy machine
// nodes sometimes declare each other dead.
func (c *Cluster) Owner(slot int, seenBy *Server) (owner *Server, err error) {
	err = seenBy.await(fmt.Sprintf("a node that knows who serves slot %d", slot), func(ctx context.Context, r *redis.Client) bool {
		//lint:ignore SA1019 as above
		served, err := r.ClusterSlots(ctx).Result()
		if err != nil {
			return false
		}
		for _, part := range served {
			if part.Start <= slot && slot <= part.End {
				for _, s := range c.Servers {
					if s.Addr == part.Nodes[0].Addr {
						owner = s
						return true
					}
				}
			}
		}
		return false
	})
	return owner, err
}

// Replica returns a replica of a primary.
func (c *Cluster) Replica(of *Server) (replica *Server, err error) {
	err = of.with(func(ctx context.Context, r *redis.Client) error {
		nodes, err := r.ClusterNodes(ctx).Result()
		if err != nil {
			return err
		}
		for line := range strings.Lines(nodes) {
			if f := strings.Fields(line); len(f) > 3 && f[3] == c.ids[of] && !strings.Contains(f[2], "fail") {
				for s, id := range c.ids {
					if id == f[0] {
						replica = s
						return nil
					}
				}
			}
		}
		return fmt.Errorf("it has no replica:\n%s", nodes)
	})
	return replica, err
}

// Slot returns the slot of a key with a hash tag: CRC16 (XMODEM) of the tag.
func (c *Cluster) Slot(tag string) int {
	var crc uint16
	for _, b := range []byte(tag) {
		crc ^= uint16(b) << 8
		for range 8 {
			carry := crc & 0x8000
			crc <<= 1
			if carry != 0 {
				crc ^= 0x1021
			}
		}
	}
	return int(crc) % slots
}

// MoveSlot moves a slot from one primary to another, a few keys at a time, like redis-cli --cluster reshard. It calls between after
// each step, with the number of keys that are left, before the slot changes its owner.
func (c *Cluster) MoveSlot(slot int, from, to *Server, between func(left int)) error {
	host, port, _ := net.SplitHostPort(to.Addr)
	return from.with(func(ctx context.Context, source *redis.Client) error {
		target := to.Client()
		defer func() { _ = target.Close() }()
		if err := target.Do(ctx, "cluster", "setslot", slot, "importing", c.ids[from]).Err(); err != nil {
			return err
		}
		if err := source.Do(ctx, "cluster", "setslot", slot, "migrating", c.ids[to]).Err(); err != nil {
			return err
		}
		for {
			keys, err := source.ClusterGetKeysInSlot(ctx, slot, 10).Result()
			if err != nil {
				return err
			}
			if len(keys) == 0 {
				break
			}
			args := []any{"migrate", host, port, "", 0, 10_000, "replace", "keys"}
			for _, k := range keys {
				args = append(args, k)
			}
			if err := source.Do(ctx, args...).Err(); err != nil {
				return err
			}
			left, err := source.ClusterCountKeysInSlot(ctx, slot).Result()
			if err != nil {
				return err
			}
			between(int(left))
		}
		for _, r := range []*redis.Client{target, source} {
			if err := r.Do(ctx, "cluster", "setslot", slot, "node", c.ids[to]).Err(); err != nil {
				return err
			}
		}
		return nil
	})
}
