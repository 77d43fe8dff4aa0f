package archtest

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

var keyName = regexp.MustCompile("`([^`]+)`")

// Every key that docs/redis-keys.md describes has its bound there.
func TestEveryKeyHasABound(t *testing.T) {
	text, err := os.ReadFile("../../docs/redis-keys.md")
	if err != nil {
		t.Fatal(err)
	}
	described, bounds, found := strings.Cut(string(text), "## Bounds")
	if !found {
		t.Fatal("docs/redis-keys.md has no bounds")
	}
	bounded := keysOf(bounds)
	if len(bounded) < 30 {
		t.Fatalf("only %d keys have a bound", len(bounded))
	}
	for key := range keysOf(described) {
		if !bounded[key] {
			t.Errorf("docs/redis-keys.md documents neither the bound of %s nor what trims it", key)
		}
	}
}

// keysOf are the names in the first column of tables.
func keysOf(text string) map[string]bool {
	keys := map[string]bool{}
	for line := range strings.Lines(text) {
		if first, isRow := strings.CutPrefix(line, "| `"); isRow {
			first, _, _ = strings.Cut("`"+first, " | ")
			for _, m := range keyName.FindAllStringSubmatch(first, -1) {
				keys[m[1]] = true
			}
		}
	}
	return keys
}
