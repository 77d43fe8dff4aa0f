package lua_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/lubdub-io/lubdub/lua"
)

// filesWith returns the files under a folder that match, with the number of matches.
func filesWith(t *testing.T, folder, ext, text string) map[string]int {
	t.Helper()
	found := map[string]int{}
	err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ext || strings.HasSuffix(path, "_test.go") {
			return err
		}
		source, err := os.ReadFile(path)
		if n := strings.Count(string(source), text); n > 0 {
			rel, _ := filepath.Rel(folder, path)
			found[filepath.ToSlash(rel)] = n
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// The formats that every reader of a stream or a channel depends on are written in one place.
func TestEventsAndWakesAreWrittenInOnePlace(t *testing.T) {
	t.Parallel()
	for text, file := range map[string]string{"'XADD'": "lib/event.lua", "'PUBLISH'": "lib/wake.lua", "lubdub:wake": "lib/wake.lua"} {
		if found := filesWith(t, ".", ".lua", text); len(found) != 1 || found[file] != 1 {
			t.Errorf("%s occurs in %v, not once and in %s", text, found, file)
		}
	}
	if found := filesWith(t, "..", ".go", "lubdub:wake"); len(found) != 1 || found["lua/lua.go"] != 1 {
		t.Errorf("Go names the channel in %v, not once and in lua/lua.go", found)
	}
}

// The settings of a deployment reach every script that has them, and nothing else changes.
func TestEachDeploymentHasItsOwnScripts(t *testing.T) {
	t.Parallel()
	plain, same := lua.Load(), lua.Load().For(lua.Deployment{})
	own := lua.Load().For(lua.Deployment{Database: 3, EventsPerShard: 500})
	eventsMost := regexp.MustCompile(`EVENTS_MOST = '(\d+)'`)
	wakes, trims := 0, 0
	for _, name := range plain.Names() {
		if plain.Get(name).SHA != same.Get(name).SHA {
			t.Errorf("%s changed without a setting", name)
		}
		source := own.Get(name).Source
		if strings.Contains(source, "lubdub:wake'") {
			t.Errorf("%s wakes those of another database", name)
		}
		if m := eventsMost.FindStringSubmatch(source); m != nil {
			trims++
			if m[1] != "2000" {
				t.Errorf("%s keeps %s events", name, m[1])
			}
		} else if strings.Contains(source, "'XADD'") {
			t.Errorf("%s trims by something else than the setting", name)
		}
		if strings.Contains(source, "'lubdub:wake:3'") {
			wakes++
		}
		back := strings.NewReplacer("lubdub:wake:3", "lubdub:wake", "EVENTS_MOST = '2000'", "EVENTS_MOST = '40000'").Replace(source)
		if back != plain.Get(name).Source {
			t.Errorf("%s differs in something else", name)
		}
	}
	if wakes == 0 || trims == 0 {
		t.Errorf("%d scripts wake claims, %d trim events", wakes, trims)
	}
}

// What one script packs another unpacks, so both are next to each other, in the fragment of the entry.
func TestEntriesArePackedInFragments(t *testing.T) {
	t.Parallel()
	own := map[string]string{"workers/worker_candidates.lua": "its reply, which Go parses"}
	for file := range filesWith(t, ".", ".lua", `\t`) {
		if !strings.HasPrefix(file, "lib/") && own[file] == "" {
			t.Errorf("%s packs or unpacks an entry; both belong next to each other, into a fragment in lib", file)
		}
	}
}
