package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/lubdub-io/lubdub/internal/config"
)

// removedInput is how removed settings are given in one of the three ways.
type removedInput struct {
	environ, args []string
	source        string // of each, as a warning names it; %NAME and %name are replaced by the setting
}

// removedSettings lists the settings of the table in the reference, and how all or one of them are given in each way.
func removedSettings(t *testing.T) (names []string, ways func(names ...string) map[string]removedInput) {
	t.Helper()
	var reference strings.Builder
	if err := config.WriteReference(&reference); err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(reference.String(), "## Removed settings")
	for _, row := range regexp.MustCompile("(?m)^\\| `([a-z-]+)` \\|").FindAllStringSubmatch(table, -1) {
		names = append(names, row[1])
	}
	if len(names) < 15 {
		t.Fatalf("the reference lists %d removed settings: %v", len(names), names)
	}
	dir := t.TempDir()
	return names, func(names ...string) map[string]removedInput {
		var environ, args, lines []string
		for i, name := range names {
			environ = append(environ, "LUBDUB_"+strings.ToUpper(strings.ReplaceAll(name, "-", "_"))+"=5")
			if args = append(args, "--"+name+"=5"); i%2 > 0 {
				args = append(args[:len(args)-1], "--"+name, "5")
			}
			lines = append(lines, name+": 5\n")
		}
		file := filepath.Join(dir, "lubdub.yaml")
		if err := os.WriteFile(file, []byte(strings.Join(lines, "")), 0o600); err != nil {
			t.Fatal(err)
		}
		return map[string]removedInput{
			"variable": {environ: environ, source: "environment LUBDUB_%NAME"},
			"flag":     {args: args, source: "flag --%name"},
			"file":     {args: []string{"--config", file}, source: "file " + file},
		}
	}
}

func (g *removedInput) of(name string) string {
	return strings.NewReplacer("%NAME", strings.ToUpper(strings.ReplaceAll(name, "-", "_")), "%name", name).Replace(g.source)
}

// Each removed setting is accepted in each way, and `config check` warns of it.
func TestRemovedSettingsAreAccepted(t *testing.T) {
	names, ways := removedSettings(t)
	for _, name := range names {
		for way, g := range ways(name) {
			code, stdout, stderr := command(append(g.environ, withKey...), append([]string{"config", "check"}, g.args...)...)
			if code != exitOK || !strings.Contains(stdout, "good") || strings.Count(stderr, "\n") != 1 ||
				!strings.HasPrefix(stderr, "lubdub: warning: "+name+" ("+g.of(name)) {
				t.Errorf("%s as a %s: %d %s%s", name, way, code, stdout, stderr)
			}
		}
	}
	if code, _, stderr := command(nil, "version", "--max-schedules", "5"); code != exitMistake || !strings.Contains(stderr, "unknown flag") {
		t.Errorf("a command without settings took the flag of one: %d %s", code, stderr)
	}
}

// A server starts with all of them, in each way, and logs one warning for each.
func TestAServerStartsWithRemovedSettings(t *testing.T) {
	t.Parallel()
	names, ways := removedSettings(t)
	for way, g := range ways(names...) {
		t.Run(way, func(t *testing.T) {
			r := launch(t, append(g.environ, withKey...), append(append([]string{"serve", "--redis", "embedded"}, anyPort...), g.args...)...)
			r.urls()
			r.signal(syscall.SIGTERM)
			if code := r.wait(); code != exitOK {
				t.Fatalf("%d: %s", code, r.errs)
			}
			for _, name := range names {
				var about []string
				for line := range strings.Lines(r.errs.String()) {
					if strings.Contains(line, " setting="+name+" ") {
						about = append(about, line)
					}
				}
				if len(about) != 1 || !strings.Contains(about[0], "level=WARN") || !strings.Contains(about[0], g.of(name)) {
					t.Errorf("%s: %q", name, about)
				}
			}
		})
	}
}
