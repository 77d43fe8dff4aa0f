package stats

import (
	"math"
	"slices"
)

// Kinds of heartbeats.
const (
	KindTask   = "task"
	KindWorker = "worker"
)

// Gaps are how close live tasks or workers came to their timeouts: the time between two heartbeats of one, divided by its timeout.
type Gaps struct {
	Kind     string  // of the two the one that came closer
	P50, P99 float64 // estimated
	Most     float64 // the upper bound of the highest bucket that has one
	Samples  int64   // 0: nothing was sampled, and nothing else is known
}

// enoughGaps is how many samples make a kind count where the other one has fewer.
const enoughGaps = 100

// gapsOf sums up what was sampled in some steps, and returns the kind that came closer to its timeouts. They are not added up: many
// relaxed workers would hide tasks that are about to die.
func gapsOf(steps []*Step) Gaps {
	task, worker := gapsOfKind(steps, KindTask), gapsOfKind(steps, KindWorker)
	if enough := worker.Samples > enoughGaps; worker.Samples > 0 && enough == (task.Samples > enoughGaps) {
		if worker.P99 > task.P99 {
			return worker
		}
	} else if enough {
		return worker
	}
	return task
}

func gapsOfKind(steps []*Step, kind string) (g Gaps) {
	all := map[float64]int64{}
	for tenth := 1; tenth <= 10; tenth++ {
		all[float64(tenth)/10] = 0 // what is empty is not reported, and bounds the one above it all the same
	}
	for _, s := range steps {
		for bound, n := range s.gaps[kind] {
			all[bound] += n
			g.Samples += n
			if n > 0 {
				g.Most = max(g.Most, min(bound, 1)) // who lives was not silent for longer
			}
		}
	}
	if g.Samples > 0 {
		g.Kind, g.P50, g.P99 = kind, quantile(all, 0.5), quantile(all, 0.99)
	}
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
