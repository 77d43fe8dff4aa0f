package workers_test

import (
	"fmt"
	"testing"

	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/trackertest"
)

// BenchmarkSelect selects among many workers.
func BenchmarkSelect(b *testing.B) {
	for _, n := range []int{10, 1000} {
		b.Run(fmt.Sprintf("workers=%d", n), func(b *testing.B) {
			c := trackertest.BenchFleet(b)
			for i := range n {
				c.Hire(fmt.Sprintf("w%d", i))
			}
			b.ResetTimer()
			for range b.N {
				if _, err := c.Workers.Select(c.Ctx, model.Selector{Scope: trackertest.Scope, Queue: "q", Strategy: "leastLoaded"}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
