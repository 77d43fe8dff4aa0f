package schema

import (
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/lubdub-io/lubdub/tracker/model"
)

// The reply codes of scripts are defined twice, in Lua and in Go.
func TestCodesMatchLua(t *testing.T) {
	var names, values []string
	for _, file := range []string{"codes.lua", "workercodes.lua"} {
		text, err := os.ReadFile("../../lua/lib/" + file)
		if err != nil {
			t.Fatal(err)
		}
		m := regexp.MustCompile(`(?m)^local ([A-Z_, ]+) = ([0-9, ]+)$`).FindStringSubmatch(string(text))
		if m == nil {
			t.Fatalf("lib/%s has no line of codes", file)
		}
		names, values = append(names, strings.Split(m[1], ", ")...), append(values, strings.Split(m[2], ", ")...)
	}
	want := map[string]int64{
		"OK": CodeOK, "MISMATCH": CodeMismatch, "ENDED": CodeEnded, "TERMINAL": CodeTerminal, "NOT_FOUND": CodeNotFound,
		"EXISTS": CodeExists, "REPEATED": CodeRepeated, "REFUSED": CodeRefused, "KEY_KNOWN": CodeKeyKnown,
		"OFFLINE": CodeOffline, "DRAINING": CodeDraining,
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
		"lib/task.lua": {"local MAX_HISTORY = " + strconv.Itoa(model.MaxHistory)},
	} {
		text, err := os.ReadFile("../../lua/" + file)
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
		count[ShardOf(shards, model.Scope{Tenant: "acme", Workspace: "prod"}, "task_"+strconv.Itoa(i))]++
	}
	for s, c := range count {
		if c < n/shards*8/10 || c > n/shards*12/10 {
			t.Errorf("shard %d holds %d of %d tasks", s, c, n)
		}
	}
	// Part of the stored format: a change here loses every stored task.
	if got := ShardOf(16, model.Scope{Tenant: "default", Workspace: "default"}, "task_1"); got != pinnedShard {
		t.Errorf("shardOf changed: %d", got)
	}
}

const pinnedShard = 10

func TestReportRoundTrip(t *testing.T) {
	for _, r := range []model.Report{
		{}, {WorkerID: "w"}, {ReportedAt: ParseMillis("1768471200123"), WorkerID: "w",
			Progress: model.Progress{Pct: "45.5", Message: `"a\tb"`}}, {Progress: model.Progress{Pct: "0"}},
	} {
		if got := UnpackReport(PackReport(r)); got != r {
			t.Errorf("%+v became %+v", r, got)
		}
	}
	if PackReport(model.Report{}) != "" {
		t.Error("an empty report packs to something")
	}
}

func TestNamesSplit(t *testing.T) {
	scope := model.Scope{Tenant: "acme", Workspace: "prod"}
	for _, name := range []string{TaskName(scope, "t.1"), MemberName(scope, "t.1", 3, "a-_9")} {
		if s, id, ok := SplitName(name); !ok || s != scope || id != "t.1" {
			t.Errorf("%s: %v %s %v", name, s, id, ok)
		}
	}
	if _, _, ok := SplitName("!"); ok {
		t.Error("the sentinel is no task")
	}
	if RunOf(strings.Repeat("x", 125)) != "" || RunOf("task_1") != "run_1" || RunOf("a") != "run_a" {
		t.Error("runOf")
	}
}
