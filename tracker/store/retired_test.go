package store_test

import (
	"bytes"
	"context"
	"fmt"
	"runtime/pprof"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/internal/redistest"
	"github.com/lubdub-io/lubdub/internal/testenv"
	"github.com/lubdub-io/lubdub/tracker"
	"github.com/lubdub-io/lubdub/tracker/beats"
	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/sweep"
	"github.com/lubdub-io/lubdub/tracker/trackertest"
)

// marked labels the goroutines that the test starts from now on, and those that they start, to distinguish them from other tests'
// goroutines.
func marked(t *testing.T) {
	pprof.SetGoroutineLabels(pprof.WithLabels(t.Context(), pprof.Labels("test", t.Name())))
}

// running counts the goroutines of a marked test in each of the tracker's functions.
func running(t *testing.T, functions ...string) map[string]int {
	t.Helper()
	var stacks bytes.Buffer
	if err := pprof.Lookup("goroutine").WriteTo(&stacks, 1); err != nil {
		t.Fatal(err)
	}
	counts, ours := map[string]int{}, fmt.Sprintf(`"test":%q`, t.Name())
	_, all, _ := strings.Cut(stacks.String(), "\n") // without the heading
	for stack := range strings.SplitSeq(all, "\n\n") {
		number, _, _ := strings.Cut(stack, " @ ") // of goroutines
		for _, f := range functions {
			if strings.Contains(stack, ours) && strings.Contains(stack, f+"+0x") {
				n, err := strconv.Atoi(number)
				if err != nil {
					t.Fatalf("%v in\n%s", err, stack)
				}
				counts[f] += n
			}
		}
	}
	return counts
}

// After promotions back and forth, new primaries are served, and no lane, sweeper or probe of a replaced node remains.
func TestNothingStaysOfReplacedNodes(t *testing.T) {
	testenv.OnlyAll(t)
	t.Parallel()
	marked(t)
	c := redistest.StartCluster(t, 3, 1, 5*time.Second)
	tr := trackertest.Open(t, tracker.Options{RedisURL: c.URL(), Shards: 12})
	ctx, stop := context.WithCancel(t.Context())
	sweeping := make(chan error)
	go func() { sweeping <- sweep.NewSweeper(tr.Sweeper, sweep.SweeperOptions{}).Run(ctx) }()
	defer func() {
		stop()
		<-sweeping
	}()
	attempts := make([]*model.Attempt, 24)
	for i := range attempts {
		attempts[i] = trackertest.NewTask(t, tr, fmt.Sprint("t", i))
	}
	beatAll := func() (failed error) {
		for _, a := range attempts {
			b := &beats.Beat{Attempt: a}
			if tr.Beats.Beat(b); b.Err != nil {
				failed = b.Err
			}
		}
		return failed
	}
	parts := []string{"lane.(*Lane[...]).run", "store.(*Store).runOnNode", "store.(*Store).probe", "lane.(*Turns[...]).run"}
	var before map[string]int
	trackertest.Eventually(t, "three nodes are swept", func() bool {
		before = running(t, parts...)
		return beatAll() == nil && before[parts[1]] == 15 // 15 of each: tasks, workers, schedules, events and webhooks
	})
	if before[parts[0]] == 0 || before[parts[3]] == 0 {
		t.Fatalf("no lanes: %v", before)
	}
	for range 2 {
		for slot := 0; slot < 16384; slot += 5462 {
			owner, err := c.Owner(slot, c.Servers[0])
			if err != nil {
				t.Fatal(err)
			}
			promote(t, c, owner)
		}
		trackertest.Eventually(t, "all tasks beat again, and nothing is left of the replaced nodes", func() bool {
			return beatAll() == nil && fmt.Sprint(running(t, parts...)) == fmt.Sprint(before)
		})
	}
}

// promote makes a replica take over from a primary without loss.
func promote(t *testing.T, c *redistest.Cluster, primary *redistest.Server) {
	t.Helper()
	var replica *redistest.Server
	trackertest.Eventually(t, "it has a replica", func() (ok bool) {
		var err error
		replica, err = c.Replica(primary)
		return err == nil && replica != nil
	})
	client := replica.Client()
	defer func() { _ = client.Close() }()
	trackertest.Eventually(t, "the replica is promoted", func() bool {
		_ = client.ClusterFailover(t.Context()).Err()
		role, _ := client.Do(t.Context(), "role").Slice()
		return len(role) > 0 && role[0] == "master"
	})
}
