package api

import (
	"strings"
	"testing"
)

// A refusal of a mistyped request names what the path accepts, or where the body is wrong.
func TestMistakesAreNamed(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	for name, c := range map[string]struct{ method, path, body, want string }{
		"a parameter":   {"GET", "/v1/system?limit=1", "", `\"limit\" is not a parameter of this path, which takes only tenantId, workspaceId`},
		"no parameters": {"GET", "/livez?x=1", "", `which takes none`},
		"a cut body":    {"POST", "/v1/tasks", `{"taskId":`, `it is cut off after 10 bytes`},
		"a wrong body":  {"POST", "/v1/tasks", `{"taskId";1}`, `the error is at byte 10`},
	} {
		if a := e.do(c.method, c.path, e.control(roleAdmin), c.body); a.status != 400 || !strings.Contains(a.body, c.want) {
			t.Errorf("%s: %d %s", name, a.status, a.body)
		}
	}
}
