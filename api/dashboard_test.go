package api

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

// The dashboard disables what a role forbids. It knows that from a file that is made of the table of routes.
func TestTheDashboardKnowsWhatRolesMayDo(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	b.WriteString("// Who may do what, written by: make generate\nexport const rolesOf: Record<string, readonly string[]> = {\n")
	ordered := slices.SortedFunc(slices.Values(routes), func(a, b *route) int { return strings.Compare(a.op, b.op) })
	for _, r := range ordered {
		if r.needs != 0 {
			fmt.Fprintf(&b, "  %s: ['%s'],\n", r.op, strings.ReplaceAll(rolesFor(r.needs), " or ", "', '"))
		}
	}
	b.WriteString("};\n")
	const file = "../ui/src/roles.gen.ts"
	if *update {
		if err := os.WriteFile(file, b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if is, err := os.ReadFile(file); err != nil || !bytes.Equal(is, b.Bytes()) {
		t.Fatalf("%s is not what the table of routes says (%v); write it with: make generate", file, err)
	}
}
