package main

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

var testFunc = regexp.MustCompile(`(?m)^func (Test\w+)\(`)

// packagesOf lists the packages under a root that have tests which match, as `go test` names them.
func packagesOf(root, tests string) (pkgs []string, err error) {
	matches, err := regexp.Compile(tests)
	if err != nil {
		return nil, err
	}
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() && d.Name() == ".git" || !strings.HasSuffix(path, "_test.go") {
			return skip(d, err)
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, m := range testFunc.FindAllSubmatch(text, -1) {
			if matches.Match(m[1]) {
				folder, err := filepath.Rel(root, filepath.Dir(path))
				pkgs = append(pkgs, "./"+filepath.ToSlash(folder))
				return err
			}
		}
		return nil
	})
	slices.Sort(pkgs)
	if pkgs = slices.Compact(pkgs); err == nil && len(pkgs) == 0 {
		err = fmt.Errorf("no package has a test that matches %s", tests)
	}
	return pkgs, err
}

func skip(d fs.DirEntry, err error) error {
	if err == nil && d.IsDir() && d.Name() == ".git" {
		return filepath.SkipDir
	}
	return err
}
