//go:build long

package cron_test

import (
	"flag"
	"testing"
)

var expressions = flag.Int("croner.expressions", 10_000, "random expressions that are held against croner")

// Random expressions fire at croner's times, over five years each.
func TestLongCroner(t *testing.T) {
	mine, walks := cases(t, *expressions, 7)
	fires := 0
	for i, want := range runCroner(t, walks) {
		hold(t, mine[i], walks[i], want)
		fires += want.Fires
	}
	t.Logf("%d expressions, %d fires", len(mine), fires)
}
