package reconcile_test

import (
	"testing"

	"github.com/lubdub-io/lubdub/tracker/trackertest"
)

func TestMain(m *testing.M) { trackertest.Main(m) }
