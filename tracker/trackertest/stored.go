package trackertest

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/lubdub-io/lubdub/tracker/model"
)

// StoredEvent is one event from a shard's stream.
type StoredEvent struct {
	Type    string
	AtMs    int64 // wall time of the script that wrote it
	Subject string
	Attempt int
	Run     string // "": the task's own
	Queue   string
	Kind    string // the task's type
	Worker  string
	Machine string
	By      string
	Data    struct {
		Reason          model.Reason
		NextAttemptAtMs int64
		ScheduleID      string
	}
}

// StoredEvents reads the streams of all shards in sequence.
func StoredEvents(t testing.TB, c *redis.Client, shards int) (events []StoredEvent) {
	t.Helper()
	for shard := range shards {
		entries, err := c.XRange(context.Background(), fmt.Sprintf("lubdub:{%d}:events", shard), "-", "+").Result()
		if err != nil {
			t.Fatal(err)
		}
		for _, entry := range entries {
			field := func(name string) string { s, _ := entry.Values[name].(string); return s }
			e := StoredEvent{Type: field("type"), Subject: field("subject"), Run: field("run"), Queue: field("queue"),
				Kind: field("kind"), Worker: field("worker"), Machine: field("machine"), By: field("by")}
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

func Text(n int) json.RawMessage {
	return json.RawMessage(`"` + strings.Repeat("x", n) + `"`)
}

// FillQueue creates tasks in a queue, after applying `change` to each.
func (h *Harness) FillQueue(count int, change func(i int, n *model.NewTask)) {
	h.Helper()
	for from := 0; from < count; from += 1000 {
		var batch []model.NewTask
		for i := from; i < min(count, from+1000); i++ {
			n := model.NewTask{Scope: Scope, Queue: "default", Type: "send_email"}
			change(i, &n)
			if err := n.Validate(h.Store.Clock.Now()); err != nil {
				h.Fatal(err)
			}
			batch = append(batch, n)
		}
		for len(batch) > 0 {
			var again []model.NewTask // tasks that a busy host refused
			for i, r := range h.Tasks.CreateBatch(h.Ctx, batch) {
				switch {
				case model.CodeOf(r.Err) == model.Overloaded:
					again = append(again, batch[i])
				case r.Err != nil:
					h.Fatal(r.Err)
				}
			}
			batch = again
		}
	}
}

// Key returns a fixed key of a task's shard.
func (h *Harness) Key(id, name string) string {
	return fmt.Sprintf("lubdub:{%d}:%s", h.Tracker.Store.ShardOf(Scope, id), name)
}

// WorkerKey returns a fixed key of a worker's shard, which is the end of its ID.
func WorkerKey(id, name string) string {
	shard, _ := strconv.ParseInt(id[len(id)-3:], 16, 16)
	return fmt.Sprintf("lubdub:{%d}:%s", shard, name)
}

// Remove removes members from a sorted set, as damage, and fails the test if one is missing.
func (h *Harness) Remove(key string, members ...any) {
	h.Helper()
	if n, err := h.Store.Client.ZRem(h.Ctx, key, members...).Result(); err != nil || int(n) != len(members) {
		h.Fatalf("%d of %v were in %s: %v", n, members, key, err)
	}
}

// Plant adds a member to a set in which it does not belong.
func (h *Harness) Plant(key, member string) {
	h.Helper()
	const far = 9e15
	if n, err := h.Store.Client.ZAdd(h.Ctx, key, redis.Z{Score: far, Member: member}).Result(); err != nil || n != 1 {
		h.Fatalf("%s was in %s already: %v", member, key, err)
	}
}

// Reconcile runs the reconciler over everything once, and returns its repairs.
func (h *Harness) Reconcile() map[string]int {
	h.Helper()
	repairs, err := h.Sweeper.Reconcile(h.Ctx)
	if err != nil {
		h.Fatal(err)
	}
	return repairs
}

// WantRepairs reconciles twice: the first run must make exactly these repairs and write their events, the second none.
func (h *Harness) WantRepairs(want ...string) {
	h.Helper()
	before := h.Events("")["system.repaired"]
	wanted, written := map[string]int{}, 0
	for _, what := range want {
		wanted[what]++
		if !strings.HasSuffix(what, "_list") { // repairs of lists write no events
			written++
		}
	}
	if got := h.Reconcile(); !maps.Equal(got, wanted) {
		h.Fatalf("repaired %v, want %v", got, wanted)
	}
	if n := h.Events("")["system.repaired"] - before; n != written {
		h.Fatalf("%d events of %d repairs", n, written)
	}
	if again := h.Reconcile(); len(again) != 0 {
		h.Fatalf("again: %v", again)
	}
}

// Sizes returns the entries of large tasks in all shards' indexes.
func (h *Harness) Sizes() (list []string) {
	h.Helper()
	for shard := range h.Tracker.Store.Shards() {
		all, err := h.Store.Client.ZRange(h.Ctx, fmt.Sprintf("lubdub:{%d}:ix", shard), 0, -1).Result()
		if err != nil {
			h.Fatal(err)
		}
		for _, entry := range all {
			if strings.HasPrefix(entry, "~") {
				list = append(list, entry)
			}
		}
	}
	return list
}
