package lua_test

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/lubdub-io/lubdub/internal/redistest"
	"github.com/lubdub-io/lubdub/lua"
)

// lint returns the style violations of a script; fragment: it is in lib/.
func lint(text string, fragment bool) (wrong []string) {
	headings := []string{"Purpose", "Guarantees", "KEYS", "ARGV", "Reply", "Cost"}
	if fragment {
		headings = headings[:1]
	}
	header := ""
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, "-- ") {
			break
		}
		header += line
	}
	at := 0
	for _, h := range headings {
		i := strings.Index(header[at:], "-- "+h+": ")
		if i < 0 {
			wrong = append(wrong, fmt.Sprintf("the header has no line «-- %s: …» in its place (order: %s)", h, strings.Join(headings, ", ")))
			continue
		}
		at += i + 1
	}
	for i, line := range strings.Split(text, "\n") {
		for _, rule := range rules {
			if rule.pattern.MatchString(line) {
				wrong = append(wrong, fmt.Sprintf("line %d: %s: %s", i+1, rule.why, strings.TrimSpace(line)))
			}
		}
	}
	return wrong
}

var rules = []struct {
	pattern *regexp.Regexp
	why     string
}{
	{regexp.MustCompile(`\t`), "a tab; indent with two spaces"},
	{regexp.MustCompile(`^.{141,}`), "longer than 140 characters"},
	{regexp.MustCompile(`(?i)redis\.p?call\('(KEYS|SCAN|FLUSHALL|FLUSHDB)'`), "not bounded"},
	{regexp.MustCompile(`cjson\.|cmsgpack\.|struct\.|bit\.`), "stores differ in what these libraries do"},
	{regexp.MustCompile(`^\s*function `), "a global function; make it local"},
	{regexp.MustCompile(`math\.random`), "scripts draw nothing; pass it"},
}

func TestHeaders(t *testing.T) {
	files, err := filepath.Glob("*/*.lua")
	if err != nil || len(files) < len(lua.Load().Names()) {
		t.Fatalf("found %d files: %v", len(files), err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, w := range lint(string(text), filepath.Dir(file) == "lib") {
			t.Errorf("%s: %s", file, w)
		}
	}
}

// Go refers to a script by its operation alone, so no two folders may have one of the same name.
func TestScriptNamesAreUniqueOverAllFolders(t *testing.T) {
	folder := fstest.MapFS{"beats/tick.lua": {Data: []byte("return 1")}, "sweep/find.lua": {Data: []byte("return 2")}}
	if names := lua.LoadWithClockFrom(folder, "").Names(); !slices.Equal(names, []string{"find", "tick"}) {
		t.Errorf("composed %v", names)
	}
	folder["sweep/tick.lua"] = &fstest.MapFile{Data: []byte("return 3")}
	defer func() {
		if message := fmt.Sprint(recover()); !strings.Contains(message, `"tick"`) {
			t.Errorf("two scripts of one name: %s", message)
		}
	}()
	lua.LoadWithClockFrom(folder, "")
}

// A folder has scripts and nothing else; a script in another place would not be composed.
func TestEveryScriptIsInAFolder(t *testing.T) {
	composed := len(lua.Load().Names())
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if filepath.Ext(path) != ".lua" {
			return err
		}
		if strings.Count(filepath.ToSlash(path), "/") != 1 {
			t.Errorf("%s: a script belongs into the folder of its package, a fragment into lib", path)
		} else if filepath.Dir(path) != "lib" {
			composed--
		}
		return err
	})
	if err != nil || composed != 0 {
		t.Errorf("%d composed scripts are not in a package's folder: %v", composed, err)
	}
}

func TestLintFindsWhatIsWrong(t *testing.T) {
	good := "-- Purpose: p\n-- Guarantees: g\n-- KEYS: k\n-- ARGV: a\n-- Reply: r\n-- Cost: c\nreturn 1\n"
	if w := lint(good, false); len(w) > 0 {
		t.Fatalf("a good script: %v", w)
	}
	for name, bad := range map[string]string{
		"no cost":     strings.Replace(good, "-- Cost: c\n", "", 1),
		"wrong order": strings.Replace(good, "-- Purpose: p\n-- Guarantees: g\n", "-- Guarantees: g\n-- Purpose: p\n", 1),
		"scan":        good + "redis.call('SCAN', 0)\n",
		"cjson":       good + "cjson.encode({})\n",
		"global":      good + "function f() end\n",
		"tab":         good + "\treturn\n",
	} {
		if len(lint(bad, false)) == 0 {
			t.Errorf("%s was not found", name)
		}
	}
}

func TestEveryScriptLoads(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, s *redistest.Store) {
		for _, set := range []*lua.Set{lua.Load(), s.Scripts} {
			for _, name := range set.Names() {
				sc := set.Get(name)
				sha, err := s.Client.ScriptLoad(context.Background(), sc.Source).Result()
				if err != nil || sha != sc.SHA {
					t.Errorf("%s: loaded as %q, want %q: %v", name, sha, sc.SHA, err)
				}
			}
		}
	})
}

func TestOnlyTestsMayChangeTheClock(t *testing.T) {
	set := lua.LoadWithClock("redis.call('LRANGE', 'x', 0, -1)")
	for _, name := range set.Names() {
		if strings.Contains(set.Get(name).Source, "'TIME'") {
			t.Errorf("%s reads Redis's time without lua.redisClock, so no test can hold its clock", name)
		}
	}
}
