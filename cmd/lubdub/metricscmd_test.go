package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The reference knows every metric, its type and what it is about; documents name no unknown metric.
func TestMetricsReference(t *testing.T) {
	all, err := describeMetrics(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, f := range all {
		if f.help == "" || strings.HasSuffix(f.name, "_total") != (f.kind == "counter") {
			t.Errorf("%+v", f)
		}
		names = append(names, f.name)
	}
	for _, name := range []string{"lubdub_build_info", "lubdub_beats_total", "lubdub_http_requests_total", "lubdub_redis_errors_total"} {
		if !slices.Contains(names, name) {
			t.Errorf("%s is not among %d metrics", name, len(names))
		}
	}
	documents, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range append(documents, "../../README.md") {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range regexp.MustCompile(`lubdub_[a-z_]+`).FindAllString(string(text), -1) {
			if name != "lubdub_test" && !slices.Contains(names, strings.TrimSuffix(name, "_bucket")) {
				t.Errorf("%s names %s, which does not exist", file, name)
			}
		}
	}
}
