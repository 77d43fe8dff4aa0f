package logs

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"
)

// So many lines a second are allowed, and the next one after that includes how many were not.
func TestLimiter(t *testing.T) {
	t.Parallel()
	now := time.Unix(1000, 0)
	l := Limiter{Lines: 3}
	for i := range 10 {
		if suppressed, ok := l.Allow(now.Add(time.Duration(i) * time.Millisecond)); ok != (i < 3) || suppressed != 0 {
			t.Errorf("line %d: %v, %d", i, ok, suppressed)
		}
	}
	if suppressed, ok := l.Allow(now.Add(time.Second)); !ok || suppressed != 7 {
		t.Errorf("%v, %d", ok, suppressed)
	}
	if suppressed, ok := l.Allow(now.Add(time.Second)); !ok || suppressed != 0 {
		t.Errorf("%v, %d", ok, suppressed)
	}
	var one Limiter
	if _, ok := one.Allow(now); !ok {
		t.Error("not even one")
	}
	if _, ok := one.Allow(now); ok {
		t.Error("more than one")
	}
}

// Durations are numbers of milliseconds with the unit in their names, at any nesting.
func TestInMs(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	log := slog.New(slog.NewJSONHandler(&out, &slog.HandlerOptions{ReplaceAttr: InMs}))
	log.With("after", 1500*time.Millisecond).Info("x", "timeout", 20*time.Second, slog.Group("g", slog.Duration("lag", time.Second)), "n", 7)
	for _, want := range []string{`"afterMs":1500`, `"timeoutMs":20000`, `"lagMs":1000`, `"n":7`} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %s in %s", want, &out)
		}
	}
}
