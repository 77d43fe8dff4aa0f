package tracker_test

import (
	"fmt"
	"strings"

	"github.com/oklog/ulid/v2"
	"github.com/redis/go-redis/v9"

	"github.com/lubdub-io/lubdub/tracker/events"
)

// events reads events of the largest size, and events that each name another worker.
func (b *bounds) events() {
	b.Helper()
	data := `{"reason":"` + strings.Repeat("r", 3500) + `"}`
	for shard := range b.Tracker.Store.Shards() {
		pipe := b.Store.Client.Pipeline()
		for i := range 600 {
			worker := fmt.Sprintf("wkr_%s%03X", ulid.Make(), shard)
			pipe.XAdd(b.Ctx, &redis.XAddArgs{Stream: fmt.Sprintf("lubdub:{%d}:events", shard), Values: []any{"type", "task.cancel_requested",
				"time", b.Store.Clock.Now().UnixMilli(), "scope", big.String(), "subject", longest("task", i),
				"attempt", 1, "run", longest("run", i), "queue", longest("queue", i), "kind", longest("type", i), "worker", worker, "machine", "",
				"by", longest("by", i), "data", data}})
		}
		b.exec(pipe)
	}
	one := events.Filter{Tenant: big.Tenant, Workspace: big.Workspace, Subject: longest("task", 1)}
	for _, f := range []events.Filter{{}, {MachineID: "host-1"}, one} {
		_, err := b.Tracker.Events.List(b.Ctx, events.Query{Filter: f, Size: 100, Back: true})
		b.check("events", err)
	}
}
