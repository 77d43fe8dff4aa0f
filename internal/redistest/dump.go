package redistest

import (
	"context"
	"testing"
)

// Dump returns the whole keyspace in a comparable form, so that a test can show that nothing has changed. The test clock is omitted.
func (s *Store) Dump(t testing.TB) map[string]any {
	t.Helper()
	ctx := context.Background()
	check := func(v any, err error) any {
		if err != nil {
			t.Fatalf("dump: %v", err)
		}
		return v
	}
	dump := map[string]any{}
	keys := check(s.Client.Keys(ctx, "*").Result()).([]string)
	for _, key := range keys {
		if key == clockKey {
			continue
		}
		switch kind := check(s.Client.Type(ctx, key).Result()).(string); kind {
		case "string":
			dump[key] = check(s.Client.Get(ctx, key).Result())
		case "hash":
			dump[key] = check(s.Client.HGetAll(ctx, key).Result())
		case "list":
			dump[key] = check(s.Client.LRange(ctx, key, 0, -1).Result())
		case "set":
			dump[key] = check(s.Client.SMembersMap(ctx, key).Result())
		case "zset":
			dump[key] = check(s.Client.ZRangeWithScores(ctx, key, 0, -1).Result())
		case "stream":
			dump[key] = check(s.Client.XRange(ctx, key, "-", "+").Result())
		default:
			t.Fatalf("dump: key %s has type %s", key, kind)
		}
	}
	return dump
}
