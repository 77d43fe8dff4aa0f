// Package sdktest gives tests the runners of the SDKs, which sdk/conformance/README.md describes.
package sdktest

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Runner is a program that does with an SDK what it is told.
type Runner struct {
	// SDK is its name: go, python or typescript.
	SDK string
	// Command is the program's path.
	Command string
}

var all = []string{"go", "python", "typescript"}

// Runners returns those of SDKs, whose names stand with commas between them; all: those that are there. Each is built where it must be.
func Runners(t testing.TB, names string) (runners []Runner) {
	t.Helper()
	root := root(t)
	asked := strings.Split(names, ",")
	if names == "all" {
		asked = all
	}
	for _, name := range asked {
		r := Runner{name, filepath.Join(root, "sdk", name, "conformance", "run")}
		switch _, err := os.Stat(r.Command); {
		case name == "go":
			r.Command = filepath.Join(t.TempDir(), "gorunner")
			run(t, root, "go", "build", "-trimpath", "-o", r.Command, "./sdk/conformance/gorunner")
		case err == nil:
			if prepare := filepath.Join(filepath.Dir(r.Command), "prepare"); exists(prepare) {
				run(t, filepath.Dir(prepare), prepare)
			}
		case names == "all":
			t.Logf("the SDK %s has no runner", name)
			continue
		default:
			t.Fatalf("the SDK %s has no runner: %v", name, err)
		}
		runners = append(runners, r)
	}
	return runners
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func run(t testing.TB, dir, name string, args ...string) {
	t.Helper()
	c := exec.Command(name, args...)
	c.Dir = dir
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%s %s: %v: %s", name, strings.Join(args, " "), err, out)
	}
}

// root is the folder of this checkout.
func root(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for !exists(filepath.Join(dir, "go.work")) {
		if dir == filepath.Dir(dir) {
			t.Fatal("the tests of SDKs run in a checkout of Lubdub")
		}
		dir = filepath.Dir(dir)
	}
	return dir
}
