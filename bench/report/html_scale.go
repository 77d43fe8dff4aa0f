package report

import "math"

// ticks returns round values from 0 to at least most, about n of them.
func ticks(most float64, n int) []float64 {
	if most <= 0 || math.IsInf(most, 0) || math.IsNaN(most) {
		most = 1
	}
	raw := most / float64(n)
	base := math.Pow(10, math.Floor(math.Log10(raw)))
	step := 10 * base
	for _, m := range []float64{1, 2, 2.5, 5} {
		if m*base >= raw {
			step = m * base
			break
		}
	}
	var all []float64
	for i := 0; ; i++ {
		v := float64(i) * step
		all = append(all, v)
		if v >= most*(1-1e-9) {
			return all
		}
	}
}

// logTicks returns 1, 2, 5, 10, … from at most least to at least most.
func logTicks(least, most float64) []float64 {
	var all []float64
	for e := math.Floor(math.Log10(least)); ; e++ {
		for _, m := range []float64{1, 2, 5} {
			v := m * math.Pow(10, e)
			if len(all) > 0 && all[len(all)-1] >= most*(1-1e-9) {
				return all
			}
			if v <= least*(1+1e-9) {
				all = all[:0] // the last one below is enough
			}
			all = append(all, v)
		}
	}
}
