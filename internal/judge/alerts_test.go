package judge

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
)

// An alert and a finding on the same value have the same limit, so that an operator paged by the one finds the other.
func TestAlertsHaveTheSameLimits(t *testing.T) {
	text, err := os.ReadFile("../../deploy/observability/rules.yml")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Groups []struct {
			Rules []struct{ Alert, Expr, For string }
		}
	}
	if err := yaml.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	expr, lasts := map[string]string{}, map[string]string{}
	for _, g := range file.Groups {
		for _, r := range g.Rules {
			text := strings.NewReplacer(`{job=~".*lubdub.*"}`, "", `job=~".*lubdub.*",`, "").Replace(r.Expr)
			expr[r.Alert], lasts[r.Alert] = strings.Join(strings.Fields(text), " "), r.For
		}
	}
	for alert, parts := range map[string][]string{
		"LubdubSweepLag": {fmt.Sprintf("(lubdub_sweep_lag_seconds) > %g", lagForLong.Seconds())},
		"LubdubHeartbeatsNearTimeout": {fmt.Sprintf(`lubdub_beat_gap_ratio_bucket{le="%g"}`, tightGap), "< 0.99 *",
			fmt.Sprintf("> %d", gapsAtLeast)},
		"LubdubHeartbeatsRefused": {`code=~"` + strings.Join(ours, "|") + `"`, fmt.Sprintf("> %g *", refusedShare),
			fmt.Sprintf("+ %g", refusedPerSecond)},
		"LubdubTimeoutsPaused": {"> 0.1"}, // shard seconds a second: one shard that is paused for six seconds of a minute, or many for less
	} {
		for _, part := range parts {
			if !strings.Contains(expr[alert], part) {
				t.Errorf("%s asks %q, and not %q, which findings ask", alert, expr[alert], part)
			}
		}
	}
	if lasts["LubdubSweepLag"] != fmt.Sprintf("%.0fm", longLag.Minutes()) {
		t.Errorf("LubdubSweepLag waits %s, findings %v", lasts["LubdubSweepLag"], longLag)
	}
}
