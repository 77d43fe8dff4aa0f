package archtest

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
)

type workflow struct {
	On   map[string]any
	Jobs map[string]struct {
		RunsOn string `yaml:"runs-on"`
		Steps  []struct {
			Uses, Run string
			With      map[string]any
		}
	}
}

func readWorkflow(t *testing.T, name string) (w workflow) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../../.github/workflows", name))
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(text, &w); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return w
}

var target = regexp.MustCompile(`(?m)^([a-z-]+):`)

// The gate is one script. A forge's workflow provides the sources, their history and Go, and adds no check that cannot be run
// locally; the commands in workflows exist and are executable.
func TestWorkflowsCallWhatIsThere(t *testing.T) {
	makefile, err := os.ReadFile("../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	targets := map[string]bool{}
	for _, m := range target.FindAllStringSubmatch(string(makefile), -1) {
		targets[m[1]] = true
	}
	for name, want := range map[string]struct {
		event string
		runs  []string
	}{
		"ci.yml":      {"pull_request", []string{".ci/run"}},
		"release.yml": {"push", []string{"git rev-parse --verify", "make test-dist", "make dist", "test -e"}},
	} {
		w := readWorkflow(t, name)
		var runs, uses []string
		for _, job := range w.Jobs {
			if job.RunsOn == "" {
				t.Errorf("%s: a job runs nowhere", name)
			}
			for _, step := range job.Steps {
				if step.Run != "" {
					runs = append(runs, step.Run)
				}
				action, _, _ := strings.Cut(step.Uses, "@")
				uses = append(uses, action)
				if action == "actions/checkout" && step.With["fetch-depth"] != uint64(0) {
					t.Errorf("%s: the history is cut off: %v", name, step.With)
				}
				if action == "actions/setup-go" && step.With["go-version-file"] != "go.mod" {
					t.Errorf("%s: Go is not the one of go.mod: %v", name, step.With)
				}
			}
		}
		if _, on := w.On[want.event]; !on {
			t.Errorf("%s does not run on %s", name, want.event)
		}
		if len(runs) != len(want.runs) || !slices.Contains(uses, "actions/checkout") || !slices.Contains(uses, "actions/setup-go") {
			t.Fatalf("%s: %q after %q, want %q", name, runs, uses, want.runs)
		}
		for i, run := range runs {
			if !strings.HasPrefix(run, want.runs[i]) {
				t.Errorf("%s runs %q, want %q", name, run, want.runs[i])
			}
			if name, isMake := strings.CutPrefix(run, "make "); isMake && !targets[name] {
				t.Errorf("there is no `%s`", run)
			}
		}
	}
	if f, err := os.Stat("../../.ci/run"); err != nil || f.Mode()&0o111 == 0 {
		t.Errorf(".ci/run cannot be run: %v", err)
	}
}
