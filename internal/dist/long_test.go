//go:build long

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// Two people who build a commit, each with a separate folder and cache, get the same checksums for all files, including SBOMs.
func TestLongDist(t *testing.T) {
	var first string
	for i := range 2 {
		checkout := filepath.Join(t.TempDir(), "checkout")
		run(t, ".", nil, "git", "clone", "--quiet", "--no-local", repository(t), checkout)
		cache := t.TempDir()
		run(t, checkout, []string{"GOCACHE=" + cache}, "make", "dist")
		text, err := os.ReadFile(filepath.Join(checkout, "bin", "dist", sums))
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("the same as:\n%s", text)
		if i == 0 {
			first = string(text)
		} else if string(text) != first {
			t.Errorf("before, it was:\n%s", first)
		}
	}
}

// repository returns the folder of the checkout that the test is in.
func repository(t *testing.T) string {
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	return root
}

func run(t *testing.T, dir string, environ []string, name string, args ...string) {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), environ...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s %v: %v\n%s", name, args, err, out)
	}
}
