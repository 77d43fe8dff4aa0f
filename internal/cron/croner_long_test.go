//go:build long

package cron_test

import (
	"flag"
	"testing"
)

var expressions = flag.Int("croner.expressions", 10_000, "random expressions that are held against croner")

// Random expressions fire when croner says, over five years each.
func TestLongCroner(t *testing.T) {
	mine, asked := cases(t, *expressions, 7)
	fires := 0
	for i, says := range askCroner(t, asked) {
		hold(t, mine[i], asked[i], says)
		fires += says.Fires
	}
	t.Logf("%d expressions, %d fires", len(mine), fires)
}
