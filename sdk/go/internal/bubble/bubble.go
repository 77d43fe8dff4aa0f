//go:build go1.25

// Package bubble runs tests with a fake clock.
package bubble

import (
	"runtime"
	"testing"
	"testing/synctest"
	"time"
)

// Run runs a test in which time advances only while all goroutines wait. A wait for something that never happens would let that time, and
// the heartbeats in it, advance for ever: after a day of it the test binary ends with the test's name and the stacks of all goroutines.
func Run(t *testing.T, test func(t *testing.T)) {
	t.Helper()
	runtime.GOMAXPROCS(1) // with several the race detector of Go 1.26 itself may crash in bubbles (golang/go#78156); it finds as much with one
	synctest.Test(t, func(t *testing.T) {
		over := time.AfterFunc(24*time.Hour, func() { panic(t.Name() + " waits in vain") })
		t.Cleanup(func() { over.Stop() }) // after all other cleanups
		test(t)
	})
}
