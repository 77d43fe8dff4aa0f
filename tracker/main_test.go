package tracker_test

import (
	"flag"
	"testing"

	"github.com/lubdub-io/lubdub/internal/redistest"
)

// TestMain keeps the share of the model-based test that every run pays small. For more of it:
// go test ./tracker -run TestModel -rapid.checks=1000
func TestMain(m *testing.M) {
	_ = flag.Set("rapid.checks", "25")
	redistest.Main(m)
}
