//go:build long

package mutants

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

var (
	only  = flag.String("mutants.only", "", "regular expression: plant only those whose bug or file matches")
	limit = flag.Duration("mutants.limit", 4*time.Minute, "for the tests of one mutant; tests that hang have noticed too")
)

// Every bug of the table is noticed by one of the tests that are there for it.
func TestLongMutants(t *testing.T) {
	t.Chdir(filepath.Join("..", ".."))
	if err := run(t.TempDir(), regexp.MustCompile(*only), *limit); err != nil {
		t.Fatal(err)
	}
}

// lab is a temporary directory in which mutants are tested, so that the repository is not changed.
type lab struct {
	dir   string
	limit time.Duration
	all   []folder          // packages that have tests
	right map[string]string // test binaries without a bug, by package
}

func run(dir string, only *regexp.Regexp, limit time.Duration) error {
	all, err := foldersOf(".")
	if err != nil {
		return err
	}
	l := &lab{dir: dir, limit: limit, all: all, right: map[string]string{}}
	var chosen []mutant
	for _, m := range mutants {
		if only.MatchString(m.bug) || only.MatchString(m.file) {
			chosen = append(chosen, m)
		}
	}
	if err := l.tryRight(chosen); err != nil {
		return err
	}
	began := time.Now()
	fmt.Println("| planted bug | file | caught by | s |\n| --- | --- | --- | --- |")
	var survivors, broken []string
	for _, m := range chosen {
		one := time.Now()
		caught, err := l.try(m)
		switch {
		case err != nil:
			broken = append(broken, fmt.Sprintf("%s (%s): %v", m.bug, m.file, err))
			caught = "**could not be planted**"
		case caught == "":
			survivors = append(survivors, fmt.Sprintf("%s (%s)", m.bug, m.file))
			caught = "**nothing**"
		}
		fmt.Printf("| %s | `%s` | %s | %.1f |\n", m.bug, m.file, caught, time.Since(one).Seconds())
	}
	fmt.Printf("\n%d planted, %d caught, %d survived, %d could not be planted, in %v\n", len(chosen),
		len(chosen)-len(survivors)-len(broken), len(survivors), len(broken), time.Since(began).Round(time.Second))
	if len(broken) > 0 {
		return fmt.Errorf("correct internal/mutants/table_test.go, where the code has changed:\n  %s", strings.Join(broken, "\n  "))
	}
	if len(survivors) > 0 {
		return fmt.Errorf("no test notices these; write one:\n  %s", strings.Join(survivors, "\n  "))
	}
	return nil
}

// tryRight runs all the tests without a bug: a test that fails anyway would prove nothing.
func (l *lab) tryRight(chosen []mutant) error {
	tests := map[string][]string{}
	for _, m := range chosen {
		in, err := packagesOf(l.all, m.tests)
		if err != nil {
			return err
		}
		for _, pkg := range in {
			tests[pkg] = append(tests[pkg], m.tests)
		}
	}
	for pkg, of := range tests {
		binary, err := l.build(pkg, "")
		if err != nil {
			return err
		}
		l.right[pkg] = binary
		failed, output, err := l.test(pkg, binary, strings.Join(of, "|"), 2*l.limit)
		if err != nil || failed != "" {
			return fmt.Errorf("the tests of %s fail without any bug, at %s: %w\n%s", pkg, failed, err, output)
		}
	}
	return nil
}

// try plants one bug and returns the first test that failed; "": none did.
func (l *lab) try(m mutant) (caught string, err error) {
	text, err := os.ReadFile(m.file)
	if err != nil {
		return "", err
	}
	if n := bytes.Count(text, []byte(m.find)); n != 1 {
		return "", fmt.Errorf("the text %q occurs there %d times, not once", m.find, n)
	}
	wrong := bytes.Replace(text, []byte(m.find), []byte(m.replace), 1)
	if folder, ok := strings.CutPrefix(m.file, "lua/"); ok {
		return l.tryScript(m, folder, wrong)
	}
	return l.tryGo(m, wrong)
}

// tryScript needs no build: the tests read their scripts from a directory.
func (l *lab) tryScript(m mutant, file string, wrong []byte) (string, error) {
	dir := filepath.Join(l.dir, "lua")
	if err := os.RemoveAll(dir); err != nil {
		return "", err
	}
	if err := copyScripts(dir); err != nil {
		return "", err
	}
	if err := os.WriteFile(filepath.Join(dir, file), wrong, 0o600); err != nil {
		return "", err
	}
	return l.first(m, func(pkg string) (string, error) {
		caught, _, err := l.test(pkg, l.right[pkg], m.tests, l.limit, "LUBDUB_TEST_SCRIPTS="+dir)
		return caught, err
	})
}

// first returns the first failure in any of the packages that have the tests of a mutant.
func (l *lab) first(m mutant, try func(pkg string) (string, error)) (caught string, err error) {
	in, err := packagesOf(l.all, m.tests)
	for _, pkg := range in {
		if caught, err = try(pkg); caught != "" || err != nil {
			return caught, err
		}
	}
	return "", err
}

func copyScripts(to string) error {
	return fs.WalkDir(os.DirFS("lua"), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".lua" {
			return err
		}
		text, err := os.ReadFile(filepath.Join("lua", path))
		if err != nil {
			return err
		}
		if err := os.MkdirAll(filepath.Dir(filepath.Join(to, path)), 0o700); err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(to, path), text, 0o600)
	})
}

// tryGo builds the tests with the wrong file in an overlay.
func (l *lab) tryGo(m mutant, wrong []byte) (string, error) {
	here, err := filepath.Abs(m.file)
	if err != nil {
		return "", err
	}
	file, overlay := filepath.Join(l.dir, "wrong.go"), filepath.Join(l.dir, "overlay.json")
	if err := os.WriteFile(file, wrong, 0o600); err != nil {
		return "", err
	}
	text, err := json.Marshal(map[string]any{"Replace": map[string]string{here: file}})
	if err != nil {
		return "", err
	}
	if err := os.WriteFile(overlay, text, 0o600); err != nil {
		return "", err
	}
	return l.first(m, func(pkg string) (string, error) {
		binary, err := l.build(pkg, overlay)
		if err != nil {
			return "", err
		}
		caught, _, err := l.test(pkg, binary, m.tests, l.limit)
		return caught, err
	})
}

// build compiles the tests of a package; overlay is a file as for `go build -overlay`, "": none.
func (l *lab) build(pkg, overlay string) (binary string, err error) {
	kind := "right"
	args := []string{"test", "-c"}
	if overlay != "" {
		kind = "wrong"
		args = append(args, "-overlay", overlay)
	}
	binary = filepath.Join(l.dir, kind+strings.ReplaceAll(pkg, "/", "-")+".test")
	if output, err := exec.Command("go", append(args, "-o", binary, pkg)...).CombinedOutput(); err != nil {
		return "", fmt.Errorf("building the tests of %s: %w\n%s", pkg, err, output)
	}
	return binary, nil
}

var failure = regexp.MustCompile(`(?m)^--- FAIL: (\S+)|^panic: test timed out`)

// test runs tests and returns the first that failed. Model-based tests run a fifth of their usual number of lives: most bugs appear
// within a few.
func (l *lab) test(pkg, binary, tests string, limit time.Duration, environ ...string) (failed string, output []byte, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), limit+time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, binary, "-test.run", tests, "-test.timeout", limit.String(), "-test.failfast")
	cmd.Dir = pkg
	cmd.Env = append(os.Environ(), environ...)
	output, err = cmd.CombinedOutput()
	var exit *exec.ExitError
	switch {
	case err == nil:
		if bytes.Contains(output, []byte("no tests to run")) {
			return "", output, fmt.Errorf("no test of %s matches %s", pkg, tests)
		}
		return "", output, nil
	case !errors.As(err, &exit):
		return "", output, err
	}
	found := failure.FindSubmatch(output)
	switch {
	case found == nil:
		return "", output, fmt.Errorf("the tests of %s ended without a verdict: %w\n%s", pkg, err, output)
	case len(found[1]) == 0:
		return "the time limit", output, nil
	}
	return "`" + string(found[1]) + "`", output, nil
}
