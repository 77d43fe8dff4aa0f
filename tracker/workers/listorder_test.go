package workers_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/tracker"
	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/trackertest"
	"github.com/lubdub-io/lubdub/tracker/workers"
)

// Workers are listed by name and version, and in the order of their last heartbeats, in either direction, page by page.
func TestListsOfWorkersHaveAnOrder(t *testing.T) {
	t.Parallel()
	trackertest.Claims(t, func(c *trackertest.Fleet) {
		names := map[string]string{}
		for i, name := range []string{"a", "b", "c", "d", "e"} {
			c.Hire(name, func(n *model.NewWorker) {
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
		list := func(f workers.WorkerFilter) (got []string) {
			f.Scope = trackertest.Scope
			for {
				page, err := c.Workers.List(c.Ctx, f)
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
			filter workers.WorkerFilter
			want   []string
		}{
			"by registration":           {workers.WorkerFilter{}, []string{"a", "b", "c", "d", "e"}},
			"by last heartbeat":         {workers.WorkerFilter{Sort: workers.ByLastHeartbeat}, []string{"c", "a", "e", "d", "b"}},
			"of a name":                 {workers.WorkerFilter{Name: "b"}, []string{"b"}},
			"of a version":              {workers.WorkerFilter{Version: "1"}, []string{"a", "c", "e"}},
			"of a version, by beat":     {workers.WorkerFilter{Version: "1", Sort: workers.ByLastHeartbeat}, []string{"c", "a", "e"}},
			"of a machine":              {workers.WorkerFilter{MachineID: "host-1", Queue: "q"}, []string{"a", "c", "e"}},
			"of a machine and a status": {workers.WorkerFilter{MachineID: "host-1", Statuses: []model.WorkerStatus{model.Offline}}, nil},
			"of no such version":        {workers.WorkerFilter{Version: "3"}, nil},
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
		for f := (workers.MachineFilter{Scope: trackertest.Scope, Descending: true, PageSize: 1}); ; {
			page, err := c.Workers.Machines(c.Ctx, f)
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
		for f := (workers.WorkerFilter{Scope: trackertest.Scope, PageSize: 2}); ; {
			page, err := h.Workers.List(h.Ctx, f)
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

// A list has exactly the workers whose fields match its filter, letter by letter, with any content.
func TestFiltersOfWorkersAreExact(t *testing.T) {
	t.Parallel()
	trackertest.Claims(t, func(c *trackertest.Fleet) {
		keys := []string{"a", "b", "a/b", "a.b", "ab", "c", "d"}
		values := []string{"", "a", "b", "ab", `"`, `a"`, `"b":"a"`, `","b":"a`,
			`b","a":"b`, `\`, `a\`, `\"`, "<", "é", "{}", "}", ":", ",", "%w"}
		types := []string{"a", "b", "ab", "a-b", "a.b", "axb"}
		rng := rand.New(rand.NewPCG(1, 2))
		pick := func(of []string) string { return of[rng.IntN(len(of))] }
		var all []*model.NewWorker
		names := map[string]int{}
		for i := range 60 {
			name := fmt.Sprint("w", i)
			c.Hire(name, func(n *model.NewWorker) {
				n.Labels, n.Types, n.Runtimes = map[string]string{}, nil, nil
				for range rng.IntN(7) {
					n.Labels[pick(keys)] = pick(values)
				}
				for range 1 + rng.IntN(3) {
					n.Types, n.Runtimes = append(n.Types, pick(types)), append(n.Runtimes, pick(types))
				}
				slices.Sort(n.Types)
				slices.Sort(n.Runtimes)
				n.Types, n.Runtimes = slices.Compact(n.Types), slices.Compact(n.Runtimes)
				all = append(all, n)
			})
			names[c.IDs[name]] = i
		}
		found := 0
		for range 600 {
			f := workers.WorkerFilter{Scope: trackertest.Scope, PageSize: 100}
			switch rng.IntN(5) {
			case 0:
				f.Type = pick(append(types, "a,b", ",", "c"))
			case 1:
				f.Runtime = pick(append(types, "a,ab"))
			case 2:
				f.Labels = map[string]string{pick(append(keys, `"`, `a":"a`, "", ":", ",")): pick(values)}
			case 4:
				f.Labels = map[string]string{}
				for k, v := range all[rng.IntN(len(all))].Labels { // as one worker has them, and more than Redis searches for
					f.Labels[k] = v
				}
				for range rng.IntN(2) {
					f.Labels[pick(keys)] = pick(values)
				}
			default:
				f.Type, f.Labels = pick(types), map[string]string{pick(keys): pick(values), pick(keys): pick(values)}
			}
			var want, got []int
			for i, n := range all {
				fits := (f.Type == "" || slices.Contains(n.Types, f.Type)) && (f.Runtime == "" || slices.Contains(n.Runtimes, f.Runtime))
				for k, v := range f.Labels {
					is, ok := n.Labels[k]
					fits = fits && ok && is == v
				}
				if fits {
					want = append(want, i)
				}
			}
			page, err := c.Workers.List(c.Ctx, f)
			if err != nil {
				c.Fatal(err)
			}
			for _, w := range page.Workers {
				got = append(got, names[w.ID])
			}
			if !slices.Equal(got, want) {
				c.Fatalf("type %q, runtime %q, labels %q: %v, want %v", f.Type, f.Runtime, f.Labels, got, want)
			}
			found += len(got)
		}
		if found < 400 {
			c.Errorf("only %d were found", found)
		}
	})
}
