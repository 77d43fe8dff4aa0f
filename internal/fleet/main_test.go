package fleet

import (
	"os"
	"runtime"
	"testing"
)

// TestMain keeps the shows on one processor: on several the race detector of Go 1.26 itself may end in the bubbles of
// testing/synctest, with SIGSEGV or a failed check of its own (golang/go#78156). What it finds does not depend on it.
func TestMain(m *testing.M) {
	runtime.GOMAXPROCS(1)
	os.Exit(m.Run())
}
