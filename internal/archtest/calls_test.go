package archtest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What a script is given and what it answers is said in one place of each room: scripts.go and its siblings. The batcher builds
// its arguments itself, since a beat must allocate nothing, and the store runs what it is given.
func TestScriptsAreCalledInOnePlace(t *testing.T) {
	files, err := filepath.Glob("../../tracker/*/*.go")
	if err != nil {
		t.Fatal(err)
	}
	called := 0
	for _, path := range files {
		room, name := filepath.Base(filepath.Dir(path)), filepath.Base(path)
		if strings.HasSuffix(name, "_test.go") || room == "trackertest" || room == "store" {
			continue
		}
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, what := range []string{"store.NewCall(", ".Get(\""} {
			n := strings.Count(string(text), what)
			called += n
			if n > 0 && !strings.HasPrefix(name, "scripts") {
				t.Errorf("%s/%s has %s, which stands in the room's scripts.go", room, name, what)
			}
		}
	}
	if called < 50 {
		t.Fatalf("only %d scripts are called", called)
	}
}
