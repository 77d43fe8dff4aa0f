// Package bubble runs tests with simulated time.
package bubble

import (
	"runtime"
	"testing"
	"testing/synctest"
	"time"
)

// Run runs a test in which time passes only while all goroutines wait. A wait in vain would let that time, and periodic work in it,
// continue for ever: after two hours of it the test binary ends with the test's name and the stacks of all goroutines.
func Run(t *testing.T, test func(t *testing.T)) {
	t.Helper()
	runtime.GOMAXPROCS(1) // with more the race detector of Go 1.26 itself may crash in bubbles (golang/go#78156); it finds as much with one
	synctest.Test(t, func(t *testing.T) {
		over := time.AfterFunc(2*time.Hour, func() { panic(t.Name() + " waits in vain") })
		t.Cleanup(func() { over.Stop() }) // after all other cleanups
		test(t)
	})
}
