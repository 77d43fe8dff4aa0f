package api

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/lubdub-io/lubdub/api/httpapi"
	"github.com/lubdub-io/lubdub/api/token"
)

// The dashboard disables what a role forbids. It knows that from a file that is made of the table of routes.
func TestTheDashboardKnowsWhatRolesMayDo(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	b.WriteString("// Who may do what, written by: make generate\nexport const rolesOf: Record<string, readonly string[]> = {\n")
	ordered := slices.SortedFunc(slices.Values(routes), func(a, b *httpapi.Route) int { return strings.Compare(a.Op, b.Op) })
	for _, r := range ordered {
		if r.Needs != 0 {
			fmt.Fprintf(&b, "  %s: ['%s'],\n", r.Op, strings.ReplaceAll(httpapi.RolesFor(r.Needs), " or ", "', '"))
		}
	}
	b.WriteString("};\n")
	current(t, "../ui/src/roles.gen.ts", b.Bytes())
}

// docs/roles.md shows every operation and the tokens that open it.
func TestDocumentedRoles(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	b.WriteString("<!-- Generated from the table of routes by: make generate -->\n# Roles and operations\n\nFor those who hand out tokens. " +
		"Control tokens have one role; `lubdub token --role` makes them.\n\n| operation | |")
	for _, r := range token.Roles {
		fmt.Fprintf(&b, " %s |", r)
	}
	b.WriteString(" task token | worker token |\n| --- | --- |" + strings.Repeat(" --- |", len(token.Roles)+2) + "\n")
	mark := map[bool]string{true: " yes |", false: " |"}
	for _, r := range routes {
		if r.Access == httpapi.ForAll {
			continue
		}
		fmt.Fprintf(&b, "| `%s` | `%s %s` |", r.Op, r.Method, r.Pattern)
		for _, role := range token.Roles {
			b.WriteString(mark[httpapi.Permitted[role]&r.Needs != 0])
		}
		for _, callback := range []string{"t", "w"} {
			b.WriteString(mark[openedBy[r.Op] == "*" || strings.Contains(openedBy[r.Op], callback)])
		}
		b.WriteByte('\n')
	}
	current(t, "../docs/roles.md", b.Bytes())
}

// current fails if a generated file is not what it would be now, or with -update writes it.
func current(t *testing.T, file string, want []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, want, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if is, err := os.ReadFile(file); err != nil || !bytes.Equal(is, want) {
		t.Fatalf("%s does not match the route table (%v); generate it with: make generate", file, err)
	}
}
