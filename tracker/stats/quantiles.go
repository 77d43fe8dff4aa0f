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

// Gaps are how close live tasks or workers came to their timeouts: the time between two heartbeats, divided by the timeout.
type Gaps struct {
	Kind     string  // the one of the two that came closer
	P50, P99 float64 // estimated
	Most     float64 // the upper bound of the highest bucket with samples
	Samples  int64   // 0: there are no samples, and the other fields are not set
}

// enoughGaps is how many samples a kind needs to count if the other one has fewer.
const enoughGaps = 100

// gapsOf summarizes the samples of some steps and returns the kind that came closer to its timeouts. The kinds are not added up:
// many relaxed workers would hide tasks that are about to die.
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
		all[float64(tenth)/10] = 0 // empty buckets are not reported but still bound the next one
	}
	for _, s := range steps {
		for bound, n := range s.gaps[kind] {
			all[bound] += n
			g.Samples += n
			if n > 0 {
				g.Most = max(g.Most, min(bound, 1)) // a live task or worker was not silent for longer
			}
		}
	}
	if g.Samples > 0 {
		g.Kind, g.P50, g.P99 = kind, quantile(all, 0.5), quantile(all, 0.99)
	}
	return g
}

// quantile estimates the value below which a share of the samples lies, from the number of samples between each bound and the one
// before it. It assumes an even distribution within a bucket; beyond the last bound it returns that bound. 0: there are no
// samples.
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
