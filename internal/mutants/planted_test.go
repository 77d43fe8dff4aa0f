package mutants

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// Where code has changed a bug may not be there to plant any more; `make mutants` takes minutes to say so.
func TestEveryBugCanBePlanted(t *testing.T) {
	all, err := foldersOf(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range mutants {
		text, err := os.ReadFile(filepath.Join("..", "..", m.file))
		if err != nil {
			t.Fatal(err)
		}
		if n := bytes.Count(text, []byte(m.find)); n != 1 || m.find == m.replace {
			t.Errorf("%s: %q occurs in %s %d times, not once, or is replaced by itself", m.bug, m.find, m.file, n)
		}
		if _, err := packagesOf(all, m.tests); err != nil {
			t.Errorf("%s: %v", m.bug, err)
		}
	}
}
