package archtest

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the table of packages into docs/architecture.md")

// trackerPackages are the packages of tracker from the bottom up: each may import those before it, except for separatePackages.
var trackerPackages = []string{"lane", "model", "schema", "store", "events", "webhooks", "beats", "quotas", "revocations", "holdings",
	"workers", "tasks", "queues", "stats", "schedules", "brake", "reconcile", "sweep"}

// separatePackages has pairs of packages that do not know each other though one is above the other.
var separatePackages = [][2]string{
	{"webhooks", "beats"}, {"webhooks", "quotas"}, {"webhooks", "holdings"}, {"webhooks", "workers"},
	{"webhooks", "tasks"}, {"webhooks", "queues"}, {"webhooks", "schedules"}, {"webhooks", "revocations"},
	{"events", "beats"}, {"events", "quotas"}, {"events", "holdings"}, {"events", "workers"}, {"events", "tasks"}, {"events", "queues"},
	{"revocations", "events"}, {"revocations", "beats"}, {"revocations", "quotas"}, {"revocations", "holdings"},
	{"revocations", "workers"}, {"revocations", "tasks"}, {"revocations", "queues"}, {"revocations", "sweep"},
	{"events", "schedules"},
	{"revocations", "stats"}, {"beats", "stats"}, {"quotas", "stats"}, {"holdings", "stats"}, {"stats", "tasks"},
	{"stats", "sweep"}, {"webhooks", "stats"}, {"stats", "schedules"},
	{"lane", "events"}, {"lane", "model"}, {"lane", "schema"}, {"beats", "quotas"}, {"quotas", "holdings"},
	{"beats", "queues"}, {"quotas", "queues"}, {"quotas", "sweep"}, {"queues", "sweep"},
	{"brake", "events"}, {"brake", "webhooks"}, {"brake", "quotas"}, {"brake", "revocations"}, {"brake", "holdings"}, {"brake", "tasks"},
	{"brake", "queues"}, {"brake", "stats"}, {"brake", "schedules"}, {"brake", "reconcile"},
	{"reconcile", "beats"}, {"reconcile", "events"}, {"reconcile", "quotas"}, {"reconcile", "revocations"}, {"reconcile", "queues"},
	{"reconcile", "stats"},
	{"beats", "schedules"}, {"quotas", "schedules"}, {"holdings", "schedules"}, {"workers", "schedules"}, {"queues", "schedules"},
}

// callers may import these packages: the services that they call, and their types. All others may import `tracker` only.
var callers = map[string][]string{
	// the codes of errors, and the contents of tokens
	"api/httpapi": {"beats", "events", "holdings", "model", "queues", "revocations", "schedules", "store", "webhooks", "workers"},
	"api/convert": {"events", "model", "queues"},
	// schema, since the front end packs a heartbeat's report while it reads it
	"api/internal/beatbody": {"holdings", "model", "schema"},
	"api/beats":             {"beats", "holdings", "model"},
	"api/events":            {"events"},
	"api/exchange":          {"holdings", "queues", "workers"},
	"api/queues":            {"model", "queues"},
	"api/schedules":         {"model", "schedules"},
	"api/system":            {"brake", "model", "queues", "revocations", "stats", "store", "sweep"},
	"api/tasks":             {"beats", "holdings", "model", "tasks"},
	"api/webhooks":          {"events", "model", "webhooks"},
	"api/workers":           {"holdings", "model", "workers"},

	"internal/config": {"model", "store"}, // defaults and bounds of settings
	"cmd/lubdub":      {"events", "model", "stats", "store", "sweep", "webhooks"},
}

func trackerPackage(path string) (string, bool) {
	return strings.CutPrefix(path, module+"/tracker/")
}

// trackerViolations returns which of a package's direct imports are forbidden.
func trackerViolations(p pkg) (wrong []string) {
	violation := func(dep, why string) { wrong = append(wrong, p.ImportPath+" imports "+dep+": "+why) }
	from, inside := trackerPackage(p.ImportPath)
	above := slices.Index(trackerPackages, from)
	for _, dep := range p.Imports {
		to, inTracker := trackerPackage(dep)
		below := slices.Index(trackerPackages, to)
		switch {
		case inside && dep == module+"/tracker" && from != "trackertest":
			violation(dep, "a package does not know tracker, which opens it")
		case inTracker && !inside && p.ImportPath != module+"/tracker" && !slices.Contains(callers[strings.TrimPrefix(p.ImportPath,
			module+"/")], to):
			violation(dep, "this caller may not import this package")
		case inside && from != "trackertest" && inTracker && (above < 0 || below < 0 || below >= above):
			violation(dep, "a package knows only those below it")
		case inside && inTracker && (slices.Contains(separatePackages, [2]string{to, from}) ||
			slices.Contains(separatePackages, [2]string{from, to})):
			violation(dep, "these two do not know each other")
		case inside && strings.HasPrefix(dep, "github.com/redis/") && from != "store" && from != "trackertest":
			violation(dep, "the store is the only package that knows go-redis")
		}
	}
	return wrong
}

func TestTrackerPackagesImportOnlyThoseBelow(t *testing.T) {
	seen := map[string]bool{}
	for _, p := range list(t, "./...") {
		if pkgName, ok := trackerPackage(p.ImportPath); ok {
			seen[pkgName] = true
		}
		for _, w := range trackerViolations(p) {
			t.Error(w)
		}
	}
	for pkgName := range seen {
		if !slices.Contains(trackerPackages, pkgName) && pkgName != "trackertest" {
			t.Errorf("%s is not in trackerPackages", pkgName)
		}
	}
	for _, pkgName := range trackerPackages {
		if !seen[pkgName] {
			t.Errorf("%s does not exist", pkgName)
		}
	}
}

// The check must be able to fail.
func TestTrackerPackageRulesAreChecked(t *testing.T) {
	in := func(pkgName string) string { return module + "/tracker/" + pkgName }
	for _, p := range []pkg{
		{ImportPath: in("beats"), Imports: []string{in("holdings")}},
		{ImportPath: in("queues"), Imports: []string{module + "/tracker"}},
		{ImportPath: in("queues"), Imports: []string{in("sweep")}},
		{ImportPath: in("sweep"), Imports: []string{in("queues")}},
		{ImportPath: in("schema"), Imports: []string{"github.com/redis/go-redis/v9"}},
		{ImportPath: in("new"), Imports: []string{in("store")}},
		{ImportPath: module + "/api", Imports: []string{in("lane")}},
		{ImportPath: module + "/internal/config", Imports: []string{in("tasks")}},
	} {
		if len(trackerViolations(p)) == 0 {
			t.Errorf("%+v was let through", p)
		}
	}
}

const (
	tableBegins = "<!-- rooms: written by `make generate` -->\n"
	tableEnds   = "<!-- end of rooms -->\n"
)

// The table of packages in docs/architecture.md is current.
func TestTrackerPackageTableIsCurrent(t *testing.T) {
	const document = "../../docs/architecture.md"
	text, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(text), tableBegins)
	_, after, closed := strings.Cut(rest, tableEnds)
	if !ok || !closed {
		t.Fatalf("%s has no place for the table", document)
	}
	want := before + tableBegins + trackerPackageTable(t) + tableEnds + after
	if *update {
		if err := os.WriteFile(document, []byte(want), 0o600); err != nil {
			t.Fatal(err)
		}
	} else if want != string(text) {
		t.Errorf("the table of packages in %s is not current: run make generate", document)
	}
}

func trackerPackageTable(t *testing.T) string {
	t.Helper()
	var table strings.Builder
	table.WriteString("| package | lines, about | knows | promise |\n| --- | --- | --- | --- |\n")
	for _, p := range list(t, "./tracker", "./tracker/...") {
		pkgName, inside := trackerPackage(p.ImportPath)
		if pkgName == "trackertest" {
			continue
		}
		name := "`tracker/" + pkgName + "`"
		if !inside {
			pkgName, name = "", "`tracker`"
		}
		var knows []string
		for _, dep := range p.Imports {
			if to, ok := trackerPackage(dep); ok {
				knows = append(knows, to)
			}
		}
		slices.SortFunc(knows, func(a, b string) int { return slices.Index(trackerPackages, b) - slices.Index(trackerPackages, a) })
		fmt.Fprintf(&table, "| %s | %d | %s | %s |\n", name, size(t, pkgName), strings.Join(knows, ", "), promise(t, pkgName))
	}
	return table.String()
}

// size is how many lines a package has without its tests, rounded up to the next hundred, so that the table changes seldom.
func size(t *testing.T, pkgName string) int {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("../../tracker", pkgName, "*.go"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%s: %v", pkgName, err)
	}
	lines := 0
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		lines += bytes.Count(text, []byte("\n"))
	}
	return (lines + 99) / 100 * 100
}

// promise is the package comment without the package's name.
func promise(t *testing.T, pkgName string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../../tracker", pkgName, "doc.go"))
	if err != nil {
		t.Fatal(err)
	}
	comment, _, ok := strings.Cut(string(text), "\npackage ")
	if !ok {
		t.Fatalf("%s has no package comment in doc.go", pkgName)
	}
	text2 := strings.Join(strings.Fields(strings.ReplaceAll(comment, "//", "")), " ")
	words := strings.SplitN(text2, " ", 3)
	return words[2]
}
