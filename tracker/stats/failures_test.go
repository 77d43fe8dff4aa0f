package stats_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/schema"
	"github.com/lubdub-io/lubdub/tracker/stats"
	"github.com/lubdub-io/lubdub/tracker/trackertest"
)

// recentFailures uses a new replica each time, since a replica caches its result for a second.
func recentFailures(c *trackertest.Fleet) *stats.Failures {
	c.Helper()
	found, err := c.Replica().Stats.RecentFailures(c.Ctx, trackertest.Scope)
	if err != nil {
		c.Fatal(err)
	}
	return found
}

// run makes a worker claim the waiting tasks of its types and complete each: with success, or with an error.
func run(c *trackertest.Fleet, worker, message string) {
	c.Helper()
	for _, e := range c.MustClaim(worker, 100) {
		done := model.Completion{Outcome: model.Succeeded}
		if message != "" {
			done.Outcome, done.Retryable = model.Failed, true
			done.Error = fmt.Appendf(nil, `{"category":"USER_CODE","message":"%s"}`, message)
		}
		if _, err := c.Beats.Complete(c.Ctx, e.Attempt, done); err != nil {
			c.Fatal(err)
		}
	}
}

// Reported failures are grouped by queue, type and error, those of the last five minutes first; they are listed for an hour, although
// their tasks succeed later, and verdicts do not count among them.
func TestRecentFailures(t *testing.T) {
	t.Parallel()
	trackertest.Claims(t, func(c *trackertest.Fleet) {
		retry := func(n *model.NewTask) {
			n.Retry = &model.RetryPolicy{MaxAttempts: 9, MaxLosses: 9, Multiplier: 1, MaxBackoff: time.Minute}
		}
		for _, w := range []string{"old", "new"} {
			c.Hire(w, func(n *model.NewWorker) { n.Version, n.Types = w, []string{"x", "y"} })
		}
		if found := recentFailures(c); found.Total != 0 || len(found.Groups) != 0 {
			c.Fatalf("before any: %+v", found)
		}
		c.MustQueue("a", "x", retry)
		run(c, "old", "no user 1")
		run(c, "new", "no user 22")
		c.Store.Clock.Advance(6 * time.Minute)
		c.MustQueue("b", "y", retry)
		run(c, "new", "other")
		run(c, "old", "")
		found := recentFailures(c)
		if found.Total != 4 || found.Recent != 2 || found.Succeeded != 2 || found.Truncated || len(found.Groups) != 3 {
			c.Fatalf("%+v", found)
		}
		first, last := found.Groups[0], found.Groups[2]
		if first.Error != "USER_CODE other" || first.Count != 1 || first.Recent != 1 || fmt.Sprint(first.Versions) != "[new]" ||
			first.TaskID == "" {
			c.Errorf("first: %+v", first)
		}
		if last.Error != "USER_CODE no user …" || last.Type != "x" || last.Queue != "q" || last.Count != 2 || last.Recent != 0 ||
			last.TaskID != "a" || fmt.Sprint(last.Versions) != "[new old]" || last.Last.Before(last.First) {
			c.Errorf("last: %+v", last)
		}
		c.Store.Clock.Advance(time.Hour + time.Second)
		if found := recentFailures(c); found.Total != 0 || len(found.Groups) != 0 {
			c.Errorf("an hour later: %+v", found)
		}
	})
}

// A version is suspected if all recent failures are of it and few workers of the queue run it.
func TestASuspectVersion(t *testing.T) {
	t.Parallel()
	trackertest.Claims(t, func(c *trackertest.Fleet) {
		for n := range 4 {
			c.Hire(fmt.Sprint("old", n), func(n *model.NewWorker) { n.Version = "1.9" })
		}
		c.Hire("new", func(n *model.NewWorker) { n.Version = "2.0" })
		fail := func(worker string, times int) *stats.Suspect {
			c.Helper()
			for n := range times {
				c.MustQueue(fmt.Sprintf("%s-%d-%d", worker, c.Store.Clock.Now().UnixMilli(), n), "x")
			}
			run(c, worker, "it fails")
			c.Store.Clock.Advance(time.Second)
			return recentFailures(c).Groups[0].Suspect
		}
		if s := fail("new", 2); s != nil {
			c.Errorf("two failures may be chance: %+v", s)
		}
		if s := fail("new", 1); s == nil || *s != (stats.Suspect{Version: "2.0", Workers: 1, Among: 5}) {
			c.Errorf("after three failures: %+v", s)
		}
		c.Hire("typed", func(n *model.NewWorker) { n.Version, n.Types = "3.0", []string{"y"} })
		c.MustQueue("poison", "y", func(n *model.NewTask) {
			n.Retry = &model.RetryPolicy{MaxAttempts: 9, MaxLosses: 9, Multiplier: 1, MaxBackoff: time.Minute}
		})
		for range 9 {
			run(c, "typed", "one task")
		}
		if g := recentFailures(c).Groups[0]; g.Type != "y" || g.Suspect != nil {
			c.Errorf("one task is retried: %+v", g)
		}
		for n := range 9 {
			c.MustQueue(fmt.Sprintf("only-%d", n), "y")
		}
		run(c, "typed", "one task")
		if g := recentFailures(c).Groups[0]; g.Count != 18 || g.Suspect != nil {
			c.Errorf("no other version can run these tasks: %+v", g)
		}
		c.Store.Clock.Advance(6 * time.Minute)
		c.Hire("unknown")
		for n := range 4 {
			c.MustQueue(fmt.Sprintf("unknown-%d", n), "x")
		}
		run(c, "unknown", "mixed")
		if s := fail("new", 9); s == nil {
			c.Error("another error of workers without a version hides the suspect")
		}
		c.Store.Clock.Advance(6 * time.Minute)
		if s := fail("old0", 1); s != nil {
			c.Errorf("another version fails too: %+v", s)
		}
	})
}

// A shard lists the newest failures of a scope only, so that tasks which fail all the time take a bounded amount of memory.
func TestFailuresAreBounded(t *testing.T) {
	t.Parallel()
	trackertest.Claims(t, func(c *trackertest.Fleet) {
		c.Hire("w")
		const attempts = schema.MaxFailures/2 + 3
		retry := func(n *model.NewTask) {
			n.Retry = &model.RetryPolicy{MaxAttempts: attempts, MaxLosses: 9, Multiplier: 1, MaxBackoff: time.Minute}
		}
		for n, tasks := 0, 0; tasks < 2; n++ {
			if id := fmt.Sprintf("fails-%d", n); c.Tracker.Store.ShardOf(trackertest.Scope, id) == 0 {
				c.MustQueue(id, "x", retry)
				tasks++
			}
		}
		for range attempts {
			run(c, "w", "again")
		}
		found := recentFailures(c)
		if found.Total != schema.MaxFailures || !found.Truncated || found.Groups[0].Count != schema.MaxFailures {
			c.Errorf("%+v", found)
		}
	})
}
