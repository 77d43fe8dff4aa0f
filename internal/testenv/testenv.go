// Package testenv tells tests how much is asked of them, and builds the programs that they run.
package testenv

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
)

const all = "LUBDUB_TEST_ALL"

// All reports whether tests run in full, as by `make test-all`: with all seeds, scales and outages.
func All() bool { return os.Getenv(all) != "" }

// OnlyAll skips a test that proves something only under load, over time or with many seeds, unless all of them were asked for.
func OnlyAll(t testing.TB) {
	t.Helper()
	if !All() {
		t.Skip("`make test-all` runs it, or " + all + "=1")
	}
}

// Of returns how many of something a test plays: few, or as many as in `make test-all`.
func Of(few, many int) int {
	if All() {
		return many
	}
	return few
}

// Program returns the path of a command of this repository, such as lubdub, as the sources are now. With -short it skips the test:
// building takes long, and the go command, which keeps results until something changes that a test has read, does not see it.
func Program(t testing.TB, name string) string {
	t.Helper()
	if testing.Short() {
		t.Skip("-short: no processes")
	}
	building.Lock()
	defer building.Unlock()
	if path := built[name]; path != "" {
		return path
	}
	path, err := build(name)
	if err != nil {
		t.Fatal(err)
	}
	built[name] = path
	return path
}

var (
	building sync.Mutex
	built    = map[string]string{}
)

// build leaves the program in bin/test, where the go command finds it again and links it no second time. Test binaries of several
// packages run at once, so only one of them builds.
func build(name string) (path string, err error) {
	root, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(root, "go.work")); err == nil {
			break
		}
		if filepath.Dir(root) == root {
			return "", errors.New("there is no go.work above the test's folder")
		}
		root = filepath.Dir(root)
	}
	folder := filepath.Join(root, "bin", "test")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return "", err
	}
	lock, err := os.Create(filepath.Join(folder, "lock"))
	if err != nil {
		return "", err
	}
	defer lock.Close() // which lets go of the lock
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return "", fmt.Errorf("locking %s: %w", lock.Name(), err)
	}
	path = filepath.Join(folder, name)
	// Without a table of symbols it is linked in half the time.
	cmd := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w -X main.version=1.2.3", "-o", path, "./cmd/"+name)
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%v: %w\n%s", cmd.Args, err, out)
	}
	return path, nil
}
