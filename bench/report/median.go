package report

import "slices"

// Median returns the median of values, of an even number the mean of the two in the middle; 0 of none.
func Median(values []float64) float64 {
	v := slices.Sorted(slices.Values(values))
	n := len(v)
	if n == 0 {
		return 0
	}
	return (v[(n-1)/2] + v[n/2]) / 2
}
