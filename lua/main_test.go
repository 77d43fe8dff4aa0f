package lua_test

import (
	"testing"

	"github.com/lubdub-io/lubdub/internal/redistest"
)

func TestMain(m *testing.M) { redistest.Main(m) }
