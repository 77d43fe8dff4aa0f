package conformance

import (
	"flag"
	"strings"
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/internal/sdkrunner"
)

var (
	sdks     = flag.String("sdks", "go", "SDKs to hold against the table, with commas; all: those that are there")
	only     = flag.String("case", "", "play the cases whose name contains this")
	atOnce   = flag.Int("at-once", 10, "how many cases are played at the same time")
	rounds   = flag.Int("rounds", 1, "how often each case is played")
	caseTime = time.Minute // only waited for when something is broken
)

func inFull(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("it builds and runs programs; run it without -short")
	}
}

func find(t *testing.T, names string) []sdkrunner.Runner {
	t.Helper()
	runners, err := sdkrunner.Find(names, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return runners
}

// result is what came of a case that is played.
type result struct {
	*Case
	problems chan []string
}

// playAll plays cases concurrently, regardless of -parallel: they wait for most of their time.
func playAll(t *testing.T, of sdkrunner.Runner, limit time.Duration, places int, fault func(*Case) string) (results []result) {
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
	for _, of := range find(t, *sdks) {
		t.Run(of.SDK, func(t *testing.T) {
			t.Parallel()
			for _, r := range playAll(t, of, caseTime, *atOnce, func(*Case) string { return "" }) {
				t.Run(r.Name, func(t *testing.T) {
					if problems := <-r.problems; len(problems) > 0 {
						t.Errorf("%s\n%s", r.Description, strings.Join(problems, "\n"))
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
	of := find(t, "go")[0]
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
