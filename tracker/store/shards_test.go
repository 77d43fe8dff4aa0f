package store_test

import (
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/internal/redistest"
	"github.com/lubdub-io/lubdub/lua"
	"github.com/lubdub-io/lubdub/tracker"
	"github.com/lubdub-io/lubdub/tracker/trackertest"
)

// A new deployment on one server has four shards; one that was founded with another number keeps it. With fewer shards each keeps more
// events, so that the total stays the same.
func TestShardsOfANewAndOfAnExistingDeployment(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, s *redistest.Store) {
		for _, of := range []struct {
			founded          any // stored shard count; nil: a new store
			shards, perShard int
		}{{nil, 4, 40_000}, {16, 16, 10_000}, {64, 64, 10_000}, {3, 3, 50_000}} {
			if err := s.Client.Del(t.Context(), meta).Err(); err != nil {
				t.Fatal(err)
			}
			if of.founded != nil {
				if err := s.Client.HSet(t.Context(), meta, "shards", of.founded).Err(); err != nil {
					t.Fatal(err)
				}
			}
			tr := trackertest.Open(t, tracker.Options{RedisURL: s.URL, Scripts: s.Scripts, RedisTimeout: 10 * time.Second})
			if n := tr.Store.Shards(); n != of.shards {
				t.Errorf("founded with %v: %d shards, want %d", of.founded, n, of.shards)
			}
			if perShard := lua.DefaultEventsPerShard(tr.Store.Shards()); perShard != of.perShard {
				t.Errorf("each of %d shards keeps %d events, want %d", tr.Store.Shards(), perShard, of.perShard)
			}
		}
	})
}
