//go:build !race

package beats_test

const raceEnabled = false
