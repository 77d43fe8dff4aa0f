package check

import (
	"cmp"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"helm.sh/helm/v3/pkg/lint"
	"helm.sh/helm/v3/pkg/lint/support"
)

const chartDir = "../helm/lubdub"

// values reads values as `helm --values` does.
func values(t *testing.T, text string) chartutil.Values {
	t.Helper()
	v, err := chartutil.ReadValues([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// template renders the chart as `helm template` does: a file each of its templates.
func template(t *testing.T, release, text string) (map[string]string, error) {
	t.Helper()
	c := loadChart(t)
	installed := chartutil.ReleaseOptions{Name: release, Namespace: "ns", Revision: 1, IsInstall: true}
	all, err := chartutil.ToRenderValues(c, values(t, text), installed, chartutil.DefaultCapabilities)
	if err != nil {
		return nil, err
	}
	files, err := engine.Render(c, all)
	for name, text := range files {
		delete(files, name)
		if name := filepath.Base(name); filepath.Ext(name) == ".yaml" && strings.TrimSpace(text) != "" {
			files[name] = text
		}
	}
	return files, err
}

func loadChart(t *testing.T) *chart.Chart {
	t.Helper()
	c, err := loader.Load(chartDir)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func decoded(t *testing.T, files map[string]string) *objects {
	t.Helper()
	o := &objects{}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		for _, document := range documents(t, []byte(files[name])) {
			o.add(t, document)
		}
	}
	return o
}

const bundled = "redis: {bundled: {enabled: true}}"

type chartCase struct {
	release, values string // release "" is lubdub
	kinds           string // what there is of some kinds; "" is not looked at
}

// fit renders the chart: `helm lint` finds nothing, and what `helm template` makes of the values fits together and fits the program.
func (c *chartCase) fit(t *testing.T) *objects {
	t.Helper()
	for _, m := range lint.All(chartDir, values(t, c.values), "ns", true).Messages {
		if m.Severity > support.InfoSev {
			t.Error(m)
		}
	}
	files, err := template(t, cmp.Or(c.release, "lubdub"), c.values)
	if err != nil {
		t.Fatal(err)
	}
	o := decoded(t, files)
	o.fit(t)
	if kinds := o.kinds(); c.kinds != "" && kinds != c.kinds {
		t.Errorf("%s, and not %s", kinds, c.kinds)
	}
	return o
}

// The chart over a table of values.
func TestChart(t *testing.T) {
	for name, c := range map[string]chartCase{
		"the bundled Redis": {values: bundled, kinds: "3 workloads, 2 budgets, 1 autoscalers, 3 policies, 0 ingresses"},
		"Redis elsewhere": {
			release: "x", values: "redis: {url: 'redis+sentinel://s1:26379,s2:26379/main/0'}",
			kinds: "2 workloads, 2 budgets, 1 autoscalers, 2 policies, 0 ingresses",
		},
		"Redis by a Secret and TLS":  {values: "redis: {existingSecret: r, caSecret: ca}"},
		"a release with a long name": {release: strings.Repeat("long-", 10) + "rel", values: bundled},
		"another name":               {values: bundled + "\nfullnameOverride: beats\nnameOverride: hb"},
		"settings, and longer stops": {values: bundled + `
config: {durability: fsync, log-level: debug}
drainDelaySeconds: 60
shutdownTimeoutSeconds: 90`}, // which has no effect any more
		"short stops": {values: bundled + "\nterminationMarginSeconds: 1"},
		"TLS, and behind an ingress": {values: bundled + `
tls: {existingSecret: t}
ingress: {enabled: true, className: nginx, hosts: [a.example.com, b.example.com], tlsSecret: i}`,
			kinds: "3 workloads, 2 budgets, 1 autoscalers, 3 policies, 1 ingresses"},
		"an ingress for every host": {values: bundled + "\ningress: {enabled: true}"},
		"nothing that is optional": {values: bundled + `
networkPolicy: {enabled: false}
podDisruptionBudget: {enabled: false}
api: {autoscaling: {enabled: false}, replicas: 3}
serviceAccount: {create: false}`, kinds: "3 workloads, 0 budgets, 0 autoscalers, 0 policies, 0 ingresses"},
		"closed on all sides": {values: `redis: {url: 'rediss+cluster://c:6379'}
networkPolicy:
  apiFrom: [{podSelector: {matchLabels: {a: b}}}]
  redisTo: [{ipBlock: {cidr: 10.0.0.0/8}}]
  redisPorts: [6379, 16379]
  webhookTo: []
  metricsFrom: []`},
		"labels, annotations and places": {values: bundled + `
api:
  podLabels: {team: x}
  podAnnotations: {a: b}
  nodeSelector: {disk: ssd}
  tolerations: [{key: k, operator: Exists}]
  affinity: {podAntiAffinity: {}}
sweeper: {podLabels: {team: x}}
service: {type: LoadBalancer, port: 80, annotations: {a: b}}
serviceAccount: {name: mine, annotations: {a: b}}
image: {repository: r/lubdub, tag: '1', pullSecrets: [{name: s}]}`},
		"a public URL and a class of storage": {values: `redis: {bundled: {enabled: true, storageClassName: fast, storage: 1Gi}}
publicUrl: https://lubdub.example.com`},
	} {
		t.Run(name, func(t *testing.T) { c.fit(t) })
	}
}

func (o *objects) kinds() string {
	return fmt.Sprintf("%d workloads, %d budgets, %d autoscalers, %d policies, %d ingresses", len(o.workloads), len(o.budgets),
		len(o.autoscalers), len(o.policies), len(o.ingresses))
}

// Values that mean nothing, or two things, are refused in words.
func TestChartRefuses(t *testing.T) {
	for name, c := range map[string][2]string{
		"no Redis":                   {"", "say where Redis is"},
		"two of them":                {bundled + "\nredis: {url: 'redis://r:6379/0', bundled: {enabled: true}}", "2 are set"},
		"a setting that follows":     {bundled + "\nconfig: {drain-delay: 1s}", "config.drain-delay is the chart's own"},
		"a setting that is a secret": {bundled + "\nconfig: {redis: redis://r:6379/0}", "config.redis is the chart's own"},
		"a runbook without scheme":   {bundled + "\nmonitoring: {rules: {runbookUrl: wiki}}", "runbookUrl"},
		"a selector in braces":       {bundled + "\nmonitoring: {rules: {selector: '{job=\"x\"}'}}", "selector"},
		"a value that is misspelt":   {bundled + "\nreplicas: 3", "dditional propert"},
		"one that is so deeper down": {bundled + "\napi: {replica: 3}", "dditional propert"},
		"no margin":                  {bundled + "\nterminationMarginSeconds: 0", "terminationMarginSeconds"},
		"a host instead of a URL":    {"redis: {url: 'redis:6379'}", "url"},
		"no Secret with keys":        {bundled + "\nsigningKeys: {existingSecret: ''}", "existingSecret"},
	} {
		t.Run(name, func(t *testing.T) {
			text := c[0]
			if strings.Count(text, "redis: {") > 1 {
				text = strings.TrimPrefix(text, bundled+"\n")
			}
			if _, err := template(t, "lubdub", text); err == nil || !strings.Contains(err.Error(), c[1]) {
				t.Errorf("%v, and not %q", err, c[1])
			}
		})
	}
}

// The default image is that of the release in the same repository.
func TestChartIsOfThisRelease(t *testing.T) {
	release := read(t, "../../cmd/lubdub/versioncmd.go")
	if meta := loadChart(t).Metadata; !strings.Contains(release, `const release = "`+meta.AppVersion+`"`) || meta.Version != meta.AppVersion {
		t.Errorf("the chart is %s, for %s", meta.Version, meta.AppVersion)
	}
}
