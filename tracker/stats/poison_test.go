package stats_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/trackertest"
)

// A task is suspected if several workers were lost while they ran it, and is listed with these workers and its history. Not
// suspected are a task that went silent on live workers, one that went silent several times on one lost worker, one that was lost
// once, and one whose cancellation was requested since, even if that ended another worker and so FAILED.
func TestPoisonTasks(t *testing.T) {
	t.Parallel()
	trackertest.Claims(t, func(c *trackertest.Fleet) {
		losses := func(most int) func(*model.NewTask) {
			return func(n *model.NewTask) {
				n.Retry = &model.RetryPolicy{MaxAttempts: 9, MaxLosses: most, Multiplier: 1, MaxBackoff: time.Minute}
			}
		}
		c.MustQueue("poison", "x", losses(9))
		c.MustQueue("stopped", "x", losses(9))
		c.MustQueue("stopping", "x", losses(9))
		c.MustQueue("exhausted", "x", losses(1))
		beats := func(n *model.NewTask) { n.HeartbeatInterval, n.HeartbeatTimeout = time.Second, 3*time.Second }
		c.MustQueue("silent", "y", losses(9), beats)
		c.MustQueue("often-silent", "z", losses(9), beats)
		poison := func() (names []string) {
			c.Helper()
			found, err := c.Replica().Stats.PoisonTasks(c.Ctx, trackertest.Scope)
			if err != nil {
				c.Fatal(err)
			}
			for _, p := range found {
				var workers []string
				for _, w := range p.Workers {
					workers = append(workers, w.Name)
				}
				names = append(names, fmt.Sprint(p.Task.ID, " ", p.Task.State, " ", workers, " ", len(p.Task.History)))
			}
			slices.Sort(names)
			return names
		}
		start := func(worker string) {
			for _, e := range c.MustClaim(worker, 10) {
				if _, err := c.Beats.Start(c.Ctx, e.Attempt, model.Report{}); err != nil {
					c.Fatal(err)
				}
			}
		}
		for _, name := range []string{"lives-0", "lives-1", "lives-2"} {
			c.Hire(name, func(n *model.NewWorker) { n.Types = []string{"y"} })
		}
		c.Hire("one", func(n *model.NewWorker) { n.Types = []string{"z"} })
		alive := []string{c.IDs["lives-0"], c.IDs["lives-1"], c.IDs["lives-2"], c.IDs["one"]}
		round := func(n int) {
			if n == 2 {
				alive = alive[:3] // the worker that ran often-silent each time is lost too
			}
			name := fmt.Sprintf("w%d", n)
			c.Hire(name, func(n *model.NewWorker) { n.Name = name })
			if n == 0 {
				c.MustQueue("once", "x", losses(0))
			}
			start(name)
			start(fmt.Sprintf("lives-%d", n))
			start("one")
			c.AdvanceAlive(time.Minute, alive...)
			for range 3 {
				c.MustSweep()
			}
		}
		round(0)
		round(1)
		if got := poison(); !slices.Equal(got, []string{"exhausted FAILED [w1 w0] 2"}) {
			c.Errorf("after two losses: %v", got)
		}
		round(2)
		want := []string{"exhausted FAILED [w1 w0] 2", "poison QUEUED [w2 w1 w0] 3", "stopped QUEUED [w2 w1 w0] 3",
			"stopping QUEUED [w2 w1 w0] 3"}
		if got := poison(); !slices.Equal(got, want) {
			c.Errorf("after three losses: %v", got)
		}
		cancel := func(task string) {
			c.Helper()
			if _, err := c.Tasks.Cancel(c.Ctx, trackertest.Scope, task, model.CancelRequest{}); err != nil {
				c.Fatal(err)
			}
		}
		cancel("stopped")
		if got := poison(); !slices.Equal(got, []string{want[0], want[1], want[3]}) {
			c.Errorf("after a cancel: %v", got)
		}
		c.Hire("last")
		start("last")
		cancel("stopping")
		want = []string{want[0], "poison RUNNING [w2 w1 w0] 3"}
		if got := poison(); !slices.Equal(got, want) {
			c.Errorf("after a cancel while it is running: %v", got)
		}
		c.AdvanceAlive(time.Minute, alive...)
		for range 3 {
			c.MustSweep()
		}
		if task, err := c.Tasks.Get(c.Ctx, trackertest.Scope, "stopping"); err != nil || task.State != model.Failed {
			c.Errorf("the cancelled task whose worker was lost: %v, %v", task, err)
		}
		if got := poison(); slices.ContainsFunc(got, func(is string) bool { return strings.HasPrefix(is, "stopping") }) {
			c.Errorf("after it ended another worker: %v", got)
		}
		c.Store.Clock.Advance(time.Hour)
		if got := poison(); len(got) != 0 {
			c.Errorf("an hour later: %v", got)
		}
	})
}
