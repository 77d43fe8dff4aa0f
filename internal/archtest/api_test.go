package archtest

import (
	"slices"
	"strings"
	"testing"
)

// apiLayers are the packages of api from the bottom up: each may import those of the layers below it only, so that no resource knows
// another one, and the core knows none.
var apiLayers = [][]string{
	{"api/token", "api/internal/beatparse", "api/internal/conn", "api/internal/jsonscan", "api/internal/page"},
	{"api/oidc"},
	{"api/httpapi", "api/internal/evloop"},
	{"api/convert", "api/internal/beatbody"},
	{"api/beats", "api/events", "api/queues", "api/schedules", "api/system", "api/tasks", "api/webhooks", "api/workers"},
	{"api/exchange"},
	{"api"},
}

// layerOf returns the layer of a package of api, -1 for others.
func layerOf(path string) int {
	return slices.IndexFunc(apiLayers, func(layer []string) bool {
		return slices.Contains(layer, strings.TrimPrefix(path, module+"/"))
	})
}

func apiViolations(p pkg) (wrong []string) {
	if !within(p.ImportPath, "api") {
		return nil
	}
	layer := layerOf(p.ImportPath)
	if layer < 0 {
		return []string{p.ImportPath + " has no layer in api"}
	}
	for _, dep := range p.Imports {
		if within(dep, "api") && layerOf(dep) >= layer {
			wrong = append(wrong, p.ImportPath+" imports "+dep+": a package of api knows those of the layers below it only")
		}
		if dep == module+"/tracker" && p.ImportPath != module+"/api" {
			wrong = append(wrong, p.ImportPath+" imports "+dep+": it declares the part of a service that it needs")
		}
	}
	return wrong
}

func TestAPIPackagesImportOnlyLowerLayers(t *testing.T) {
	seen := map[string]bool{}
	for _, p := range list(t, "./api/...") {
		seen[strings.TrimPrefix(p.ImportPath, module+"/")] = true
		for _, w := range apiViolations(p) {
			t.Error(w)
		}
	}
	for _, layer := range apiLayers {
		for _, name := range layer {
			if !seen[name] {
				t.Errorf("%s does not exist", name)
			}
		}
	}
}

// The check must be able to fail.
func TestAPILayerRulesAreChecked(t *testing.T) {
	in := func(name string) string { return module + "/api/" + name }
	for _, p := range []pkg{
		{ImportPath: in("tasks"), Imports: []string{in("workers")}},
		{ImportPath: in("tasks"), Imports: []string{module + "/api"}},
		{ImportPath: in("httpapi"), Imports: []string{in("tasks")}},
		{ImportPath: in("httpapi"), Imports: []string{in("convert")}},
		{ImportPath: in("queues"), Imports: []string{module + "/tracker"}},
		{ImportPath: in("new")},
	} {
		if len(apiViolations(p)) == 0 {
			t.Errorf("%+v was let through", p)
		}
	}
}
