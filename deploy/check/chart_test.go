package check

import (
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
	all, err := chartutil.ToRenderValues(c, values(t, text), chartutil.ReleaseOptions{Name: release, Namespace: "ns", Revision: 1, IsInstall: true},
		chartutil.DefaultCapabilities)
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

// The chart over a table of values: `helm lint` finds nothing, and what `helm template` makes of them fits together and fits the
// program.
func TestChart(t *testing.T) {
	for name, c := range map[string]struct {
		release, values string
		look            func(t *testing.T, o *objects)
	}{
		"a Redis of its own":                  {"lubdub", bundled, func(t *testing.T, o *objects) { count(t, o, 3, 2, 1, 3, 0) }},
		"Redis elsewhere":                     {"x", "redis: {url: 'redis+sentinel://s1:26379,s2:26379/main/0'}", func(t *testing.T, o *objects) { count(t, o, 2, 2, 1, 2, 0) }},
		"Redis by a Secret and TLS":           {"lubdub", "redis: {existingSecret: r, caSecret: ca}", nil},
		"a release with a long name":          {strings.Repeat("long-", 10) + "rel", bundled, nil},
		"another name":                        {"lubdub", bundled + "\nfullnameOverride: beats\nnameOverride: hb", nil},
		"settings, and longer stops":          {"lubdub", bundled + "\nconfig: {durability: fsync, log-level: debug}\ndrainDelaySeconds: 60\nshutdownTimeoutSeconds: 90", nil},
		"no drain delay to speak of":          {"lubdub", bundled + "\nshutdownTimeoutSeconds: 1\nterminationMarginSeconds: 1", nil},
		"TLS, and behind an ingress":          {"lubdub", bundled + "\ntls: {existingSecret: t}\ningress: {enabled: true, className: nginx, hosts: [a.example.com, b.example.com], tlsSecret: i}", func(t *testing.T, o *objects) { count(t, o, 3, 2, 1, 3, 1) }},
		"an ingress for every host":           {"lubdub", bundled + "\ningress: {enabled: true}", nil},
		"nothing that is optional":            {"lubdub", bundled + "\nnetworkPolicy: {enabled: false}\npodDisruptionBudget: {enabled: false}\napi: {autoscaling: {enabled: false}, replicas: 3}\nserviceAccount: {create: false}", func(t *testing.T, o *objects) { count(t, o, 3, 0, 0, 0, 0) }},
		"closed on all sides":                 {"lubdub", "redis: {url: 'rediss+cluster://c:6379'}\nnetworkPolicy: {apiFrom: [{podSelector: {matchLabels: {a: b}}}], redisTo: [{ipBlock: {cidr: 10.0.0.0/8}}], redisPorts: [6379, 16379], webhookTo: [], metricsFrom: []}", nil},
		"labels, annotations and places":      {"lubdub", bundled + "\napi: {podLabels: {team: x}, podAnnotations: {a: b}, nodeSelector: {disk: ssd}, tolerations: [{key: k, operator: Exists}], affinity: {podAntiAffinity: {}}}\nsweeper: {podLabels: {team: x}}\nservice: {type: LoadBalancer, port: 80, annotations: {a: b}}\nserviceAccount: {name: mine, annotations: {a: b}}\nimage: {repository: r/lubdub, tag: '1', pullSecrets: [{name: s}]}", nil},
		"a public URL and a class of storage": {"lubdub", "redis: {bundled: {enabled: true, storageClassName: fast, storage: 1Gi}}\npublicUrl: https://lubdub.example.com", nil},
	} {
		t.Run(name, func(t *testing.T) {
			for _, m := range lint.All(chartDir, values(t, c.values), "ns", true).Messages {
				if m.Severity > support.InfoSev {
					t.Error(m)
				}
			}
			files, err := template(t, c.release, c.values)
			if err != nil {
				t.Fatal(err)
			}
			o := decoded(t, files)
			o.fit(t)
			if c.look != nil {
				c.look(t, o)
			}
		})
	}
}

func count(t *testing.T, o *objects, workloads, budgets, autoscalers, policies, ingresses int) {
	t.Helper()
	if len(o.workloads) != workloads || len(o.budgets) != budgets || len(o.autoscalers) != autoscalers || len(o.policies) != policies ||
		len(o.ingresses) != ingresses {
		t.Errorf("%d workloads, %d budgets, %d autoscalers, %d policies, %d ingresses", len(o.workloads), len(o.budgets), len(o.autoscalers),
			len(o.policies), len(o.ingresses))
	}
}

// Values that mean nothing, or two things, are refused in words.
func TestChartRefuses(t *testing.T) {
	for name, c := range map[string][2]string{
		"no Redis":                   {"", "say where Redis is"},
		"two of them":                {bundled + "\nredis: {url: 'redis://r:6379/0', bundled: {enabled: true}}", "2 are set"},
		"a setting that follows":     {bundled + "\nconfig: {drain-delay: 1s}", "config.drain-delay is the chart's own"},
		"a setting that is a secret": {bundled + "\nconfig: {redis: redis://r:6379/0}", "config.redis is the chart's own"},
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

// What is installed by default is the release beside it.
func TestChartIsOfThisRelease(t *testing.T) {
	release := read(t, "../../cmd/lubdub/versioncmd.go")
	if meta := loadChart(t).Metadata; !strings.Contains(release, `const release = "`+meta.AppVersion+`"`) || meta.Version != meta.AppVersion {
		t.Errorf("the chart is %s, for %s", meta.Version, meta.AppVersion)
	}
}
