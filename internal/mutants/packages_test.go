package mutants

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

var testFunc = regexp.MustCompile(`(?m)^func (Test\w+)\(`)

// folder is a package's directory, with the names of its tests.
type folder struct {
	path  string
	tests []string
}

// foldersOf lists the packages under a root that have tests.
func foldersOf(root string) (all []folder, err error) {
	tests := map[string][]string{}
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == ".git" || d.Name() == "node_modules"):
			return filepath.SkipDir
		case !strings.HasSuffix(path, "_test.go"):
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		in, err := filepath.Rel(root, filepath.Dir(path))
		for _, m := range testFunc.FindAllSubmatch(text, -1) {
			tests[in] = append(tests[in], string(m[1]))
		}
		return err
	})
	for _, in := range slices.Sorted(maps.Keys(tests)) {
		all = append(all, folder{"./" + filepath.ToSlash(in), tests[in]})
	}
	return all, err
}

// packagesOf lists the packages with matching tests, as `go test` names them.
func packagesOf(all []folder, tests string) (pkgs []string, err error) {
	matches, err := regexp.Compile(tests)
	if err != nil {
		return nil, err
	}
	for _, f := range all {
		if slices.ContainsFunc(f.tests, matches.MatchString) {
			pkgs = append(pkgs, f.path)
		}
	}
	if len(pkgs) == 0 {
		return nil, fmt.Errorf("no package has a test that matches %s", tests)
	}
	return pkgs, nil
}
