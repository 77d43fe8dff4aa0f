package report

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Median returns the median; of an even number of values the mean of the two in the middle; NaN if there are none, or one is unknown.
func Median(values []float64) float64 {
	v := slices.Sorted(slices.Values(values))
	if len(v) == 0 || math.IsNaN(v[0]) {
		return math.NaN()
	}
	return (v[(len(v)-1)/2] + v[len(v)/2]) / 2
}

// Evaluate sets a bar's median and verdict.
func (b *Bar) Evaluate() {
	if b.Verdict = NotMeasured; len(b.Rounds) == 0 {
		if b.Note == "" {
			b.Note = "what measures it was not run"
		}
		return
	}
	m := Median(b.Rounds)
	b.Measured = &m
	reached := func(goal float64) bool { return m <= goal && !b.AtLeast || m >= goal && b.AtLeast }
	switch {
	case b.Aim != nil && reached(*b.Aim):
		b.Verdict = AimReached
	case reached(b.Bar):
		b.Verdict = Met
	default:
		b.Verdict = Missed
	}
}

// HasMissed reports whether a bar was missed.
func (r *Report) HasMissed() bool {
	return slices.ContainsFunc(r.Bars, func(b Bar) bool { return b.Verdict == Missed })
}

// Refusals formats a run's NotOK: "2 × 429, 3 × 503".
func Refusals(notOK map[string]int64) string {
	var list []string
	for _, why := range slices.Sorted(maps.Keys(notOK)) {
		list = append(list, fmt.Sprintf("%d × %s", notOK[why], why))
	}
	return strings.Join(list, ", ")
}

// Number formats v with its significant digits: 88,000, 145, 11.2, 3.81, 0.041.
func Number(v float64) string {
	a := math.Abs(v)
	digits := 0
	switch {
	case a == math.Trunc(a) || a >= 100:
	case a >= 10:
		digits = 1
	case a >= 0.1:
		digits = 2
	default:
		return strconv.FormatFloat(v, 'g', 2, 64)
	}
	s := strconv.FormatFloat(v, 'f', digits, 64)
	whole, fraction, _ := strings.Cut(s, ".")
	fraction = strings.TrimRight(fraction, "0")
	sign := ""
	if strings.HasPrefix(whole, "-") {
		sign, whole = "-", whole[1:]
	}
	for i := len(whole) - 3; i > 0; i -= 3 {
		whole = whole[:i] + "," + whole[i:]
	}
	if fraction != "" {
		whole += "." + fraction
	}
	return sign + whole
}

// WithUnit formats a value with its unit: 0.18 ×, 512 bytes, 88,000 beats/s.
func WithUnit(v float64, unit string) string {
	if unit == "" {
		return Number(v)
	}
	return Number(v) + " " + unit
}
