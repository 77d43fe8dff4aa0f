package check

import (
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

const (
	runbooks     = "https://github.com/lubdub-io/lubdub/blob/main/docs/runbooks.md"
	rulesSelect  = `job=~".*lubdub.*"`
	withRules    = bundled + "\nmonitoring: {rules: {enabled: true}}"
	ourRunbooks  = bundled + "\nmonitoring: {rules: {enabled: true, runbookUrl: 'https://wiki.example.com/lubdub'}}"
	ourSelector  = bundled + "\nmonitoring: {rules: {enabled: true, selector: 'cluster=\"a\",job=~\"x|y\"'}}"
	withMonitors = bundled + "\nmonitoring: {rules: {enabled: true}, serviceMonitor: {enabled: true, labels: {release: prometheus}}}"
)

// The ServiceMonitor selects one Service, which selects the replicas of both roles, and not Redis.
func TestChartServiceMonitor(t *testing.T) {
	o := (&chartCase{release: "x", values: withMonitors}).fit(t)
	if len(o.monitors) != 1 || o.monitors[0].Labels["release"] != "prometheus" {
		t.Fatalf("the monitors are %+v", o.monitors)
	}
	m := o.monitors[0]
	selector, err := metav1.LabelSelectorAsSelector(&m.Spec.Selector)
	if err != nil {
		t.Fatal(err)
	}
	var scraped []*corev1.Service
	for _, s := range o.services {
		if selector.Matches(labels.Set(s.Labels)) {
			scraped = append(scraped, s)
		}
	}
	if len(scraped) != 1 || scraped[0].Name != "x-lubdub-metrics" || scraped[0].Spec.Ports[0].Name != m.Spec.Endpoints[0].Port {
		t.Fatalf("it selects %+v", scraped)
	}
	for _, w := range o.workloads {
		role := w.pods.Labels["app.kubernetes.io/component"]
		selected := labels.SelectorFromSet(scraped[0].Spec.Selector).Matches(labels.Set(w.pods.Labels))
		if selected != (role != "redis") {
			t.Errorf("pods of %s are selected: %t", role, selected)
		}
		if selected && !hasPort(w, scraped[0].Spec.Ports[0].TargetPort) {
			t.Errorf("pods of %s have no port %s", role, scraped[0].Spec.Ports[0].TargetPort.String())
		}
	}
}

// The rules are those of deploy/observability, with the address of the runbooks and the matchers of the values.
func TestChartRules(t *testing.T) {
	for name, c := range map[string]struct{ values, runbooks, selector string }{
		"as they are":            {withRules, runbooks, rulesSelect},
		"other runbooks":         {ourRunbooks, "https://wiki.example.com/lubdub", rulesSelect},
		"other matchers":         {ourSelector, runbooks, `cluster="a",job=~"x|y"`},
		"of this ServiceMonitor": {withMonitors, runbooks, `namespace="ns",job="x-lubdub-metrics"`},
	} {
		t.Run(name, func(t *testing.T) {
			files, err := template(t, "x", c.values)
			if err != nil {
				t.Fatal(err)
			}
			o := decoded(t, files)
			var want monitoringv1.PrometheusRuleSpec
			text := strings.NewReplacer(runbooks, c.runbooks, rulesSelect, c.selector).Replace(read(t, "../observability/rules.yml"))
			strictly(t, []byte(text), &want)
			if len(want.Groups) == 0 || len(o.rules) != 1 || !reflect.DeepEqual(o.rules[0].Spec, want) {
				t.Error("the rules are not those of deploy/observability")
			}
		})
	}
}

// The dashboards are those of deploy/observability, in a ConfigMap that Grafana's sidecar finds.
func TestChartDashboards(t *testing.T) {
	files, err := template(t, "x", bundled+"\nmonitoring: {dashboards: {enabled: true}}")
	if err != nil {
		t.Fatal(err)
	}
	all := decoded(t, files).configMaps
	at := slices.IndexFunc(all, func(c *corev1.ConfigMap) bool { return c.Labels["grafana_dashboard"] == "1" })
	dashboards, _ := filepath.Glob("../observability/grafana/dashboards/*.json")
	if at < 0 || len(dashboards) != 2 || len(all[at].Data) != len(dashboards) {
		t.Fatalf("%d dashboards, and the ConfigMaps are %+v", len(dashboards), all)
	}
	for _, file := range dashboards {
		if all[at].Data[filepath.Base(file)] != read(t, file) {
			t.Errorf("%s is not the dashboard of deploy/observability", filepath.Base(file))
		}
	}
}
