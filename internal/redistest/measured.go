package redistest

import (
	"fmt"
	"maps"
	"testing"
)

// TooLong is what took longer than it may, and how long, by its name.
type TooLong map[string]string

// Measured plays what measures times, and again when something took too long, up to three times: what the code does comes again each
// time, and what a busy machine does seldom comes to the same name again. What was too long in every play fails the test.
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

// EachMeasured is Measured on every kind of store, with a new one for each play.
func EachMeasured(t *testing.T, play func(t *testing.T, s *Store) TooLong) {
	t.Helper()
	for kind, open := range map[string]func(testing.TB, ...Option) *Store{"miniredis": Miniredis, "redis": Real} {
		t.Run(kind, func(t *testing.T) { Measured(t, func(t *testing.T) TooLong { return play(t, open(t)) }) })
	}
}
