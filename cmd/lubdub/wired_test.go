package main

import (
	"net/http"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"github.com/lubdub-io/lubdub/internal/config"
)

// A documented setting that nothing reads does nothing.
func TestEverySettingIsUsed(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil || len(files) < 10 {
		t.Fatalf("found %d files: %v", len(files), err)
	}
	var program strings.Builder
	for _, file := range files {
		if !strings.HasSuffix(file, "_test.go") {
			program.WriteString(readFile(t, file))
		}
	}
	for _, field := range reflect.VisibleFields(reflect.TypeFor[config.Config]()) {
		read := "." + field.Name
		if parts, ok := map[string]string{"AdminHosts": ".AdminNames()", "WebhookCIDRs": ".WebhookRanges()"}[field.Name]; ok {
			read = parts
		}
		if !strings.Contains(program.String(), read) {
			t.Errorf("nothing in cmd/lubdub reads the setting %s (%s): pass it on in process.go", field.Tag.Get("name"), field.Name)
		}
	}
}

// All metrics of a process, whichever package they come from, have the names, units and help that Prometheus requires.
func TestMetricsAreWellNamed(t *testing.T) {
	r := serveEmbedded(t)
	_, admin := r.urls()
	answer, err := http.Get(admin + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	problems, err := promlint.New(answer.Body).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
}
