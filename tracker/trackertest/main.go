package trackertest

import (
	"flag"
	"testing"

	"github.com/lubdub-io/lubdub/internal/redistest"
	"github.com/lubdub-io/lubdub/internal/testenv"
)

// Main is the TestMain of every package of tracker. It limits the model-based tests in every run to a few checks. For more:
// go test ./tracker -run TestModel -rapid.checks=1000
func Main(m *testing.M) {
	if flag.Lookup("rapid.checks") != nil {
		checks := "8"
		if testenv.All() {
			checks = "25" // the tests call testenv.LongerInAll
		}
		_ = flag.Set("rapid.checks", checks)
	}
	redistest.Main(m)
}
