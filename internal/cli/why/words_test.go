package why

import (
	"bytes"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the sentences of the dashboard")

// The dashboard has the sentences of this package.
func TestTheDashboardHasTheseSentences(t *testing.T) {
	const file = "../../../ui/src/words.gen.ts"
	var b bytes.Buffer
	b.WriteString("// The sentences of lubdub why, written by: make generate\n")
	for _, table := range []struct {
		name string
		of   map[string]string
	}{{"sentences", sentences}, {"unschedulable", unschedulable}} {
		fmt.Fprintf(&b, "export const %s = {\n", table.name)
		for _, key := range slices.Sorted(maps.Keys(table.of)) {
			quote := "'"
			if strings.Contains(table.of[key], quote) {
				quote = `"`
			}
			fmt.Fprintf(&b, "  %s: %s%s%s,\n", key, quote, table.of[key], quote)
		}
		b.WriteString("};\n")
	}
	if *update {
		if err := os.WriteFile(file, b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if is, err := os.ReadFile(file); err != nil || !bytes.Equal(is, b.Bytes()) {
		t.Errorf("%s differs from the sentences of lubdub why (%v); write it with: make generate", file, err)
	}
}
