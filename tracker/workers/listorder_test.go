package workers_test

import (
	"slices"
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/tracker"
	"github.com/lubdub-io/lubdub/tracker/trackertest"
)

// Workers are listed by name and version, and in the order of their last heartbeats, either way round, page by page.
func TestListsOfWorkersHaveAnOrder(t *testing.T) {
	t.Parallel()
	trackertest.Claims(t, func(c *trackertest.Crew) {
		names := map[string]string{}
		for i, name := range []string{"a", "b", "c", "d", "e"} {
			c.Hire(name, func(n *tracker.NewWorker) {
				n.Name = name
				if n.Version = "2"; i%2 == 0 {
					n.Version, n.MachineID = "1", "host-1"
				}
			})
			names[c.IDs[name]] = name
		}
		for _, name := range []string{"c", "a", "e", "d", "b"} {
			c.Advance(time.Second)
			c.MustBeatWorker(c.IDs[name])
		}
		list := func(f tracker.WorkerFilter) (got []string) {
			f.Scope = trackertest.Scope
			for {
				page, err := c.Workers(c.Ctx, f)
				if err != nil {
					c.Fatal(err)
				}
				for _, w := range page.Workers {
					got = append(got, names[w.ID])
				}
				if f.After = page.Next; f.After == "" {
					return got
				}
			}
		}
		for name, of := range map[string]struct {
			filter tracker.WorkerFilter
			want   []string
		}{
			"by registration":           {tracker.WorkerFilter{}, []string{"a", "b", "c", "d", "e"}},
			"by last heartbeat":         {tracker.WorkerFilter{ByLastHeartbeat: true}, []string{"c", "a", "e", "d", "b"}},
			"of a name":                 {tracker.WorkerFilter{Name: "b"}, []string{"b"}},
			"of a version":              {tracker.WorkerFilter{Version: "1"}, []string{"a", "c", "e"}},
			"of a version, by beat":     {tracker.WorkerFilter{Version: "1", ByLastHeartbeat: true}, []string{"c", "a", "e"}},
			"of a machine":              {tracker.WorkerFilter{MachineID: "host-1", Queue: "q"}, []string{"a", "c", "e"}},
			"of a machine and a status": {tracker.WorkerFilter{MachineID: "host-1", Status: tracker.Offline}, nil},
			"of no such version":        {tracker.WorkerFilter{Version: "3"}, nil},
		} {
			for _, size := range []int{1, 2, 100} {
				of.filter.PageSize, of.filter.Descending = size, false
				if got := list(of.filter); !slices.Equal(got, of.want) {
					c.Errorf("%s by %d: %v, want %v", name, size, got, of.want)
				}
				of.filter.Descending = true
				got := list(of.filter)
				if slices.Reverse(got); !slices.Equal(got, of.want) {
					c.Errorf("%s by %d from behind: %v, want %v", name, size, got, of.want)
				}
			}
		}
		var hosts []string
		for f := (tracker.MachineFilter{Scope: trackertest.Scope, Descending: true, PageSize: 1}); ; {
			page, err := c.Machines(c.Ctx, f)
			if err != nil {
				c.Fatal(err)
			}
			for _, m := range page.Machines {
				hosts = append(hosts, m.ID)
			}
			if f.After = page.Next; f.After == "" {
				break
			}
		}
		if want := []string{"host-d", "host-b", "host-1"}; !slices.Equal(hosts, want) {
			c.Errorf("machines from behind: %v, want %v", hosts, want)
		}
	})
}

// A page that is as long as what a shard lists is not the last while there are more.
func TestAPageOfWorkersIsNotTheLast(t *testing.T) {
	t.Parallel()
	trackertest.Contract(t, func(h *trackertest.Harness) {
		for range 5 {
			h.MustRegister()
		}
		seen := 0
		for f := (tracker.WorkerFilter{Scope: trackertest.Scope, PageSize: 2}); ; {
			page, err := h.Workers(h.Ctx, f)
			if err != nil || page.Total != 5 {
				h.Fatalf("%+v, %v", page, err)
			}
			if seen += len(page.Workers); page.Next == "" {
				break
			}
			f.After = page.Next
		}
		if seen != 5 {
			h.Errorf("%d of 5 workers are listed", seen)
		}
	}, func(o *tracker.Options) { o.Shards = 1 })
}
