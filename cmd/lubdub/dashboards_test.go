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
			Name       string `json:"name"`
			Definition string `json:"definition"`
			Datasource struct {
				UID string `json:"uid"`
			} `json:"datasource"`
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

var (
	variable = regexp.MustCompile(`\$[a-z]+`)
	metric   = regexp.MustCompile(`[a-z_:]*\blubdub_[a-z_]+(:\w+)?(\{[^}]*\})?`)
	recorded = regexp.MustCompile(`record: (\S+)`)
)

// selects are the matchers that each query has, and those of series that have these labels too.
var selects = []string{`namespace=~"$namespace"`, `job=~"$job"`, `tenant=~"$tenant"`, `workspace=~"$workspace"`}

// Dashboards and rules name existing metrics, and select deployments: rules by the matcher that the chart replaces, dashboards by their
// variables. 'make test-deploy' checks the expressions with Prometheus's own parser: bin/dashboards.yml has them as rules.
func TestDashboardsAndAlertsNameMetricsThatThereAre(t *testing.T) {
	all, err := describeMetrics(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var names, ofQueues []string
	for _, f := range all {
		names = append(names, f.name)
		if slices.Contains(f.labels, "tenant") {
			ofQueues = append(ofQueues, f.name)
		}
		if f.kind == "histogram" {
			names = append(names, f.name+"_bucket", f.name+"_sum", f.name+"_count")
		}
	}
	check := func(file, expr string, matchers func(name string) []string) {
		for _, series := range metric.FindAllString(expr, -1) {
			name, with, _ := strings.Cut(series, "{")
			if !slices.Contains(names, name) {
				t.Errorf("%s queries %s, which does not exist", file, name)
			}
			for _, m := range matchers(name) {
				if !strings.Contains(with, m) {
					t.Errorf("%s queries %s without %s", file, name, m)
				}
			}
		}
	}
	text := readFile(t, "../../deploy/observability/rules.yml")
	_, text, _ = strings.Cut(text, "groups:")
	var records []string
	for _, m := range recorded.FindAllStringSubmatch(text, -1) {
		records = append(records, m[1])
	}
	names = append(names, records...)
	check("rules.yml", text, func(name string) []string {
		if slices.Contains(records, name) {
			return nil
		}
		return []string{`job=~".*lubdub.*"`}
	})
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
			if v.Definition != "" && v.Datasource.UID != "${datasource}" {
				t.Errorf("%s: the variable %s does not use the data source that is chosen", file, v.Name)
			}
			check(file, v.Definition, func(string) []string { return nil })
			variables = append(variables, v.Name)
		}
		if !slices.Equal(variables[:min(3, len(variables))], []string{"datasource", "namespace", "job"}) {
			t.Errorf("%s has the variables %q", file, variables)
		}
		for _, p := range d.Panels {
			if p.Type == "row" {
				continue
			}
			if p.Datasource.UID != "${datasource}" || len(p.Targets) == 0 {
				t.Errorf("%s: %q has no targets, or not the data source that is chosen", file, p.Title)
			}
			for _, target := range p.Targets {
				check(file, target.Expr, func(name string) []string {
					if slices.Contains(ofQueues, name) {
						return selects
					}
					return selects[:2]
				})
				if !strings.Contains(target.Expr, selects[1]) { // of a metric of the process
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
