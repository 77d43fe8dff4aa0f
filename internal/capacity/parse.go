package capacity

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// ParseCount reads a number of tasks: 10000, 10k, 2.5M or 1B.
func ParseCount(text string) (int64, error) {
	wrong := fmt.Errorf("%q is not a number: use 10000000, 10M or 1B", text)
	number, times := text, 1.0
	if text != "" {
		if i := strings.IndexByte("kMB", text[len(text)-1]); i >= 0 {
			number, times = text[:len(text)-1], math.Pow(1000, float64(i+1))
		}
	}
	v, err := strconv.ParseFloat(strings.ReplaceAll(number, ",", ""), 64)
	if err != nil || math.IsInf(v, 0) || math.IsNaN(v) || v*times != math.Trunc(v*times) {
		return 0, wrong
	}
	if v *= times; v < 1 || v > maxTasks {
		return 0, fmt.Errorf("%q is out of bounds: give 1 to 100B", text)
	}
	return int64(v), nil
}

const maxTasks = 100e9

// ParseShare reads a share: 50% or 0.5.
func ParseShare(text string) (float64, error) {
	number, percent := strings.CutSuffix(text, "%")
	v, err := strconv.ParseFloat(number, 64)
	if percent {
		v /= 100
	}
	if err != nil || !(v >= 0 && v <= 1) {
		return 0, fmt.Errorf("%q is not a share: use 50%% or 0.5, from 0 to 1", text)
	}
	return v, nil
}

// ParseBytes reads a size: 32GiB, 512MiB or 64GB.
func ParseBytes(text string) (float64, error) {
	for _, u := range []struct {
		name  string
		times float64
	}{{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"TiB", 1 << 40}, {"GB", 1e9}, {"MB", 1e6}, {"TB", 1e12}} {
		if number, ok := strings.CutSuffix(text, u.name); ok {
			v, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
			if err != nil || !(v > 0) || v*u.times > 1e15 {
				break
			}
			return v * u.times, nil
		}
	}
	return 0, fmt.Errorf("%q is not a size: use 32GiB or 512MiB", text)
}
