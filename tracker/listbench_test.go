package tracker_test

import (
	"slices"
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/tracker/model"
)

// BenchmarkLists reports as redis-ns/op what each task of a list costs Redis, in pages of 100: for tasks in the page, and for tasks that
// a filter reads and rejects. Like BenchmarkTransitions it also runs in the trees of older commits.
func BenchmarkLists(b *testing.B) {
	var t transitions
	for _, of := range []struct {
		name   string
		filter model.TaskFilter
	}{
		{"queued", model.TaskFilter{States: []model.State{model.Queued}}},
		{"running", model.TaskFilter{States: []model.State{model.Running}}},
		{"succeeded", model.TaskFilter{States: []model.State{model.Succeeded}}},
		{"running, those that are late", model.TaskFilter{States: []model.State{model.Running}, Liveness: model.Late}},
		{"succeeded, those with a label", model.TaskFilter{States: []model.State{model.Succeeded}, Labels: map[string]string{"a": "b"}}},
	} {
		b.Run(of.name, func(b *testing.B) {
			t.open(b) // with 5,000 that have succeeded, and as many whose worker beats for them
			t.silent = time.Minute
			t.start(t.claim(t.create(5000)))
			t.create(5000)
			f := of.filter
			f.Scope, f.PageSize = transitionScope, 100
			var costs []float64
			b.ResetTimer()
			for left := b.N; left > 0; {
				seen := 0
				spent := t.cost(func() {
					for range 10 {
						page, err := t.Tasks.List(b.Context(), f)
						t.must(err)
						if seen += len(page.Tasks); f.Liveness != "" || len(f.Labels) > 0 {
							seen += 1000 // as many as one page reads
						}
						f.After = page.Next
					}
				})
				left -= seen
				costs = append(costs, float64(spent.Nanoseconds())/float64(seen))
			}
			slices.Sort(costs)
			b.ReportMetric(costs[len(costs)/4], "redis-ns/op")
		})
	}
}
