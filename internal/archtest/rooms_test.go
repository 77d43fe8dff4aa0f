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

var update = flag.Bool("update", false, "write the table of rooms into docs/architecture.md")

// rooms are the packages of tracker from the bottom up: each may know those before it, but for what `apart` says.
var rooms = []string{"lane", "model", "schema", "store", "events", "webhooks", "beats", "quotas", "revocations", "holdings", "workers",
	"tasks", "queues", "stats", "schedules", "brake", "reconcile", "sweep"}

// apart has pairs of rooms that do not know each other though one stands above the other.
var apart = [][2]string{
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

// callers may import these rooms: the services that they call, and the types in which they speak. What is not here has `tracker` only.
var callers = map[string][]string{
	// the codes of errors, and what tokens stand for
	"api/httpapi": {"beats", "events", "holdings", "model", "queues", "revocations", "schedules", "store", "webhooks", "workers"},
	"api/convert": {"events", "model", "queues"},
	// schema, since the front end packs a heartbeat's report while it reads it
	"api/internal/beatbody": {"model", "schema"},
	"api/beats":             {"beats", "holdings", "model"},
	"api/events":            {"events"},
	"api/queues":            {"model", "queues"},
	"api/schedules":         {"model", "schedules"},
	"api/system":            {"brake", "model", "queues", "revocations", "stats", "store", "sweep"},
	"api/tasks":             {"model", "tasks"},
	"api/webhooks":          {"events", "model", "webhooks"},
	"api/workers":           {"holdings", "model", "schema", "workers"},

	"internal/config": {"model", "store"}, // defaults and bounds of settings
	"cmd/lubdub":      {"events", "model", "stats", "store", "sweep", "webhooks"},
}

func roomOf(path string) (string, bool) {
	return strings.CutPrefix(path, module+"/tracker/")
}

// roomViolations tells what of a package's direct imports the rooms forbid.
func roomViolations(p pkg) (wrong []string) {
	say := func(dep, why string) { wrong = append(wrong, p.ImportPath+" imports "+dep+": "+why) }
	from, inside := roomOf(p.ImportPath)
	above := slices.Index(rooms, from)
	for _, dep := range p.Imports {
		to, isRoom := roomOf(dep)
		below := slices.Index(rooms, to)
		switch {
		case inside && dep == module+"/tracker" && from != "trackertest":
			say(dep, "a room does not know what opens it")
		case isRoom && !inside && p.ImportPath != module+"/tracker" && !slices.Contains(callers[strings.TrimPrefix(p.ImportPath,
			module+"/")], to):
			say(dep, "this caller has no use for this room")
		case inside && from != "trackertest" && isRoom && (above < 0 || below < 0 || below >= above):
			say(dep, "a room knows those below it only")
		case inside && isRoom && (slices.Contains(apart, [2]string{to, from}) || slices.Contains(apart, [2]string{from, to})):
			say(dep, "these two do not know each other")
		case inside && strings.HasPrefix(dep, "github.com/redis/") && from != "store" && from != "trackertest":
			say(dep, "the store is the only room that knows go-redis")
		}
	}
	return wrong
}

func TestRoomsKnowThoseBelowThem(t *testing.T) {
	seen := map[string]bool{}
	for _, p := range list(t, "./...") {
		if room, ok := roomOf(p.ImportPath); ok {
			seen[room] = true
		}
		for _, w := range roomViolations(p) {
			t.Error(w)
		}
	}
	for room := range seen {
		if !slices.Contains(rooms, room) && room != "trackertest" {
			t.Errorf("%s has no place among the rooms", room)
		}
	}
	for _, room := range rooms {
		if !seen[room] {
			t.Errorf("%s is not there", room)
		}
	}
}

// The check must be able to fail.
func TestRoomsAreChecked(t *testing.T) {
	in := func(room string) string { return module + "/tracker/" + room }
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
		if len(roomViolations(p)) == 0 {
			t.Errorf("%+v was let through", p)
		}
	}
}

const (
	tableBegins = "<!-- rooms: written by `make generate` -->\n"
	tableEnds   = "<!-- end of rooms -->\n"
)

// The table of rooms in docs/architecture.md is what they are.
func TestTheTableOfRoomsIsTrue(t *testing.T) {
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
	want := before + tableBegins + roomTable(t) + tableEnds + after
	if *update {
		if err := os.WriteFile(document, []byte(want), 0o600); err != nil {
			t.Fatal(err)
		}
	} else if want != string(text) {
		t.Errorf("the table of rooms in %s is not current: run make generate", document)
	}
}

func roomTable(t *testing.T) string {
	t.Helper()
	var table strings.Builder
	table.WriteString("| room | lines, about | knows | promise |\n| --- | --- | --- | --- |\n")
	for _, p := range list(t, "./tracker", "./tracker/...") {
		room, inside := roomOf(p.ImportPath)
		if room == "trackertest" {
			continue
		}
		name := "`tracker/" + room + "`"
		if !inside {
			room, name = "", "`tracker`"
		}
		var knows []string
		for _, dep := range p.Imports {
			if to, ok := roomOf(dep); ok {
				knows = append(knows, to)
			}
		}
		slices.SortFunc(knows, func(a, b string) int { return slices.Index(rooms, b) - slices.Index(rooms, a) })
		fmt.Fprintf(&table, "| %s | %d | %s | %s |\n", name, size(t, room), strings.Join(knows, ", "), promise(t, room))
	}
	return table.String()
}

// size is how many lines a room has without its tests, to the next hundred, so that the table changes seldom.
func size(t *testing.T, room string) int {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("../../tracker", room, "*.go"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%s: %v", room, err)
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

// promise is the package comment of a room without its name.
func promise(t *testing.T, room string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../../tracker", room, "doc.go"))
	if err != nil {
		t.Fatal(err)
	}
	comment, _, ok := strings.Cut(string(text), "\npackage ")
	if !ok {
		t.Fatalf("%s has no package comment in doc.go", room)
	}
	said := strings.Join(strings.Fields(strings.ReplaceAll(comment, "//", "")), " ")
	words := strings.SplitN(said, " ", 3)
	return words[2]
}
