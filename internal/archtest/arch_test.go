// Package archtest holds the arrows between the packages: what each may import.
package archtest

import (
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

const module = "github.com/lubdub-io/lubdub"

type pkg struct {
	ImportPath string
	Imports    []string
	Deps       []string
	Standard   bool
	Module     *struct{ Path string }
}

func list(t *testing.T, args ...string) []pkg {
	t.Helper()
	cmd := exec.Command("go", append([]string{"list", "-json=ImportPath,Imports,Deps,Standard,Module"}, args...)...)
	cmd.Dir = "../.."
	out, err := cmd.Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			t.Fatalf("go list: %s", exit.Stderr)
		}
		t.Fatal(err)
	}
	var pkgs []pkg
	for dec := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p pkg
		if err := dec.Decode(&p); err == io.EOF {
			return pkgs
		} else if err != nil {
			t.Fatal(err)
		}
		pkgs = append(pkgs, p)
	}
}

// rule lists what a folder's packages may not depend on, directly or through others.
type rule struct {
	folder string
	never  []string
	why    string
}

var rules = []rule{
	{"lua", []string{module + "/"}, "lua is at the bottom: texts only"},
	{"tracker", []string{module + "/api", module + "/cmd", module + "/sdk", module + "/bench", "github.com/valyala/fasthttp",
		"github.com/golang-jwt"},
		"the domain knows no HTTP and no tokens"},
	{"sdk/go", []string{module + "/", "github.com/", "golang.org/", "go.uber.org/", "google.golang.org/"},
		"users of the SDK link nothing else"},
	{"sdk/go/v1", []string{module + "/"}, "wire types know neither client nor worker"},
	{"api", []string{module + "/sdk/go/client", module + "/sdk/go/worker"}, "the server knows the wire types and no client"},
	{"api/token", []string{module + "/", "github.com/redis", "github.com/valyala"}, "tokens know neither HTTP nor the domain"},
	{"api/internal/jsonscan", []string{module + "/", "github.com/"}, "the scanner knows JSON and nothing of ours"},
	{"api/internal/conn", []string{module + "/api/token", module + "/tracker", module + "/sdk", "github.com/valyala", "github.com/redis"},
		"connections know neither routes nor tokens"},
	{"api/internal/evloop",
		[]string{module + "/api/v1", module + "/api/token", module + "/tracker", "github.com/valyala"},
		"event loops know neither HTTP nor tokens"},
	{"internal/cli", []string{module + "/tracker", module + "/api", module + "/lua", module + "/internal/judge", "github.com/redis",
		"github.com/valyala"}, "operators' commands go through the public API, and work out nothing by themselves"},
	{"internal/cli/top/tui", []string{module + "/sdk/go/client", module + "/internal/cli/session"},
		"the live view knows its source only"},
	{"internal/judge", []string{module + "/tracker", module + "/api", module + "/internal", module + "/sdk/go/client", "github.com/redis"},
		"findings use the API's responses, and nothing else"},
	{"cmd/lubdub", []string{module + "/bench"}, "the benchmark is a separate program"},
	{"bench", []string{module + "/tracker", module + "/lua", module + "/cmd"}, "bench measures from outside"},
	{"bench/report", []string{module + "/"}, "a report is plain data, whatever measured it"},
	{"bench/load", []string{module + "/"}, "the generator knows neither what it sends nor to whom"},
	{"bench/proc", []string{module + "/bench/load", module + "/bench/requests", module + "/bench/testbed", module + "/bench/scenarios"},
		"processes know no load"},
	{"bench/requests", []string{module + "/bench/proc", module + "/bench/report", module + "/bench/testbed", module + "/bench/scenarios"},
		"requests know neither servers nor measurements"},
	{"bench/testbed", []string{module + "/bench/scenarios"}, "the base of scenarios knows none of them"},
}

// direct rules look at what a package imports itself.
var direct = []rule{
	{"api", []string{module + "/lua", module + "/cmd", "github.com/redis"}, "the front end knows no Redis; it calls tracker"},
}

func within(path, folder string) bool {
	return path == module+"/"+folder || strings.HasPrefix(path, module+"/"+folder+"/")
}

func violations(p pkg) (wrong []string) {
	check := func(r rule, imports []string) {
		if !within(p.ImportPath, r.folder) {
			return
		}
		for _, dep := range imports {
			for _, never := range r.never {
				if (dep == strings.TrimSuffix(never, "/") || strings.HasPrefix(dep, never)) && !within(dep, r.folder) {
					wrong = append(wrong, p.ImportPath+" depends on "+dep+": "+r.why)
				}
			}
		}
	}
	for _, r := range rules {
		check(r, p.Deps)
	}
	for _, r := range direct {
		check(r, p.Imports)
	}
	for _, dep := range p.Deps {
		if dep == module+"/internal/redistest" && p.ImportPath != dep && p.ImportPath != module+"/tracker/trackertest" {
			wrong = append(wrong, p.ImportPath+" depends on "+dep+": its clock must be out of production's reach")
		}
		if dep == module+"/tracker/trackertest" && p.ImportPath != dep {
			wrong = append(wrong, p.ImportPath+" depends on "+dep+", which is for tests")
		}
	}
	return wrong
}

func TestArrows(t *testing.T) {
	pkgs := list(t, "./...", "./sdk/go/...")
	if len(pkgs) < 5 {
		t.Fatalf("go list found only %d packages", len(pkgs))
	}
	for _, p := range pkgs {
		for _, w := range violations(p) {
			t.Error(w)
		}
	}
}

// The check must be able to fail.
func TestArrowsAreChecked(t *testing.T) {
	for _, p := range []pkg{
		{ImportPath: module + "/tracker", Deps: []string{module + "/sdk/go/v1"}},
		{ImportPath: module + "/tracker", Deps: []string{"github.com/valyala/fasthttp"}},
		{ImportPath: module + "/lua", Deps: []string{module + "/tracker"}},
		{ImportPath: module + "/api", Imports: []string{"github.com/redis/go-redis/v9"}},
		{ImportPath: module + "/sdk/go/worker", Deps: []string{"github.com/prometheus/client_golang/prometheus"}},
		{ImportPath: module + "/sdk/go/client", Deps: []string{module + "/api/token"}},
		{ImportPath: module + "/sdk/go/v1", Deps: []string{module + "/sdk/go/client"}},
		{ImportPath: module + "/api", Deps: []string{module + "/sdk/go/worker"}},
		{ImportPath: module + "/api/token", Deps: []string{module + "/tracker"}},
		{ImportPath: module + "/api/internal/conn", Deps: []string{module + "/sdk/go/v1"}},
		{ImportPath: module + "/api/internal/jsonscan", Deps: []string{module + "/api"}},
		{ImportPath: module + "/cmd/lubdub", Deps: []string{module + "/internal/redistest"}},
		{ImportPath: module + "/internal/cli", Deps: []string{module + "/tracker"}},
		{ImportPath: module + "/internal/cli", Deps: []string{module + "/internal/judge"}},
		{ImportPath: module + "/internal/cli/top/tui", Deps: []string{module + "/sdk/go/client"}},
		{ImportPath: module + "/internal/judge", Deps: []string{module + "/internal/config"}},
	} {
		if len(violations(p)) == 0 {
			t.Errorf("%+v was let through", p)
		}
	}
}

// The clock of tests: nothing but redistest may compose scripts with another one.
func TestOnlyRedistestChangesTheClock(t *testing.T) {
	seen := 0
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil || !strings.Contains(string(text), "LoadWithClock") {
			return err
		}
		seen++
		file, _ := filepath.Rel("../..", path)
		if !strings.HasSuffix(file, "_test.go") && !strings.HasPrefix(file, "internal/redistest/") && file != "lua/lua.go" {
			t.Errorf("%s calls lua.LoadWithClock", file)
		}
		return nil
	})
	if err != nil || seen < 2 {
		t.Fatalf("looked at %d files: %v", seen, err)
	}
}
