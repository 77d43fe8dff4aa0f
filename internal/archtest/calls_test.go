package archtest

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The arguments and the reply of a script are defined in one place of each package: scripts.go and its siblings. The batcher builds its
// arguments itself, since a beat must allocate nothing, and reads its replies; the store runs what it is given.
func TestScriptsAreCalledInOnePlace(t *testing.T) {
	files, err := filepath.Glob("../../tracker/*/*.go")
	if err != nil {
		t.Fatal(err)
	}
	position := regexp.MustCompile(`\.(Int|Str|Time|List|At)\([\w+*/ -]+\)`) // of a reply
	called, read := 0, 0
	for _, path := range files {
		dir, name := filepath.Base(filepath.Dir(path)), filepath.Base(path)
		if strings.HasSuffix(name, "_test.go") || dir == "trackertest" || dir == "store" {
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
				t.Errorf("%s/%s has %s, which belongs into the package's scripts.go", dir, name, what)
			}
		}
		for _, what := range position.FindAllString(string(text), -1) {
			read++
			if !strings.HasPrefix(name, "scripts") && name != "batch.go" {
				t.Errorf("%s/%s reads %s of a reply; the package's scripts.go makes it a struct with names", dir, name, what)
			}
		}
	}
	if called < 50 || read < 100 {
		t.Fatalf("only %d scripts are called, and %d parts of replies read", called, read)
	}
}
