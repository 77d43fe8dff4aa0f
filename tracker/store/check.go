package store

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/lubdub-io/lubdub/tracker/schema"
)

// check verifies the server's version, durability and eviction policy before anything depends on them.
func (s *Store) check(ctx context.Context) error {
	info, err := s.servers.info(ctx)
	if err != nil {
		return err
	}
	if inCluster(info) && s.servers.single != nil {
		s.servers.becomeCluster()
	}
	if err := s.durability.checkDurability(ctx, info); err != nil {
		return err
	}
	if s.servers.embedded {
		return nil // it neither evicts nor persists; a warning at the start states that
	}
	if e := s.servers.anyEvicts(ctx); e != nil {
		return e
	}
	version := info["redis_version"]
	if major, _, _ := strings.Cut(version, "."); len(major) == 1 && major < "7" {
		return fmt.Errorf("redis at %s is version %s; Lubdub needs Redis 7.0 or newer, or Valkey", redactURL(s.opts.URL), version)
	}
	if info["aof_enabled"] == "0" {
		s.opts.Logger.Warn("redis does not persist: appendonly is off, so a restart loses finished tasks and queues " +
			"(running ones are adopted again by their beats); set appendonly yes")
	}
	return nil
}

// inCluster reports whether a server with this INFO is part of a Cluster. Valkey names the field server_mode, Redis redis_mode.
func inCluster(info map[string]string) bool {
	return cmp.Or(info["server_mode"], info["redis_mode"]) == "cluster"
}

// info reads the INFO fields that check needs. Some stores support no INFO sections; their error is not an outage.
func (s *servers) info(ctx context.Context) (map[string]string, error) {
	run, err := s.home(ctx)
	if err == nil {
		err = run.Ping(ctx).Err()
	}
	if err != nil {
		return nil, s.unreachable(err)
	}
	info := map[string]string{}
	for _, section := range []string{"server", "persistence"} {
		text, err := run.Info(ctx, section).Result()
		if IsNetwork(err) {
			return nil, err
		}
		for line := range strings.Lines(text) {
			if k, v, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
				info[k] = v
			}
		}
	}
	return info, nil
}

// MaxShards bounds Options.Shards: every shard is scanned every 100 ms.
const MaxShards = 4096

// These are the shard counts of a new deployment without a configured one. On one server each shard adds a part to every flush, and 4 are
// enough to keep scripts short; a Cluster distributes its shards among the primaries.
const shardsOfOne, shardsOfCluster = 4, 64

// settleShards stores the number of shards at a deployment's first start, and returns an error when a later start asks for another
// number. `founded` is true at the first start.
func (s *servers) settleShards(ctx context.Context) (shards int, founded bool, err error) {
	want := s.opts.Shards
	if want == 0 {
		want = shardsOfOne
		if s.cluster != nil {
			want = shardsOfCluster
		}
	}
	run := s.client()
	if founded, err = run.HSetNX(ctx, schema.MetaKey, "shards", want).Result(); err != nil {
		return 0, false, fmt.Errorf("cannot write to Redis at %s: %w", redactURL(s.opts.URL), err)
	}
	stored, err := run.HGet(ctx, schema.MetaKey, "shards").Int()
	if err != nil {
		return 0, false, fmt.Errorf("cannot read the stored shard count: %w", err)
	}
	if s.opts.Shards != 0 && stored != s.opts.Shards {
		return 0, false, fmt.Errorf("this deployment was first started with %d shards, which is fixed for its life, but --shards is %d; "+
			"start with --shards %d (or 0, which takes the stored count), or use another Redis", stored, s.opts.Shards, stored)
	}
	if stored < 1 || stored > MaxShards {
		return 0, false, fmt.Errorf("the stored shard count %d is not in 1–%d; another program may have written %s",
			stored, MaxShards, schema.MetaKey)
	}
	return stored, founded, nil
}

// atLeast reports whether a version like 7.0.15 is at least major.minor.
func atLeast(version string, major, minor int) bool {
	a, rest, _ := strings.Cut(version, ".")
	b, _, _ := strings.Cut(rest, ".")
	x, _ := strconv.Atoi(a)
	y, _ := strconv.Atoi(b)
	return x > major || x == major && y >= minor
}
