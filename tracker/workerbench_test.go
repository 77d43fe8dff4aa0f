package tracker_test

import (
	"fmt"
	"testing"

	"github.com/lubdub-io/lubdub/tracker"
)

// BenchmarkSelect selects among many workers.
func BenchmarkSelect(b *testing.B) {
	for _, n := range []int{10, 1000} {
		b.Run(fmt.Sprintf("workers=%d", n), func(b *testing.B) {
			c := benchCrew(b)
			for i := range n {
				c.hire(fmt.Sprintf("w%d", i))
			}
			b.ResetTimer()
			for range b.N {
				if _, err := c.Select(c.ctx, tracker.Selector{Scope: scope, Queue: "q", Strategy: "leastLoaded"}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
