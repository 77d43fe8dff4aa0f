package beats

import (
	"os"
	"strconv"
	"strings"
	"testing"
)

func TestConstantsMatchLua(t *testing.T) {
	for file, lines := range map[string][]string{
		"lib/clock.lua": {"local MAX_STEP_MS = " + strconv.Itoa(MaxStepMs)},
	} {
		text, err := os.ReadFile("../../lua/" + file)
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range lines {
			if !strings.Contains(string(text), line) {
				t.Errorf("%s has no line %q", file, line)
			}
		}
	}
}
