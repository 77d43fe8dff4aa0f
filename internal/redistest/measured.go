package redistest

import (
	"fmt"
	"maps"
	"testing"
)

// TooLong contains what took too long, by name, and how long.
type TooLong map[string]string

// Measured runs a test that measures times, and repeats it up to twice if something took too long: a slow code path shows each time, a
// busy machine rarely affects the same name again. What was too long in every run fails the test.
func Measured(t *testing.T, play func(t *testing.T) TooLong) {
	t.Helper()
	var always TooLong
	for n := range 3 {
		var now TooLong
		if !t.Run(fmt.Sprintf("play %d", n+1), func(t *testing.T) { now = play(t) }) {
			return
		}
		if n == 0 {
			always = now
		}
		maps.DeleteFunc(always, func(name, _ string) bool { return now[name] == "" })
		if len(always) == 0 {
			return
		}
		t.Logf("play %d: %v", n+1, always)
	}
	for name, how := range always {
		t.Errorf("%s: %s", name, how)
	}
}

// EachMeasured is Measured on every kind of store, with a new one for each run.
func EachMeasured(t *testing.T, play func(t *testing.T, s *Store) TooLong) {
	t.Helper()
	for kind, open := range map[string]func(testing.TB, ...Option) *Store{"miniredis": Miniredis, "redis": Real} {
		t.Run(kind, func(t *testing.T) { Measured(t, func(t *testing.T) TooLong { return play(t, open(t)) }) })
	}
}
