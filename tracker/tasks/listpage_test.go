package tasks_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/trackertest"
)

// A list reads only what it examines of each task, and only what it shows of those on the page; a page of large tasks is short,
// with the rest on the next one.
func TestListsReadWhatTheyShow(t *testing.T) {
	t.Parallel()
	trackertest.Contract(t, func(h *trackertest.Harness) {
		const n = 40
		var all []string
		for i := range n {
			id := fmt.Sprintf("t%02d", i)
			all = append(all, id)
			made := h.MustCreate(func(n *model.NewTask) {
				n.TaskID, n.Type, n.Labels = id, "x", map[string]string{"team": fmt.Sprint("t", i%2)}
				n.Payload, n.Resources = trackertest.Text(500_000), json.RawMessage(`{"a":`+string(trackertest.Text(50_000))+`}`)
			})
			if _, err := h.Beats.Complete(h.Ctx, made.Envelope.Attempt,
				model.Completion{Outcome: model.Succeeded, Output: trackertest.Text(200_000)}); err != nil {
				h.Fatal(err)
			}
		}
		list := func(f model.TaskFilter) (pages [][]string, read int) {
			f.Scope, f.PageSize = trackertest.Scope, 100
			calls := trackertest.RecordCalls(h.Tracker, "get")
			for {
				page, err := h.Tasks.List(h.Ctx, f)
				if err != nil {
					h.Fatal(err)
				}
				var ids []string
				for _, task := range page.Tasks {
					ids = append(ids, task.ID)
					if len(task.Output) != 200_002 || len(task.History) != 1 || len(task.Payload) > 0 {
						h.Fatalf("%s is shown with %d bytes of output, %d attempts and %d bytes of payload", task.ID, len(task.Output), len(task.History),
							len(task.Payload))
					}
				}
				pages = append(pages, ids)
				if f.After = page.Next; f.After == "" {
					break
				}
			}
			for _, c := range calls() {
				read += c.Got
			}
			return pages, read
		}
		for name, f := range map[string]model.TaskFilter{
			"nothing of this type":   {Type: "y"},
			"nothing of this queue":  {Queue: "q"},
			"no worker's":            {WorkerID: "w9"},
			"none of these is fresh": {Liveness: model.Fresh},
			"none with this label":   {Labels: map[string]string{"team": "t9"}},
		} {
			if pages, read := list(f); len(pages) != 1 || len(pages[0]) != 0 || read > n*500 {
				h.Errorf("%s: pages of %v, for which %d bytes of %d tasks were read", name, pages, read, n)
			}
		}
		odd := slices.DeleteFunc(slices.Clone(all), func(id string) bool { return (id[2]-'0')%2 == 0 })
		for _, c := range []struct {
			filter model.TaskFilter
			want   []string
		}{{model.TaskFilter{}, all}, {model.TaskFilter{States: []model.State{model.Succeeded}, Type: "x"},
			all}, {model.TaskFilter{Labels: map[string]string{"team": "t1"}}, odd}} {
			pages, read := list(c.filter)
			if got := slices.Concat(pages...); !slices.Equal(got, c.want) {
				h.Errorf("%+v: %v", c.filter, got)
			}
			for _, ids := range pages {
				if len(ids) > 18 { // 2 MiB, and what is read at once
					h.Errorf("%+v: one page shows %d tasks of 200 kB", c.filter, len(ids))
				}
			}
			if read > 2*len(c.want)*210_000 {
				h.Errorf("%+v: %d bytes were read for %d tasks of 200 kB", c.filter, read, len(c.want))
			}
		}
		if whole := h.MustGet(all[0]); !bytes.Equal(whole.Payload, trackertest.Text(500_000)) || len(whole.Resources) == 0 {
			h.Error("a single task is shown without its payload")
		}
	})
}

// A worker's list has what it holds, what waits for it alone, and what it runs without a claim; so has its machine's.
func TestListsByWorkerAndMachine(t *testing.T) {
	t.Parallel()
	trackertest.Claims(t, func(c *trackertest.Fleet) {
		for _, name := range []string{"a", "b"} {
			c.Hire(name)
			c.MustQueue("claimed-"+name, "x")
			c.WantIDs(c.MustClaim(name, 1), "claimed-"+name)
			c.MustQueue("waits-"+name, "x", func(n *model.NewTask) { n.WorkerID = c.IDs[name] })
			pushed := c.MustCreate(func(n *model.NewTask) { n.TaskID = "pushed-" + name }).Envelope.Attempt
			if _, err := c.Beats.Start(c.Ctx, pushed, model.Report{WorkerID: c.IDs[name]}); err != nil {
				c.Fatal(err)
			}
		}
		c.MustQueue("anyones", "x")
		for _, name := range []string{"a", "b"} {
			for of, f := range map[string]model.TaskFilter{"worker": {WorkerID: c.IDs[name]}, "machine": {MachineID: "host-" + name}} {
				f.Scope, f.PageSize = trackertest.Scope, 100
				page, err := c.Tasks.List(c.Ctx, f)
				if err != nil {
					c.Fatal(err)
				}
				var got []string
				for _, task := range page.Tasks {
					got = append(got, task.ID)
				}
				if want := []string{"claimed-" + name, "pushed-" + name, "waits-" + name}; !slices.Equal(got, want) {
					c.Errorf("%s of %s has %v, want %v", of, name, got, want)
				}
			}
		}
	})
}
