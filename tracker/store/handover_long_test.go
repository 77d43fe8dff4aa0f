//go:build long

package store_test

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/internal/redistest"
	"github.com/lubdub-io/lubdub/tracker"
	"github.com/lubdub-io/lubdub/tracker/beats"
	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/sweep"
	"github.com/lubdub-io/lubdub/tracker/trackertest"
)

var (
	handovers     = flag.Int("handovers", 1, "how many times the primary hands its role over, and how many times it is killed")
	handoverTasks = flag.Int("handover-tasks", 100, "tasks that beat meanwhile")
)

// The primary hands over to a replica, or is killed, while front ends still beat to it. What the old primary accepted last is lost. No
// task is declared dead earlier than its timeout after its last accepted heartbeat.
func TestLongFailoverKeepsTimeouts(t *testing.T) {
	t.Parallel()
	primary := redistest.StartServer(t, "--repl-diskless-sync-delay", "0")
	replica := redistest.StartReplica(t, primary, "--repl-diskless-sync-delay", "0")
	at := StartAddress(t, primary)
	c := &failoverRun{T: t, last: map[string]*failoverTask{}, seen: map[string]string{}}
	ctx, end := context.WithCancel(t.Context())
	var background sync.WaitGroup
	t.Cleanup(func() { end(); background.Wait() })
	for range 2 {
		tr := trackertest.Open(t, tracker.Options{RedisURL: at.URL(), RedisTimeout: time.Second})
		background.Go(func() { _ = tr.Beats.KeepTime(ctx) })
		background.Go(func() { _ = sweep.NewSweeper(tr.Sweeper, sweep.SweeperOptions{}).Run(ctx) })
		c.trackers = append(c.trackers, tr)
	}
	var running sync.WaitGroup
	stop := make(chan struct{})
	running.Go(func() { c.beat(stop) })
	defer func() {
		close(stop)
		running.Wait()
	}()
	c.fill()
	for i := range 2 * *handovers {
		kill := i%2 == 1
		c.awaitAccepted(*handoverTasks) // their beats are regular now
		if kill {
			primary.Kill()
		}
		c.must(becomePrimary(t, replica))
		if !kill {
			c.endSome()
			c.awaitAccepted(rand.IntN(*handoverTasks)) // these are lost, with the last ones of tasks that end
		}
		at.LeadTo(replica)
		primary, replica = replica, primary
		if kill {
			c.endSome()
			c.must(replica.Restart(append(primary.ReplicaOf(), "--repl-diskless-sync-delay", "0")...))
		} else {
			c.must(becomeReplica(t, replica, primary))
		}
		c.must(replica.AwaitSync())
		trackertest.Eventually(t, "all that fell silent are found", func() bool { return c.readVerdicts(primary) == 0 })
		c.fill()
	}
	t.Logf("%d handovers and %d kills under %d tasks: %d declared dead, %d too early; the earliest %v after its timeout, the latest %v",
		*handovers, *handovers, *handoverTasks, len(c.late), c.early, slices.Min(c.late), slices.Max(c.late))
}

// failoverTask is a task that beats until it is to end.
type failoverTask struct {
	attempt *model.Attempt
	next    time.Time
	last    time.Time // when Redis accepted its last heartbeat
	ends    bool      // after the next accepted heartbeat
	ended   bool
	found   bool
}

// failoverRun holds the tasks of a deployment whose primary changes.
type failoverRun struct {
	*testing.T
	trackers []*tracker.Tracker

	mu       sync.Mutex
	last     map[string]*failoverTask
	accepted int
	made     int
	early    int
	late     []time.Duration
	seen     map[string]string // by stream: the newest event read
}

func (c *failoverRun) must(err error) {
	c.Helper()
	if err != nil {
		c.Fatal(err)
	}
}

// fill creates and starts as many tasks as have ended.
func (c *failoverRun) fill() {
	c.mu.Lock()
	live := 0
	for _, m := range c.last {
		if !m.found {
			live++
		}
	}
	c.mu.Unlock()
	for ; live < *handoverTasks; live++ {
		timeout := time.Duration(1+c.made%5) * time.Second
		n := model.NewTask{Scope: trackertest.Scope, TaskID: fmt.Sprintf("t-%d", c.made), HeartbeatInterval: timeout / 3,
			HeartbeatTimeout: timeout}
		c.made++
		c.must(n.Validate(time.Now()))
		created, err := c.trackers[0].Tasks.Create(c.Context(), n)
		c.must(err)
		began := time.Now()
		_, err = c.trackers[0].Beats.Start(c.Context(), created.Envelope.Attempt, model.Report{}) // otherwise losing it is not a death
		c.must(err)
		m := &failoverTask{attempt: created.Envelope.Attempt, next: began, last: began}
		c.mu.Lock()
		c.last[n.TaskID] = m
		c.mu.Unlock()
	}
}

// beat sends the beats that are due, alternately through both front ends.
func (c *failoverRun) beat(stop chan struct{}) {
	var sent sync.WaitGroup
	defer sent.Wait()
	for turn := 0; ; turn++ {
		select {
		case <-stop:
			return
		case <-time.After(20 * time.Millisecond):
		}
		now := time.Now()
		var batch []*beats.Beat
		var by []*failoverTask
		c.mu.Lock()
		for _, m := range c.last {
			if !m.ended && !m.found && !m.next.After(now) {
				batch, by = append(batch, &beats.Beat{Attempt: m.attempt}), append(by, m)
				m.next = now.Add(m.attempt.Timeout / 3)
			}
		}
		c.mu.Unlock()
		if len(batch) == 0 {
			continue
		}
		sent.Go(func() {
			c.trackers[turn%2].Beats.BeatMany(batch)
			c.mu.Lock()
			defer c.mu.Unlock()
			for i, b := range batch {
				m := by[i]
				if b.Err != nil {
					m.next = now.Add(200 * time.Millisecond)
					continue
				}
				c.accepted++
				if b.At.After(m.last) {
					m.last = b.At
				}
				m.ended = m.ends
			}
		})
	}
}

func (c *failoverRun) awaitAccepted(n int) {
	c.Helper()
	accepted := func() int { c.mu.Lock(); defer c.mu.Unlock(); return c.accepted }
	n += accepted()
	trackertest.Eventually(c, "heartbeats are accepted", func() bool { return accepted() >= n })
}

// endSome makes one task in ten fall silent after its next accepted heartbeat.
func (c *failoverRun) endSome() {
	c.mu.Lock()
	defer c.mu.Unlock()
	i := 0
	for _, m := range c.last {
		if i++; i%10 == 0 && !m.found {
			m.ends = true
		}
	}
}

// readVerdicts reads which tasks were declared dead, and returns how many are still missing.
func (c *failoverRun) readVerdicts(primary *redistest.Server) (left int) {
	client := primary.Client()
	defer func() { _ = client.Close() }()
	c.mu.Lock()
	defer c.mu.Unlock()
	for shard := range c.trackers[0].Store.Shards() {
		key := fmt.Sprintf("lubdub:{%d}:events", shard)
		from := "-"
		if c.seen[key] != "" {
			from = "(" + c.seen[key]
		}
		for _, e := range client.XRange(c.Context(), key, from, "+").Val() {
			c.seen[key] = e.ID
			m := c.last[fmt.Sprint(e.Values["subject"])]
			if e.Values["type"] != "task.zombie" || m == nil {
				continue
			}
			var evidence struct{ DetectedAtMs int64 }
			c.must(json.Unmarshal([]byte(e.Values["data"].(string)), &evidence))
			late := time.UnixMilli(evidence.DetectedAtMs).Sub(m.last) - m.attempt.Timeout
			m.found, c.late = true, append(c.late, late)
			if late < 0 {
				c.early++
				c.Errorf("%s was declared dead %v before its timeout of %v after its last accepted heartbeat: %v", m.attempt.TaskID, -late,
					m.attempt.Timeout, e.Values["data"])
			}
		}
	}
	for _, m := range c.last {
		if m.ends && !m.found {
			left++
		}
	}
	return left
}

func becomePrimary(t *testing.T, s *redistest.Server) error {
	client := s.Client()
	defer func() { _ = client.Close() }()
	if err := client.Do(t.Context(), "replicaof", "no", "one").Err(); err != nil {
		return err
	}
	return s.AwaitPrimary()
}

func becomeReplica(t *testing.T, s, primary *redistest.Server) error {
	client := s.Client()
	defer func() { _ = client.Close() }()
	args := []any{"replicaof"}
	host, port, _ := net.SplitHostPort(primary.Addr)
	return client.Do(t.Context(), append(args, host, port)...).Err()
}
