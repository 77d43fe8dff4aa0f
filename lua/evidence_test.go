package lua_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lubdub-io/lubdub/internal/redistest"
	"github.com/lubdub-io/lubdub/internal/testenv"
)

// beatingTask is a running task whose heartbeats are stored in the shard and looked up there.
type beatingTask struct {
	*shardClock
	id   string
	last time.Time // when its last heartbeat was stored
}

func (h *beatingTask) member() string { return "a/b/" + h.id + "#1.f" }

func (h *beatingTask) create() {
	h.Helper()
	ctx := context.Background()
	h.store.Client.HSet(ctx, key("task:a/b/"+h.id), "s", "R", "a", 1, "f", "f", "t", 60000)
	if err := h.store.Client.ZAdd(ctx, key("beats:60000"), redis.Z{Score: 0, Member: h.member()}).Err(); err != nil {
		h.Fatal(err)
	}
}

// beat stores a heartbeat of the task, as the only one in a batch.
func (h *beatingTask) beat() {
	h.Helper()
	keys := []string{key("clock"), key("outages"), key("progress"), key("cancels"), key("beats:60000")}
	r, err := h.store.Eval(context.Background(), "beat", keys, 1<<20, h.member()).Slice()
	if err != nil {
		h.Fatal(err)
	}
	if dead := r[1].([]any); len(dead) > 0 {
		h.Fatalf("%s is not live", h.id)
	}
	h.last = h.store.Clock.Now()
}

// off returns by how much the reported time of the last heartbeat is too late.
func (h *beatingTask) off() time.Duration {
	h.Helper()
	keys := []string{key("clock"), key("outages"), key("progress")}
	for _, name := range []string{"task:a/b/", "doc:a/b/", "history:a/b/"} {
		keys = append(keys, key(name+h.id))
	}
	all, err := h.store.Eval(context.Background(), "get", append(keys, key("beats:60000")), "glance", "", "a/b/"+h.id).Slice()
	if err != nil {
		h.Fatal(err)
	}
	r := all[0].([]any)
	now := time.UnixMilli(r[0].(int64))
	silent, err := strconv.ParseInt(r[5].(string), 10, 64)
	if err != nil {
		h.Fatal(err)
	}
	return now.Add(-time.Duration(silent+r[6].(int64)) * time.Millisecond).Sub(h.last.Truncate(time.Millisecond))
}

// Whatever happens to a shard's time, in any order and combination (it is paused, runs at a tenth or at half speed, no heartbeat
// is stored for a while), the time of the last heartbeat is reported correctly to 50 ms: the wall time of five ms of shard time at
// a tenth. Heartbeats while time is paused, or in the same ms of shard time, are left out: they count as one moment.
func TestLastHeartbeatTimeIsReportedCorrectly(t *testing.T) {
	t.Parallel()
	steps := testenv.Of(t, 100, 1000)
	redistest.Each(t, func(t *testing.T, s *redistest.Store) {
		k := &shardClock{T: t, store: s}
		k.tick("a")
		k.uses(60000)
		tasks := []*beatingTask{{shardClock: k, id: "t1"}, {shardClock: k, id: "t2"}, {shardClock: k, id: "t3"}}
		for _, of := range tasks {
			of.create()
			of.beat()
		}
		random := rand.New(rand.NewPCG(1, 2))
		between := func(least, most int) int { return least + random.IntN(most-least) }
		var pausedUntil, lastBeat time.Time
		var story []string
		for range steps {
			did := ""
			switch act := random.IntN(12); {
			case act < 4:
				if s.Clock.Now().Before(pausedUntil) {
					break
				}
				of := tasks[random.IntN(len(tasks))]
				of.beat()
				lastBeat = of.last
				did = "beat of " + of.id
			case act < 6:
				k.tick("a")
				did = "tick"
			case act < 9:
				k.tick("a!")
				did = "tick of a replica that is cut off"
			case act < 10:
				still, half := 0, 0
				if random.IntN(2) == 0 && s.Clock.Now().After(lastBeat.Add(10*time.Millisecond)) {
					still = between(1, 400)
					if end := s.Clock.Now().Add(time.Duration(still+10) * time.Millisecond); end.After(pausedUntil) {
						pausedUntil = end
					}
				} else {
					half = between(1, 700)
				}
				slowclock, keys := s.Scripts.Get("slowclock").Source, []string{key("clock"), key("outages")}
				if err := s.Client.Eval(context.Background(), slowclock, keys, still, half).Err(); err != nil {
					t.Fatal(err)
				}
				did = fmt.Sprintf("hold %d %d", still, half)
			}
			d := time.Duration(between(1, 120)) * time.Millisecond
			if random.IntN(12) == 0 {
				d = time.Duration(between(200, 5000)) * time.Millisecond
			}
			s.Clock.Advance(d)
			story = append(story, did, d.String())
			for _, of := range tasks {
				if off := of.off(); off.Abs() > 50*time.Millisecond {
					outages := s.Client.LRange(context.Background(), key("outages"), 0, 4).Val()
					t.Fatalf("the recorded last beat of %s is %v too late; before that: %q; outages: %q",
						of.id, off, story[max(0, len(story)-30):], outages)
				}
			}
		}
	})
}
