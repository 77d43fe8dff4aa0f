//go:build long

package main

import "testing"

func TestLongStartsBesideTrouble(t *testing.T) {
	playStarts(t, func(string, startCase) bool { return true })
}
