package bench

import (
	"context"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/lubdub-io/lubdub/bench/proc"
)

// kind is the keys of one kind, such as all beats sets or all records.
type kind struct {
	name    string
	keys    int64
	bytes   float64 // of all; estimated from the sampled ones when there are more
	sampled []string
}

// sampledKeys is how many keys of a kind are measured; the fixed keys of all shards are fewer, so each of these is.
const sampledKeys = 2000

// memoryByKind asks Redis for the size of keys. A key is lubdub:{shard}:kind, with more after another colon for
// those that there are many of.
func memoryByKind(ctx context.Context, r *proc.Redis) ([]*kind, error) {
	kinds := map[string]*kind{}
	for cursor := uint64(0); ; {
		keys, next, err := r.Client.Scan(ctx, cursor, "lubdub:*", 5000).Result()
		if err != nil {
			return nil, err
		}
		for _, key := range keys {
			_, rest, _ := strings.Cut(key, "}:")
			name, _, _ := strings.Cut(rest, ":")
			k := kinds[name]
			if k == nil {
				k = &kind{name: name}
				kinds[name] = k
			}
			if k.keys++; len(k.sampled) < sampledKeys {
				k.sampled = append(k.sampled, key)
			}
		}
		if cursor = next; cursor == 0 {
			break
		}
	}
	var list []*kind
	for _, k := range kinds {
		if err := k.measure(ctx, r.Client); err != nil {
			return nil, err
		}
		list = append(list, k)
	}
	slices.SortFunc(list, func(a, b *kind) int { return int(b.bytes - a.bytes) })
	return list, nil
}

func (k *kind) measure(ctx context.Context, c *redis.Client) error {
	pipe := c.Pipeline()
	var sizes []*redis.IntCmd
	for _, key := range k.sampled {
		sizes = append(sizes, pipe.MemoryUsage(ctx, key, 1000)) // of a large key's elements a thousand are weighed
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return err
	}
	for _, size := range sizes {
		k.bytes += float64(size.Val())
	}
	k.bytes *= float64(k.keys) / float64(len(k.sampled))
	return nil
}
