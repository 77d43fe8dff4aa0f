// Package sdkrunner finds the runners of the SDKs in a checkout, which sdk/conformance/README.md describes, for tests and for the demo.
package sdkrunner

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Runner is a program that executes commands with an SDK.
type Runner struct {
	// SDK is its name: go, python, rust or typescript.
	SDK string
	// Command is the program's path.
	Command string
}

var all = []string{"go", "python", "rust", "typescript"}

// Find returns the runners of the named SDKs, a comma-separated list; all: those that are available. It builds runners that need a build,
// that of Go in the folder.
func Find(names, folder string) (runners []Runner, err error) {
	root, err := root()
	if err != nil {
		return nil, err
	}
	selected := strings.Split(names, ",")
	if names == "all" {
		selected = all
	}
	for _, name := range selected {
		r := Runner{name, filepath.Join(root, "sdk", name, "conformance", "run")}
		switch {
		case name == "go":
			r.Command = filepath.Join(folder, "gorunner")
			err = run(root, "go", "build", "-trimpath", "-o", r.Command, "./sdk/conformance/gorunner")
		case !exists(r.Command) && names == "all":
			continue
		case !exists(r.Command):
			err = fmt.Errorf("the SDK %s has no runner: there is no %s", name, r.Command)
		default:
			if prepare := filepath.Join(filepath.Dir(r.Command), "prepare"); exists(prepare) {
				err = run(filepath.Dir(prepare), prepare)
			}
		}
		if err != nil {
			return nil, err
		}
		runners = append(runners, r)
	}
	return runners, nil
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func run(dir, name string, args ...string) error {
	c := exec.Command(name, args...)
	c.Dir = dir
	if out, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, out)
	}
	return nil
}

// root returns the directory of this checkout.
func root() (string, error) {
	dir, err := os.Getwd()
	for ; err == nil && !exists(filepath.Join(dir, "go.work")); dir = filepath.Dir(dir) {
		if dir == filepath.Dir(dir) {
			return "", errors.New("this runs in a checkout of Lubdub, which has a go.work")
		}
	}
	return dir, err
}
