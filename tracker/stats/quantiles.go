package stats

import (
	"math"
	"slices"
)

// Gaps are how close tasks that live came to their timeouts: the time between two of a task's own beats by its timeout, sampled.
type Gaps struct {
	P50, P99 float64 // estimated
	Most     float64 // the upper bound of the highest bucket that has one
	Samples  int64   // 0: nothing was sampled, and nothing else is known
}

// gapsOf sums up what was sampled in some steps.
func gapsOf(steps []*Step) (g Gaps) {
	all := map[float64]int64{}
	for tenth := 1; tenth <= 10; tenth++ {
		all[float64(tenth)/10] = 0 // what is empty is not reported, and bounds the one above it all the same
	}
	for _, s := range steps {
		for bound, n := range s.gaps {
			all[bound] += n
			g.Samples += n
			if n > 0 {
				g.Most = max(g.Most, min(bound, 1)) // who lives was not silent for longer
			}
		}
	}
	g.P50, g.P99 = quantile(all, 0.5), quantile(all, 0.99)
	return g
}

// quantile estimates below which value a share lies, by how many lie up to each bound and above the one before it. Within a
// bucket they are taken to be spread evenly; beyond the last bound it is that bound. 0: there is none.
func quantile(of map[float64]int64, share float64) float64 {
	bounds, all := make([]float64, 0, len(of)), int64(0)
	for bound, n := range of {
		bounds, all = append(bounds, bound), all+n
	}
	if all == 0 {
		return 0
	}
	slices.Sort(bounds)
	wanted, below, last := share*float64(all), 0.0, 0.0
	for _, bound := range bounds {
		n := float64(of[bound])
		if math.IsInf(bound, 1) {
			break
		}
		if n > 0 && below+n >= wanted {
			return last + (bound-last)*(wanted-below)/n
		}
		below, last = below+n, bound
	}
	return last
}
