package conformance

import (
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

var (
	sdks     = flag.String("sdks", "go", "SDKs to hold against the table, with commas; all: those that are there")
	only     = flag.String("case", "", "play the cases whose name contains this")
	atOnce   = flag.Int("at-once", 10, "how many cases are played at the same time")
	rounds   = flag.Int("rounds", 1, "how often each case is played")
	caseTime = 20 * time.Second
)

// gorunner builds the runner of the Go SDK.
var gorunner = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "lubdub-conformance-")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "gorunner")
	build := exec.Command("go", "build", "-trimpath", "-o", path, "./gorunner")
	build.Stderr = os.Stderr
	return path, build.Run()
})

func TestMain(m *testing.M) {
	code := m.Run()
	if path, err := gorunner(); err == nil {
		_ = os.RemoveAll(filepath.Dir(path))
	}
	os.Exit(code)
}

// others are the SDKs that are not in Go.
var others = []string{"python", "typescript"}

// find returns the SDK of a name; false: it has no runner.
func find(t *testing.T, name string) (sdk, bool) {
	t.Helper()
	if name == "go" {
		path, err := gorunner()
		if err != nil {
			t.Fatal(err)
		}
		return sdk{name, path}, true
	}
	dir, err := filepath.Abs(filepath.Join("..", name, "conformance"))
	if err != nil {
		t.Fatal(err)
	}
	command := filepath.Join(dir, "run")
	if _, err := os.Stat(command); err != nil {
		return sdk{}, false
	}
	if prepare := filepath.Join(dir, "prepare"); exists(prepare) {
		c := exec.Command(prepare)
		c.Dir = dir
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v: %s", prepare, err, out)
		}
	}
	return sdk{name, command}, true
}

func inFull(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("it builds and runs programs; run it without -short")
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// result is what came of a case that is played.
type result struct {
	*Case
	problems chan []string
}

// playAll plays cases beside each other, whatever -parallel says: they wait for most of their time.
func playAll(t *testing.T, of sdk, limit time.Duration, places int, fault func(*Case) string) (results []result) {
	t.Helper()
	cases := loadCases(t)
	free := make(chan struct{}, places)
	for _, c := range cases {
		if !strings.Contains(c.Name, *only) {
			continue
		}
		for range *rounds {
			r := result{c, make(chan []string, 1)}
			results = append(results, r)
			dir := t.TempDir()
			go func() {
				free <- struct{}{}
				defer func() { <-free }()
				r.problems <- perform(c, of, fault(c), dir, limit)
			}()
		}
	}
	if len(results) == 0 || (*only == "" && len(results) != len(cases)**rounds) {
		t.Errorf("%d of %d cases are played", len(results), len(cases))
	}
	return results
}

// Every SDK holds every case.
func TestConformance(t *testing.T) {
	inFull(t)
	t.Parallel()
	names := strings.Split(*sdks, ",")
	if *sdks == "all" {
		names = append([]string{"go"}, others...)
	}
	for _, name := range names {
		of, ok := find(t, name)
		if !ok {
			if *sdks != "all" {
				t.Errorf("the SDK %s has no runner", name)
			}
			t.Logf("the SDK %s has no runner", name)
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, r := range playAll(t, of, caseTime, *atOnce, func(*Case) string { return "" }) {
				t.Run(r.Name, func(t *testing.T) {
					if problems := <-r.problems; len(problems) > 0 {
						t.Errorf("%s\n%s", r.Says, strings.Join(problems, "\n"))
					}
				})
			}
		})
	}
}

// Each case fails with a runner that has the fault which it is there to find.
func TestEveryCaseIsSeenToFail(t *testing.T) {
	inFull(t)
	t.Parallel()
	of, _ := find(t, "go")
	for _, r := range playAll(t, of, 4*time.Second, 2**atOnce, func(c *Case) string { return c.Break }) {
		t.Run(r.Name, func(t *testing.T) {
			problems := <-r.problems
			if len(problems) == 0 {
				t.Errorf("a runner that is broken by %q holds it", r.Break)
				return
			}
			t.Logf("with %q: %s", r.Break, problems[0])
		})
	}
}
