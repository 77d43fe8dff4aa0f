// Package testenv tells tests how extensively to test, and builds the programs that they run.
package testenv

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
)

const all = "LUBDUB_TEST_ALL"

// All reports whether tests run in full, as in `make test-all`: with all seeds, scales and outages.
func All() bool { return os.Getenv(all) != "" }

// OnlyAll skips a test that needs load, much time or many seeds, unless tests run in full.
func OnlyAll(t testing.TB) {
	t.Helper()
	LongerInAll(t)
	if !All() {
		t.Skip("`make test-all` runs it, or " + all + "=1")
	}
}

// Of returns how many repetitions a test runs: few, or as many as in `make test-all`.
func Of(t testing.TB, few, many int) int {
	LongerInAll(t)
	if All() {
		return many
	}
	return few
}

// LongerInAll declares that the test does more in `make test-all` than in `make test`, so that it runs on miniredis with the race detector
// too. The test calls it, OnlyAll or Of before redistest.Each.
func LongerInAll(t testing.TB) {
	if is, asked := longer.LoadOrStore(testOf(t), true); asked && !is.(bool) {
		t.Helper()
		t.Fatal("the test must call testenv.LongerInAll, OnlyAll or Of before redistest.Each")
	}
}

// IsLongerInAll reports whether the test, or the test that it is part of, is declared so.
func IsLongerInAll(t testing.TB) bool {
	is, _ := longer.LoadOrStore(testOf(t), false)
	return is.(bool)
}

var longer sync.Map // by test: whether it does more in `make test-all`

// MeasuresScripts declares that a test measures how long scripts take in Redis. The race detector would only delay it, so `make test-all`
// runs these tests without it, by their names, which begin with TestScripts.
func MeasuresScripts(t testing.TB) {
	t.Helper()
	if !strings.HasPrefix(t.Name(), "TestScripts") {
		t.Fatal("the test measures scripts, so its name must begin with TestScripts")
	}
	if Race {
		t.Skip("it measures Redis: `make test-all` runs it without the race detector")
	}
}

func testOf(t testing.TB) string {
	name, _, _ := strings.Cut(t.Name(), "/")
	return name
}

// Program builds a command of this repository, such as lubdub, from the current sources, and returns its path. With -short it skips the
// test: building takes long, and the go command's cache of test results does not see the sources of the program.
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

// build leaves the program in bin/test, where the go command finds it and does not link it again. Test binaries of several packages run
// concurrently, so only one of them builds.
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
	defer lock.Close() // which releases the lock
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return "", fmt.Errorf("locking %s: %w", lock.Name(), err)
	}
	path = filepath.Join(folder, name)
	// Without a symbol table linking takes half the time.
	cmd := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w -X main.version=1.2.3", "-o", path, "./cmd/"+name)
	cmd.Dir, cmd.Env = root, append(os.Environ(), "CGO_ENABLED=0") // as `make build` does, so that the packages are compiled already
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%v: %w\n%s", cmd.Args, err, out)
	}
	return path, nil
}
