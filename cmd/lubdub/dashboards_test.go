package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// dashboard is what the tests look at of one of Grafana's.
type dashboard struct {
	UID        string `json:"uid"`
	Title      string `json:"title"`
	Templating struct {
		List []struct {
			Name string `json:"name"`
			Type string `json:"type"`
		} `json:"list"`
	} `json:"templating"`
	Panels []struct {
		Type       string `json:"type"`
		Title      string `json:"title"`
		Datasource struct {
			UID string `json:"uid"`
		} `json:"datasource"`
		Targets []struct {
			Expr string `json:"expr"`
		} `json:"targets"`
	} `json:"panels"`
}

var variable = regexp.MustCompile(`\$[a-z]+`)

// Dashboards and alerts name metrics that there are, and series that are there from the start. Whether the expressions are ones
// is judged by 'make test-deploy', with Prometheus's own parser: bin/dashboards.yml has them as rules.
func TestDashboardsAndAlertsNameMetricsThatThereAre(t *testing.T) {
	all, err := describeMetrics(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, f := range all {
		names = append(names, f.name)
		if f.kind == "histogram" {
			names = append(names, f.name+"_bucket", f.name+"_sum", f.name+"_count")
		}
	}
	check := func(file, expr string) {
		for _, name := range regexp.MustCompile(`lubdub_[a-z_]+`).FindAllString(expr, -1) {
			if !slices.Contains(names, name) {
				t.Errorf("%s queries %s, which does not exist", file, name)
			}
		}
	}
	check("rules.yml", readFile(t, "../../deploy/observability/rules.yml"))
	files, err := filepath.Glob("../../deploy/observability/grafana/dashboards/*.json")
	if err != nil || len(files) != 2 {
		t.Fatal(files, err)
	}
	rules := new(strings.Builder)
	rules.WriteString("groups:\n  - name: dashboards\n    rules:\n")
	for _, file := range files {
		var d dashboard
		if err := json.Unmarshal([]byte(readFile(t, file)), &d); err != nil {
			t.Fatal(err)
		}
		if d.UID == "" || d.Title == "" || len(d.Panels) < 10 {
			t.Errorf("%s has no uid or title, or %d panels only", file, len(d.Panels))
		}
		var variables []string
		for _, v := range d.Templating.List {
			variables = append(variables, v.Name)
		}
		for _, p := range d.Panels {
			if p.Type == "row" {
				continue
			}
			if p.Datasource.UID != "${datasource}" || len(p.Targets) == 0 {
				t.Errorf("%s: %q has no targets, or not the data source that is chosen", file, p.Title)
			}
			for _, target := range p.Targets {
				check(file, target.Expr)
				if !strings.Contains(target.Expr, `job=~"$job"`) {
					t.Errorf("%s: %q mixes deployments: %s", file, p.Title, target.Expr)
				}
				expr := variable.ReplaceAllStringFunc(target.Expr, func(name string) string {
					if !slices.Contains(variables, name[1:]) {
						t.Errorf("%s: %q uses %s, which is no variable of the dashboard", file, p.Title, name)
					}
					return ".*"
				})
				fmt.Fprintf(rules, "      - {record: 'dashboards:%d', expr: '%s'}\n", rules.Len(), strings.ReplaceAll(expr, "'", "''"))
			}
		}
	}
	if dir := os.Getenv("DASHBOARD_RULES"); dir != "" {
		if err := os.WriteFile(dir, []byte(rules.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
