package trackertest

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/internal/redistest"
	"github.com/lubdub-io/lubdub/tracker"
	"github.com/lubdub-io/lubdub/tracker/holdings"
	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/queues"
	"github.com/lubdub-io/lubdub/tracker/workers"
)

// Fleet is a harness with workers that claim tasks.
type Fleet struct {
	*Harness
	IDs map[string]string // worker IDs by the names that a test chooses
}

// NewFleet returns a harness without workers so far.
func NewFleet(h *Harness) *Fleet { return &Fleet{h, map[string]string{}} }

func Claims(t *testing.T, test func(c *Fleet)) {
	t.Helper()
	Contract(t, func(h *Harness) { test(NewFleet(h)) })
}

// Hire registers a worker of the queue q on its own machine.
func (c *Fleet) Hire(name string, change ...func(*model.NewWorker)) {
	c.Helper()
	r := c.MustRegister(append([]func(*model.NewWorker){func(n *model.NewWorker) {
		n.Queue, n.Types, n.MachineID, n.MaxConcurrent = "q", []string{"x"}, "host-"+name, 100
	}}, change...)...)
	c.IDs[name] = r.WorkerID
}

// Pass advances time while all workers beat.
func (c *Fleet) Pass(d time.Duration) {
	c.Helper()
	for ; d > 0; d -= 5 * time.Second {
		for _, id := range c.IDs {
			c.MustBeatWorker(id)
		}
		c.Advance(min(d, 5*time.Second))
	}
}

// MustQueue creates a task in the queue q.
func (c *Fleet) MustQueue(id, kind string, change ...func(*model.NewTask)) {
	c.Helper()
	c.MustCreate(append([]func(*model.NewTask){func(n *model.NewTask) {
		n.TaskID, n.Queue, n.Type, n.HeartbeatTimeout = id, "q", kind, 0
	}}, change...)...)
}

func (c *Fleet) MustClaim(worker string, max int, change ...func(*queues.ClaimRequest)) []*model.Envelope {
	c.Helper()
	r := queues.ClaimRequest{Scope: Scope, WorkerID: c.IDs[worker], Queue: "q", Max: max}
	for _, f := range change {
		f(&r)
	}
	tasks, err := c.Queues.Claim(c.Ctx, r)
	if err != nil {
		c.Fatalf("claim of %s: %v", worker, err)
	}
	return tasks
}

func IDs(tasks []*model.Envelope) []string {
	list := []string{}
	for _, e := range tasks {
		list = append(list, e.Task.ID)
	}
	return list
}

func (c *Fleet) WantIDs(tasks []*model.Envelope, want ...string) {
	c.Helper()
	got := IDs(tasks)
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		c.Fatalf("claimed %v, want %v", got, want)
	}
}

// OneShard changes a task's ID, keeping its beginning, until it is in a shard.
func OneShard(c *Fleet, shard int) func(*model.NewTask) {
	return func(n *model.NewTask) {
		id := n.TaskID
		for i := 0; c.Tracker.Store.ShardOf(Scope, n.TaskID) != shard; i++ {
			n.TaskID = fmt.Sprintf("%s.%d", id, i)
		}
	}
}

// BenchFleet returns a tracker on a real Redis with the real clock, as in a server.
func BenchFleet(b *testing.B) *Fleet {
	b.Helper()
	s := redistest.Real(b, redistest.WallClock)
	tr, err := tracker.Open(b.Context(), tracker.Options{RedisURL: s.URL, Scripts: s.Scripts, Shards: 16,
		Logger: slog.New(slog.NewTextHandler(io.Discard, nil))})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = tr.Close(context.Background()) })
	c := NewFleet(&Harness{TB: b, Tracker: tr, Store: s, Ctx: b.Context()})
	c.MustTick()
	return c
}

// Listing adds an inventory to a worker's beat.
func Listing(tasks ...holdings.OwnedAttempt) func(*workers.WorkerBeat) {
	return func(b *workers.WorkerBeat) {
		b.Inventory = []holdings.InventoryItem{}
		for _, n := range tasks {
			b.Inventory = append(b.Inventory, holdings.InventoryItem{OwnedAttempt: n})
		}
	}
}

func NameOf(a *model.Attempt) holdings.OwnedAttempt {
	return holdings.OwnedAttempt{TaskID: a.TaskID, Number: a.Number}
}

func (c *Fleet) WantNotices(got []holdings.TaskNotice, want ...holdings.TaskNotice) {
	c.Helper()
	if !slices.Equal(got, want) {
		c.Fatalf("notices %+v, want %+v", got, want)
	}
}

// MustHolding makes a worker claim and start n tasks.
func (c *Fleet) MustHolding(worker string, n int, change ...func(*model.NewTask)) []*model.Attempt {
	c.Helper()
	for i := range n {
		c.MustQueue(fmt.Sprintf("%s-%03d", worker, i), "x", append(change, func(t *model.NewTask) { t.WorkerID = c.IDs[worker] })...)
	}
	var held []*model.Attempt
	for len(held) < n {
		for _, e := range c.MustClaim(worker, 100) {
			if _, err := c.Beats.Start(c.Ctx, e.Attempt, model.Report{}); err != nil {
				c.Fatal(err)
			}
			held = append(held, e.Attempt)
		}
	}
	return held
}
