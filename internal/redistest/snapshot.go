package redistest

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// Snapshot is the content of a store at some time, like that of a replica that receives no more writes.
type Snapshot struct{ keys []savedKey }

type savedKey struct {
	name    string
	ttl     time.Duration // not positive: no expiry
	restore func(ctx context.Context, p redis.Pipeliner)
}

// Snapshot returns the current content of the store, without the test clock.
func (s *Store) Snapshot(t testing.TB) *Snapshot {
	t.Helper()
	ctx := t.Context()
	names, err := s.Client.Keys(ctx, "*").Result()
	if err != nil {
		t.Fatalf("snapshot: %v", err)
	}
	kinds, ttls := make([]*redis.StatusCmd, len(names)), make([]*redis.DurationCmd, len(names))
	pipelined(t, s.Client.Pipeline(), func(p redis.Pipeliner) {
		for i, name := range names {
			kinds[i], ttls[i] = p.Type(ctx, name), p.PTTL(ctx, name)
		}
	})
	of := &Snapshot{}
	pipelined(t, s.Client.Pipeline(), func(p redis.Pipeliner) {
		for i, name := range names {
			if name != clockKey {
				of.keys = append(of.keys, savedKey{name, ttls[i].Val(), readKey(ctx, t, p, name, kinds[i].Val())})
			}
		}
	})
	return of
}

// Restore resets the store to a snapshot in one step: everything written after it is lost. The test clock continues.
func (s *Store) Restore(t testing.TB, to *Snapshot) {
	t.Helper()
	ctx := t.Context()
	pipelined(t, s.Client.TxPipeline(), func(p redis.Pipeliner) {
		p.FlushDB(ctx)
		if s.Kind == "redis" && s.Clock.set != nil { // there the test clock is a key
			now := s.Clock.Now()
			p.RPush(ctx, clockKey, now.Unix(), now.Nanosecond()/1000)
		}
		for _, k := range to.keys {
			k.restore(ctx, p)
			if k.ttl > 0 {
				p.PExpire(ctx, k.name, k.ttl)
			}
		}
	})
}

// readKey reads a key with the next execution of a pipeline and returns a function that writes it back.
func readKey(ctx context.Context, t testing.TB, p redis.Pipeliner, key, kind string) func(context.Context, redis.Pipeliner) {
	switch kind {
	case "string":
		v := p.Get(ctx, key)
		return func(ctx context.Context, p redis.Pipeliner) { p.Set(ctx, key, v.Val(), 0) }
	case "hash":
		v := p.HGetAll(ctx, key)
		return func(ctx context.Context, p redis.Pipeliner) { p.HSet(ctx, key, v.Val()) }
	case "list":
		v := p.LRange(ctx, key, 0, -1)
		return func(ctx context.Context, p redis.Pipeliner) { p.RPush(ctx, key, anys(v.Val())...) }
	case "set":
		v := p.SMembers(ctx, key)
		return func(ctx context.Context, p redis.Pipeliner) { p.SAdd(ctx, key, anys(v.Val())...) }
	case "zset":
		v := p.ZRangeWithScores(ctx, key, 0, -1)
		return func(ctx context.Context, p redis.Pipeliner) { p.ZAdd(ctx, key, v.Val()...) }
	case "stream": // unparsed: the order of an entry's fields matters
		v := p.Do(ctx, "XRANGE", key, "-", "+")
		return func(ctx context.Context, p redis.Pipeliner) {
			entries, _ := v.Slice()
			for _, e := range entries {
				entry := e.([]any)
				p.Do(ctx, append([]any{"XADD", key, entry[0]}, entry[1].([]any)...)...)
			}
		}
	}
	t.Fatalf("snapshot: key %s has type %q", key, kind)
	return nil
}

func pipelined(t testing.TB, p redis.Pipeliner, fill func(redis.Pipeliner)) {
	t.Helper()
	if fill(p); p.Len() == 0 {
		return
	}
	if _, err := p.Exec(t.Context()); err != nil {
		t.Fatalf("snapshot: %v", err)
	}
}

func anys(texts []string) (list []any) {
	for _, text := range texts {
		list = append(list, text)
	}
	return list
}
