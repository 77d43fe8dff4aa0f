//go:build long

package main

import "testing"

// All cells of the table: a minute or two.
func TestLongStartsDuringFailures(t *testing.T) {
	playStarts(t, func(string, startCase) bool { return true })
}
