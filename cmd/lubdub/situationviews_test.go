package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lubdub-io/lubdub/internal/cli/exit"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

// ofABusyHost are warnings and alerts that a host without time for its processes may cause in any situation.
var ofABusyHost = []string{"shard-time", "shards", "sweep-lag", "redis-round-trip", "LubdubSweepLag", "LubdubTimeoutsPaused"}

// views are those of one deployment.
type views struct {
	*desk
	token string
	admin string
	top   *terminal
	calm  [2]*scrape // the metrics of the first situation, before anything happened: how they grow, and what they are
}

// agree waits until all views show a situation.
func (w *views) agree(s situation) {
	w.t.Helper()
	began := time.Now()
	why, from := "", w.scrape()
	for why = w.differ(&s, from); why != ""; why = w.differ(&s, from) {
		if time.Since(began) > long {
			w.t.Fatalf("%s: %s", s.name, why)
		}
		if time.Since(from.at) > 5*time.Second { // earlier events are over: rates are measured again
			from = w.scrape()
		}
	}
}

// differ returns how a view differs from a situation; empty: all agree. The rates of counters are those since a scrape.
func (w *views) differ(s *situation, from *scrape) string {
	w.t.Helper()
	before := w.wrong()
	status, screen := w.run("status"), w.top.tmux("capture-pane", "-p")
	found := w.wrong()
	if !slices.Equal(before, found) {
		return fmt.Sprintf("findings change from %+v to %+v", before, found)
	}
	is := s.code == ""
	for _, f := range found {
		switch {
		case f.Code == s.code && f.Severity == s.severity && strings.Contains(f.Message, s.message):
			is = true
		case f.Severity == v1.SeverityWarn && slices.Contains(ofABusyHost, f.Code):
		case f.Severity != s.severity || !slices.Contains(s.remains, f.Code):
			return fmt.Sprintf("/v1/system also finds %+v", f)
		}
	}
	if !is {
		return fmt.Sprintf("/v1/system does not find %s %s, but %+v", s.severity, s.code, found)
	}
	for _, why := range []string{statusDiffers(status, found), topDiffers(screen, found)} {
		if why != "" {
			return why
		}
	}
	now := w.scrape()
	for series, want := range s.metrics {
		if got, ok := now.values[series]; !ok || got != want {
			return fmt.Sprintf("%s is %v (shown: %v), not %v", series, got, ok, want)
		}
	}
	if s.code == "" {
		w.calm = [2]*scrape{from, now}
	}
	return w.alertsDiffer(s, from, now)
}

// wrong returns the findings of GET /v1/system that are not well, after it has held the summary to them.
func (w *views) wrong() (found []v1.Finding) {
	w.t.Helper()
	status, body := request(http.MethodGet, w.api+"/v1/system", w.token, "")
	var s v1.SystemUnavailable
	if err := json.Unmarshal([]byte(body), &s); err != nil || status != http.StatusOK && status != http.StatusServiceUnavailable {
		w.t.Fatalf("GET /v1/system: %d %v: %s", status, err, body)
	}
	for _, f := range s.Findings {
		if f.Severity != v1.SeverityOK {
			found = append(found, f)
		}
	}
	if s.Summary.Severity != v1.Worst(found) || len(found) > 0 && !strings.HasPrefix(s.Summary.Message, found[0].Message) {
		w.t.Errorf("the summary is %+v, and found is %+v", s.Summary, found)
	}
	return found
}

// statusDiffers holds what lubdub status printed, and its exit code, to what GET /v1/system finds wrong.
func statusDiffers(status answer, found []v1.Finding) string {
	headline, code := "HEALTHY  ", exit.OK
	switch v1.Worst(found) {
	case v1.SeverityWarn:
		headline = fmt.Sprintf("DEGRADED (%d warning", len(found))
	case v1.SeverityFail:
		headline, code = "UNHEALTHY (", exit.Failed
	}
	if len(found) == 1 && found[0].Code == "redis" { // it is the only one, and does not respond
		code = exit.Unavailable
	}
	var want, got []string
	for _, f := range found {
		want = append(want, string(f.Severity)+" "+f.Message)
		if !strings.Contains(status.out, "  - "+f.Remedy+"\n") {
			return "lubdub status does not advise " + f.Remedy + ":\n" + status.out
		}
	}
	for _, m := range regexp.MustCompile(`(?m)^  (?:Lubdub|workers): +(warn|fail) (.*)$`).FindAllStringSubmatch(status.out, -1) {
		got = append(got, m[1]+" "+m[2])
	}
	if status.code != code || !strings.HasPrefix(status.out, headline) || !slices.Equal(got, want) {
		return fmt.Sprintf("lubdub status should begin with %q, end with %d and find %q, but ends with %d:\n%s%s", headline, code, want,
			status.code, status.out, status.err)
	}
	return ""
}

// topDiffers holds the screen of lubdub top to what GET /v1/system finds wrong: it has the three worst at least.
func topDiffers(screen string, found []v1.Finding) string {
	want := []string{"OK no problems found with Lubdub or the workers"}
	if len(found) > 0 {
		want = nil
	}
	for _, f := range found[:min(3, len(found))] {
		want = append(want, strings.ToUpper(string(f.Severity))+" "+f.Message)
	}
	if !strings.Contains(screen, "\n"+strings.Join(want, "\n")+"\n") {
		return fmt.Sprintf("lubdub top should show %q:\n%s", want, screen)
	}
	return ""
}

// scrape is what /metrics showed.
type scrape struct {
	at       time.Time
	values   map[string]float64 // by series
	counters map[string]bool    // names of those that only grow
}

func (w *views) scrape() *scrape {
	w.t.Helper()
	status, body := request(http.MethodGet, w.admin+"/metrics", "", "")
	if status != http.StatusOK {
		w.t.Fatalf("/metrics: %d %s", status, body)
	}
	s := &scrape{at: time.Now(), values: map[string]float64{}, counters: map[string]bool{}}
	for line := range strings.Lines(body) {
		fields := strings.Fields(line)
		if len(fields) == 4 && fields[1] == "TYPE" {
			switch name := fields[2]; fields[3] {
			case "counter":
				s.counters[name] = true
			case "histogram":
				s.counters[name+"_bucket"], s.counters[name+"_sum"], s.counters[name+"_count"] = true, true, true
			}
			continue
		}
		at := strings.LastIndexByte(line, ' ')
		value, err := strconv.ParseFloat(strings.TrimSpace(line[at+1:]), 64)
		if !strings.HasPrefix(line, "#") && err == nil {
			s.values[line[:at]] = value
		}
	}
	return s
}

// The time that alerts are evaluated for: ten minutes of the first situation, then eighty of how it is now. Prometheus looks twice a
// minute.
const (
	evaluationsBefore = 20
	evaluationsAfter  = 160
)

var alertNames = regexp.MustCompile(`alertname="(\w+)"`)

// alertsDiffer evaluates the rules of deploy/observability, by promtool, for a deployment that was calm, in which everything that
// happened since has happened at once, and continues as between two scrapes.
func (w *views) alertsDiffer(s *situation, from, now *scrape) string {
	w.t.Helper()
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		return ""
	}
	rules, err := filepath.Abs("../../deploy/observability/rules.yml")
	if err != nil {
		w.t.Fatal(err)
	}
	type object map[string]any
	var input []object
	for _, series := range w.ruleSeries(rules, now) {
		values := fmt.Sprintf("_x%d ", evaluationsBefore)
		if value, ok := w.calm[1].values[series]; ok {
			growth := w.calm[0].growth(series, w.calm[1])
			values = fmt.Sprintf("%s+%sx%d ", decimal(value-growth*evaluationsBefore), decimal(growth), evaluationsBefore-1)
		}
		if value, ok := now.values[series]; ok {
			values += fmt.Sprintf("%s+%sx%d", decimal(value), decimal(from.growth(series, now)), evaluationsAfter)
		} else {
			values += "stale"
		}
		name, labels, _ := strings.Cut(strings.TrimSuffix(series, "}"), "{")
		input = append(input, object{"series": name + `{instance="a",job="lubdub",` + labels + "}", "values": values})
	}
	text, err := json.Marshal(object{"rule_files": []string{rules}, "evaluation_interval": "30s", "tests": []object{{
		"interval": "30s", "input_series": input, "promql_expr_test": []object{{
			"expr": `max by (alertname) (max_over_time(ALERTS{alertstate="firing"}[90m]))`, "eval_time": "90m", "exp_samples": []object{},
		}},
	}}})
	if err != nil {
		w.t.Fatal(err)
	}
	file := filepath.Join(w.t.TempDir(), "situation.yml")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		w.t.Fatal(err)
	}
	out, err := exec.Command(promtool, "test", "rules", file).CombinedOutput()
	var firing []string
	for _, m := range alertNames.FindAllStringSubmatch(string(out), -1) {
		firing = append(firing, m[1])
	}
	if ended := new(exec.ExitError); err != nil && (!errors.As(err, &ended) || len(firing) == 0) {
		w.t.Fatalf("promtool: %v: %s", err, out)
	}
	for _, name := range s.alerts {
		if !slices.Contains(firing, name) {
			return fmt.Sprintf("%s does not fire, but %q", name, firing)
		}
	}
	for _, name := range firing {
		if !slices.Contains(slices.Concat(s.alerts, s.mayFire, ofABusyHost), name) {
			return name + " fires"
		}
	}
	return ""
}

// ruleSeries returns the series of the metrics that the rules name, of now and of the first situation.
func (w *views) ruleSeries(rules string, now *scrape) (all []string) {
	named := regexp.MustCompile(`lubdub_\w+`).FindAllString(readFile(w.t, rules), -1)
	for _, s := range []*scrape{w.calm[1], now} {
		for series := range s.values {
			if name, _, _ := strings.Cut(series, "{"); slices.Contains(named, name) && !slices.Contains(all, series) {
				all = append(all, series)
			}
		}
	}
	return all
}

// growth is what a counter grows by from one look to the next, as it did between two scrapes. Gauges stay.
func (s *scrape) growth(series string, to *scrape) float64 {
	name, _, _ := strings.Cut(series, "{")
	if !to.counters[name] {
		return 0
	}
	return (to.values[series] - s.values[series]) * 30 / to.at.Sub(s.at).Seconds()
}

func decimal(value float64) string { return strconv.FormatFloat(value, 'f', -1, 64) }
