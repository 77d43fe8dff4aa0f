package tracker_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/lubdub-io/lubdub/tracker"
)

// storedEvent is one event as it stands in a shard's stream.
type storedEvent struct {
	Type    string
	AtMs    int64 // wall time of the script that wrote it
	Subject string
	Attempt int
	Data    struct {
		Reason          tracker.Reason
		WorkerID        string
		NextAttemptAtMs int64
	}
}

// storedEvents reads the streams of all shards, one after the other.
func storedEvents(t testing.TB, c *redis.Client, shards int) (events []storedEvent) {
	t.Helper()
	for shard := range shards {
		entries, err := c.XRange(context.Background(), fmt.Sprintf("lubdub:{%d}:events", shard), "-", "+").Result()
		if err != nil {
			t.Fatal(err)
		}
		for _, entry := range entries {
			field := func(name string) string { s, _ := entry.Values[name].(string); return s }
			e := storedEvent{Type: field("type"), Subject: field("subject")}
			e.AtMs, _ = strconv.ParseInt(field("time"), 10, 64)
			e.Attempt, _ = strconv.Atoi(field("attempt"))
			if data := field("data"); data != "" {
				if err := json.Unmarshal([]byte(data), &e.Data); err != nil {
					t.Fatalf("%s: %q: %v", e.Type, data, err)
				}
			}
			events = append(events, e)
		}
	}
	return events
}
