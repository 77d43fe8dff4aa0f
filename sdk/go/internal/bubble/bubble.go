//go:build go1.25

// Package bubble runs tests in a time of their own.
package bubble

import (
	"runtime"
	"testing"
	"testing/synctest"
	"time"
)

// Run runs a test where time passes only while everybody waits. What it waits for in vain would let that time, and the beats in it,
// go on for ever: after a day of it the test binary ends with the test's name and what every goroutine does.
func Run(t *testing.T, test func(t *testing.T)) {
	t.Helper()
	runtime.GOMAXPROCS(1) // on several the race detector of Go 1.26 itself may end in bubbles (golang/go#78156); it finds as much on one
	synctest.Test(t, func(t *testing.T) {
		over := time.AfterFunc(24*time.Hour, func() { panic(t.Name() + " waits in vain") })
		t.Cleanup(func() { over.Stop() }) // after all others
		test(t)
	})
}
