package lua

import (
	"io/fs"
	"path"
	"testing"
)

type countingFS struct {
	fs.FS
	opened map[string]int
}

func (c countingFS) Open(name string) (fs.File, error) {
	c.opened[name]++
	return c.FS.Open(name)
}

// A server composes its scripts when it starts: most include the same fragments, which are read once.
func TestEachFileIsReadOnce(t *testing.T) {
	folder := countingFS{files, map[string]int{}}
	scripts := compose(folder)
	if len(folder.opened) < len(scripts) {
		t.Errorf("%d files were opened for %d scripts", len(folder.opened), len(scripts))
	}
	for name, n := range folder.opened {
		if path.Ext(name) == ".lua" && n > 1 {
			t.Errorf("%s was read %d times", name, n)
		}
	}
}
