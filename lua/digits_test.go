package lua_test

import (
	"fmt"
	"os"
	"runtime"
	"testing"

	"github.com/lubdub-io/lubdub/internal/redistest"
)

// Numbers are printed as integers, and the Lua of miniredis does not allocate an array as long as the number.
func TestDigits(t *testing.T) {
	source, err := os.ReadFile("lib/digits.lua")
	if err != nil {
		t.Fatal(err)
	}
	script := "local now = 1\n" + string(source) + "return {digits(6e7), digits(6e7), digits(0), digits(-5), digits(9007199254740991), NOW}"
	redistest.Each(t, func(t *testing.T, s *redistest.Store) {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		got, err := s.Client.Eval(t.Context(), script, nil).Result()
		runtime.ReadMemStats(&after)
		if want := "[60000000 60000000 0 -5 9007199254740991 1]"; err != nil || fmt.Sprint(got) != want {
			t.Errorf("%v, %v", got, err)
		}
		if bytes := after.TotalAlloc - before.TotalAlloc; bytes > 100<<20 {
			t.Errorf("it allocates %d MiB", bytes>>20)
		}
	})
}
