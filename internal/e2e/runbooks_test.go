package e2e

import (
	"context"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"
)

// The tests of promtool show each alert firing, and not firing.
func TestEachAlertIsTested(t *testing.T) {
	t.Parallel()
	fires, silent := map[string]bool{}, map[string]bool{}
	for _, name := range []string{"rules_test.yml", "budgets_test.yml"} {
		var file struct {
			Tests []struct {
				Alerts []struct {
					Name string `yaml:"alertname"`
					Want []any  `yaml:"exp_alerts"`
				} `yaml:"alert_rule_test"`
			} `yaml:"tests"`
		}
		if err := yaml.Unmarshal([]byte(read(t, "../../deploy/observability/"+name)), &file); err != nil {
			t.Fatal(err)
		}
		for _, test := range file.Tests {
			for _, a := range test.Alerts {
				if len(a.Want) > 0 {
					fires[a.Name] = true
				} else {
					silent[a.Name] = true
				}
			}
		}
	}
	alerts := regexp.MustCompile(`(?m)^ *- alert: (\w+)$`).FindAllStringSubmatch(read(t, "../../deploy/observability/rules.yml"), -1)
	if len(alerts) == 0 {
		t.Fatal("there are no alerts")
	}
	for _, m := range alerts {
		if !fires[m[1]] || !silent[m[1]] {
			t.Errorf("%s is shown firing: %t, not firing: %t", m[1], fires[m[1]], silent[m[1]])
		}
	}
}

// Each alert has a runbook with its name, and each runbook an alert.
func TestEachAlertHasItsRunbook(t *testing.T) {
	t.Parallel()
	var file struct {
		Groups []struct {
			Rules []struct {
				Alert       string            `yaml:"alert"`
				Labels      map[string]string `yaml:"labels"`
				Annotations map[string]string `yaml:"annotations"`
			} `yaml:"rules"`
		} `yaml:"groups"`
	}
	text := read(t, "../../deploy/observability/rules.yml")
	if err := yaml.Unmarshal([]byte(text), &file); err != nil {
		t.Fatal(err)
	}
	var named []string
	for _, g := range file.Groups {
		for _, r := range g.Rules {
			if r.Alert == "" { // a recording rule
				continue
			}
			url := "https://github.com/lubdub-io/lubdub/blob/main/docs/runbooks.md#" + strings.ToLower(r.Alert)
			if r.Annotations["runbook_url"] != url || r.Annotations["summary"] == "" || r.Annotations["description"] == "" {
				t.Errorf("%s lacks the runbook %s, a summary or a description", r.Alert, url)
			}
			if severity := r.Labels["severity"]; severity != "critical" && severity != "warning" {
				t.Errorf("%s has the severity %q", r.Alert, severity)
			}
			named = append(named, r.Alert)
		}
	}
	var there []string
	for _, m := range regexp.MustCompile(`(?m)^## (.*)$`).FindAllStringSubmatch(read(t, "../../docs/runbooks.md"), -1) {
		there = append(there, m[1])
	}
	slices.Sort(named)
	named = slices.Compact(named) // an alert may have a rule for each severity
	slices.Sort(there)
	if len(named) == 0 || !slices.Equal(named, there) {
		t.Errorf("alerts name %q, and there are %q", named, there)
	}
}

// The commands of documents work as they are printed: each is answered, and none is refused.
func TestCommandsOfDocumentsWork(t *testing.T) {
	root := build(t)
	urls := serveAll(t, root, "--redis", "embedded", "--listen", "127.0.0.1:0")
	for name, wanted := range map[string][]string{
		"runbooks": {
			"DEGRADED (1 warning)", "SHARD ", "This would retry 0 tasks", "No worker with", "No machine with", "This would offline 0 workers",
			"This would cordon 0 workers", "No queue in", "No webhook in", "No schedule in", "Released 0 tasks and 0 workers",
			"lubdub_http_beats_refused_total", "lubdub_redis_round_trip_seconds_count",
		},
		"troubleshooting": {"Redis"},
		"timeouts":        {"lubdub_beat_gap_ratio_bucket"},
		"backup":          {"Redis"},
	} {
		t.Run(name, func(t *testing.T) {
			out := runDocument(t, root, "../../docs/"+name+".md", "API="+urls[0], "ADMIN_LISTENER="+urls[1])
			for _, want := range wanted {
				if !strings.Contains(out, want) {
					t.Errorf("no command printed %s:\n%s", want, out)
				}
			}
		})
	}
}

// prelude makes a refused request a failure, and uses the built lubdub. Where a command may end with 1, since it reports a problem, the
// document says so; an unknown one ends with 2 and fails here.
const prelude = `
curl() { command curl --fail-with-body "$@"; }
lubdub() { bin/lubdub "$@" || { code=$?; echo "lubdub $* ended with $code"; [ $code = 1 ] || kill $$; return $code; }; }
export LUBDUB_URL=$API
LUBDUB_TOKEN=$(bin/lubdub token --role admin) && export LUBDUB_TOKEN
`

func runDocument(t *testing.T, root, path string, environ ...string) string {
	t.Helper()
	script := prelude
	for _, m := range regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllStringSubmatch(read(t, path), -1) {
		script += m[1]
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", "-eu", "-o", "pipefail", "-c", script)
	cmd.Dir = root
	cmd.Env = append(append(os.Environ(), signingKeys, "HOME="+root), environ...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return string(out)
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
