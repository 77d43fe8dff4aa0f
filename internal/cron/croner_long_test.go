//go:build long

package cron_test

import "testing"

// 10,000 random expressions fire when croner says, over five years each.
func TestLongCroner(t *testing.T) {
	mine, asked := cases(t, 10_000, 7)
	fires := 0
	for i, says := range askCroner(t, asked) {
		hold(t, mine[i], asked[i], says)
		fires += says.Fires
	}
	t.Logf("%d expressions, %d fires", len(mine), fires)
}
