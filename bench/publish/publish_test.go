package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/bench/report"
)

// The documents show the newest result and no other number.
func TestDocumentsShowTheNewestResult(t *testing.T) {
	const root = "../.."
	_, newest, err := report.Newest(filepath.Join(root, results))
	if err != nil {
		t.Fatal(err)
	}
	for name, section := range documents {
		text, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		want, err := showIn(string(text), section(newest))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if string(text) != want {
			t.Errorf("%s does not show the newest report in %s; after 'make bench' run 'make results'", name, results)
		}
	}
	for name := range headline {
		if !slices.ContainsFunc(newest.Bars, func(b report.Bar) bool { return b.Name == name }) {
			t.Errorf("the README is to show the bar %s, which the report does not have", name)
		}
	}
}

// One result is committed: a summary and its page.
func TestTheResultIsWhole(t *testing.T) {
	files, err := filepath.Glob("../results/*")
	if err != nil || len(files) != 2 {
		t.Fatalf("%v %v", files, err)
	}
	path, r, err := report.Newest("../results")
	if err != nil {
		t.Fatal(err)
	}
	if err := worthKeeping(r); err != nil {
		t.Errorf("%s: %v", path, err)
	}
	if info, err := os.Stat(path); err != nil || info.Size() > 200<<10 || filepath.Base(path) != r.Name+".json" {
		t.Errorf("%s is the report %s, %v %v", path, r.Name, info, err)
	}
	if _, err := os.Stat(strings.TrimSuffix(path, ".json") + ".md"); err != nil {
		t.Error(err)
	}
}

func sample() *report.Report {
	v := 0.19
	return &report.Report{
		Version: report.Version, Name: "2026-01-31-1a2b3c4", Command: "lubdub bench --report bin/report/", Complete: true,
		StartedAt: time.Date(2026, 1, 31, 10, 0, 0, 0, time.UTC), Machine: report.Machine{Cores: 2, OS: "linux", Arch: "amd64", CPU: "A CPU"},
		Lubdub: report.Lubdub{Version: "v1-3-g1a2b3c4", Commit: "1a2b3c4"}, Redis: report.Redis{Version: "7.0.15"},
		Bars: []report.Bar{{Name: "a", What: "a | b", Unit: "×", Bar: 0.28, Measured: &v, Verdict: report.Met, Note: "a note"},
			{Name: "batch-rate", What: "headline", Unit: "×", Bar: 0.28, Measured: &v, Verdict: report.Met}},
	}
}

// scratch is a repository with a README and a report that was just made.
func scratch(t *testing.T, r *report.Report) (root, prefix string) {
	t.Helper()
	root = t.TempDir()
	prefix = filepath.Join(root, "bench")
	if err := os.Mkdir(filepath.Join(root, "docs"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name := range documents {
		writeText(t, filepath.Join(root, name), "# Title\n\n"+begin+"what was before\n"+end+"\nthe rest\n")
	}
	f, err := os.Create(prefix + ".json")
	if err != nil {
		t.Fatal(err)
	}
	if err := r.WriteJSON(f); err != nil || f.Close() != nil {
		t.Fatal(err)
	}
	return root, prefix
}

// flat removes what aligns the columns of tables.
func flat(text string) string { return strings.Join(strings.Fields(text), " ") }

func writeText(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestPublish(t *testing.T) {
	root, prefix := scratch(t, sample())
	for range 2 { // again: the same
		published, err := publish(root, prefix, false)
		if err != nil || published != "bench/results/2026-01-31-1a2b3c4.json" {
			t.Fatal(published, err)
		}
		for name, wants := range map[string][]string{
			"README.md": {"## How fast", "| headline | ≤ 0.28 × | – | 0.19 × | met |"},
			"docs/benchmarks.md": {"## Results", `| a \| b | ≤ 0.28 × | – | 0.19 × | met (a note) |`, "| headline |",
				"(../bench/results/2026-01-31-1a2b3c4.json)", "(../bench/results/2026-01-31-1a2b3c4.md)",
				"`lubdub bench --report bin/report/`", "v1-3-g1a2b3c4", "2 cores, linux/amd64, A CPU", "Redis 7.0.15"},
		} {
			text, err := os.ReadFile(filepath.Join(root, name))
			if err != nil {
				t.Fatal(err)
			}
			for _, want := range append(wants, "# Title\n\n"+begin, end+"\nthe rest\n") {
				if !strings.Contains(flat(string(text)), flat(want)) {
					t.Errorf("%s has no %q:\n%s", name, want, text)
				}
			}
			if strings.Contains(string(text), "what was before") {
				t.Errorf("%s still has the old section", name)
			}
			if name == "README.md" && strings.Contains(string(text), `a \| b`) {
				t.Error("the README has more than the headline")
			}
		}
	}
	for _, ext := range []string{".json", ".md"} {
		if _, err := os.Stat(filepath.Join(root, results, "2026-01-31-1a2b3c4"+ext)); err != nil {
			t.Error(err)
		}
	}
	r := sample()
	r.Name, r.StartedAt = "2026-02-01-0000000", r.StartedAt.Add(24*time.Hour)
	_, next := scratch(t, r)
	if _, err := publish(root, next, false); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(root, results, "*"))
	if err != nil || len(files) != 2 {
		t.Fatalf("there are %v %v", files, err)
	}
	_, newest, err := report.Newest(filepath.Join(root, results))
	if err != nil || newest.Name != r.Name {
		t.Fatalf("%+v %v", newest, err)
	}
}

func TestPublishRefuses(t *testing.T) {
	for want, change := range map[string]func(*report.Report){
		"a quick run":                  func(r *report.Report) { r.Quick = true },
		"did not come to its end":      func(r *report.Report) { r.Complete = false },
		"with uncommitted changes":     func(r *report.Report) { r.Lubdub.Version += "-dirty" },
		"the bar a was not measured":   func(r *report.Report) { r.Bars[0].Verdict = report.NotMeasured },
		"does not name the commit":     func(r *report.Report) { r.Name = "" },
		"reads version 1; run 'make b": func(r *report.Report) { r.Version = 99 },
	} {
		r := sample()
		change(r)
		root, prefix := scratch(t, r)
		if _, err := publish(root, prefix, false); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
		for name := range documents {
			if text, err := os.ReadFile(filepath.Join(root, name)); err != nil || !strings.Contains(string(text), "what was before") {
				t.Errorf("%s: %s was changed", want, name)
			}
		}
		if _, err := publish(root, prefix, true); (err == nil) != (r.Name != "" && r.Version == report.Version) {
			t.Errorf("%s, as a trial: %v", want, err)
		}
	}
}

func TestWithoutResultNothingIsShown(t *testing.T) {
	for name, section := range documents {
		got, err := showIn("a\n"+begin+"numbers of yore\n"+end+"b\n", section(nil))
		if err != nil || got != "a\n"+begin+end+"b\n" {
			t.Errorf("%s: %q %v", name, got, err)
		}
	}
	if _, err := showIn("no marks", ""); err == nil {
		t.Error("a document without marks was accepted")
	}
}
