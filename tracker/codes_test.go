package tracker

import (
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// The integers that scripts answer are written twice, in Lua and in Go.
func TestCodesMatchLua(t *testing.T) {
	text, err := os.ReadFile("../lua/lib/codes.lua")
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`(?m)^local ([A-Z_, ]+) = ([0-9, ]+)$`).FindStringSubmatch(string(text))
	if m == nil {
		t.Fatal("lib/codes.lua has no line of codes")
	}
	names, values := strings.Split(m[1], ", "), strings.Split(m[2], ", ")
	want := map[string]int64{
		"OK": codeOK, "MISMATCH": codeMismatch, "ENDED": codeEnded, "TERMINAL": codeTerminal, "NOT_FOUND": codeNotFound,
		"EXISTS": codeExists, "REPEATED": codeRepeated, "REFUSED": codeRefused,
	}
	if len(names) != len(want) || len(values) != len(names) {
		t.Fatalf("%d names, %d values, want %d", len(names), len(values), len(want))
	}
	for i, name := range names {
		v, _ := strconv.ParseInt(values[i], 10, 64)
		if w, ok := want[name]; !ok || w != v {
			t.Errorf("%s is %d in Lua and %d in Go", name, v, w)
		}
	}
}

func TestConstantsMatchLua(t *testing.T) {
	for file, lines := range map[string][]string{
		"lib/clock.lua": {"local MAX_STEP_MS = " + strconv.Itoa(maxStepMs)},
		"lib/task.lua":  {"local MAX_HISTORY = " + strconv.Itoa(MaxHistory)},
	} {
		text, err := os.ReadFile("../lua/" + file)
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range lines {
			if !strings.Contains(string(text), line) {
				t.Errorf("%s has no line %q", file, line)
			}
		}
	}
}

func TestShardOfSpreads(t *testing.T) {
	const shards, n = 16, 16000
	var count [shards]int
	for i := range n {
		count[shardOf(shards, Scope{"acme", "prod"}, "task_"+strconv.Itoa(i))]++
	}
	for s, c := range count {
		if c < n/shards*8/10 || c > n/shards*12/10 {
			t.Errorf("shard %d holds %d of %d tasks", s, c, n)
		}
	}
	// Part of the stored layout: a change here loses every stored task.
	if got := shardOf(16, Scope{"default", "default"}, "task_1"); got != pinnedShard {
		t.Errorf("shardOf changed: %d", got)
	}
}

const pinnedShard = 10

func TestReportRoundTrip(t *testing.T) {
	for _, r := range []Report{
		{}, {WorkerID: "w"}, {ReportedAt: parseMs("1768471200123"), WorkerID: "w", Progress: Progress{"45.5", `"a\tb"`}}, {Progress: Progress{Pct: "0"}},
	} {
		if got := unpackReport(r.pack()); got != r {
			t.Errorf("%+v became %+v", r, got)
		}
	}
	if (Report{}).pack() != "" {
		t.Error("an empty report packs to something")
	}
}

func TestRedactURL(t *testing.T) {
	for in, want := range map[string]string{
		"redis://127.0.0.1:6379/0":           "redis://127.0.0.1:6379/0",
		"redis://u:secret@h:1/0":             "redis://u:***@h:1/0",
		"redis+sentinel://:p@ss@h:1,g:2/m/0": "redis+sentinel://:***@h:1,g:2/m/0",
	} {
		if got := redactURL(in); got != want {
			t.Errorf("%s became %s, want %s", in, got, want)
		}
	}
}

func TestNamesSplit(t *testing.T) {
	scope := Scope{"acme", "prod"}
	for _, name := range []string{taskName(scope, "t.1"), memberName(scope, "t.1", 3, "a-_9")} {
		if s, id, ok := splitName(name); !ok || s != scope || id != "t.1" {
			t.Errorf("%s: %v %s %v", name, s, id, ok)
		}
	}
	if _, _, ok := splitName("!"); ok {
		t.Error("the sentinel is no task")
	}
	if runOf(strings.Repeat("x", 125)) != "" || runOf("task_1") != "run_1" || runOf("a") != "run_a" {
		t.Error("runOf")
	}
}

func TestRank(t *testing.T) {
	ids := []string{"swp_a", "swp_b", "swp_c"}
	for shard := range 64 {
		seen := map[int]bool{}
		for _, id := range ids {
			seen[(&Sweeper{id: id}).rank(shard, ids)] = true
		}
		if len(seen) != 3 || !seen[0] {
			t.Fatalf("shard %d: ranks %v", shard, seen)
		}
	}
}
