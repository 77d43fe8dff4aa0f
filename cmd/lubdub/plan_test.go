package main

import (
	"encoding/json"
	"flag"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/lubdub-io/lubdub/internal/capacity"
)

var updateCapacity = flag.Bool("update-capacity", false, "rewrite the plans in docs/capacity.md")

// A comment <!-- plan: ARGS --> is followed by what the command prints: plans as code, costs as the table that they are.
var planned = regexp.MustCompile("<!-- plan: (.*) -->\n(\n```\n\\$ [^`]*```\n|\n(?:Source: [^\n]*\n)?\n?(?:\\|[^\n]*\n)+)?")

func TestCapacityDocument(t *testing.T) {
	const path = "../../docs/capacity.md"
	document, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	blocks := 0
	fresh := planned.ReplaceAllStringFunc(string(document), func(old string) string {
		blocks++
		args := planned.FindStringSubmatch(old)[1]
		code, stdout, stderr := command(nil, append([]string{"plan"}, strings.Fields(args)...)...)
		if code != exitOK {
			t.Errorf("lubdub plan %s: %d %s", args, code, stderr)
		}
		if args == "--show-costs" {
			return "<!-- plan: " + args + " -->\n\n" + stdout
		}
		return "<!-- plan: " + args + " -->\n\n```\n$ lubdub plan " + args + "\n" + stdout + "```\n"
	})
	if blocks < 8 {
		t.Errorf("the document has only %d plans", blocks)
	}
	if fresh == string(document) {
		return
	}
	if !*updateCapacity {
		t.Fatal("docs/capacity.md shows other plans than 'lubdub plan' makes; run: go test ./cmd/lubdub -run Capacity -update-capacity")
	}
	if err := os.WriteFile(path, []byte(fresh), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestPlanCommandLine(t *testing.T) {
	for args, want := range map[string]string{
		"":                                     "say how many tasks there are, for example: lubdub plan --tasks 1M",
		"--tasks 10X":                          `--tasks "10X" is not a number: use 10000000, 10M or 1B`,
		"--tasks 1M --progress 120%":           `--progress "120%" is not a share`,
		"--tasks 1M --headroom all":            `--headroom "all" is not a share`,
		"--tasks 1M --redis-memory 32":         `--redis-memory "32" is not a size: use 32GiB or 512MiB`,
		"--tasks 1M --timeout 45s":             "shorter than two intervals of 30s",
		"--tasks 1M --way pigeon":              `"pigeon" is no way to beat: use single, batch or worker`,
		"--tasks 1M --way single --batch 10":   "choose the way batch, or worker",
		"--tasks 1M --batch 5000":              "a request takes 1 to 1000 beats",
		"--tasks 1M --interval 30":             "--interval",
		"--tasks 1M --costs /nowhere.json":     "no such file",
		"--tasks 1M --costs plan_test.go":      "not the output of 'lubdub-bench costs REPORT'",
		"--tasks 1M --batch 10 --headroom 95%": "a headroom of 0.95 is out of bounds",
	} {
		code, stdout, stderr := command(nil, append([]string{"plan"}, strings.Fields(args)...)...)
		if code != exitMistake || stdout != "" || !strings.Contains(stderr, want) {
			t.Errorf("plan %s: %d %q %q, want %q", args, code, stdout, stderr, want)
		}
	}
}

func TestPlanFlagsReachThePlan(t *testing.T) {
	plan := func(args string) (p capacity.Plan) {
		t.Helper()
		code, stdout, stderr := command(nil, append([]string{"plan", "--json"}, strings.Fields(args)...)...)
		if code != exitOK || stderr != "" {
			t.Fatalf("%d %s", code, stderr)
		}
		if err := json.Unmarshal([]byte(stdout), &p); err != nil {
			t.Fatal(err)
		}
		return p
	}
	base := plan("--tasks 10M")
	if base.BeatsPerSecond < 333_333 || base.BeatsPerSecond > 333_334 || base.TimeoutSeconds != 90 {
		t.Errorf("%+v", base)
	}
	for args, changed := range map[string]func(p capacity.Plan) bool{
		"--interval 60s": func(p capacity.Plan) bool { return p.BeatsPerSecond < base.BeatsPerSecond*0.6 },
		"--timeout 120s": func(p capacity.Plan) bool { return p.TimeoutSeconds == 120 },
		"--progress 0":   func(p capacity.Plan) bool { return p.RedisMicros < base.RedisMicros },
		"--batch 100":    func(p capacity.Plan) bool { return p.RequestsPerSecond < p.BeatsPerSecond/99 },
		"--way worker":   func(p capacity.Plan) bool { return p.BeatsPerSecond < base.BeatsPerSecond/99 },
		"--life 1h":      func(p capacity.Plan) bool { return p.RedisDataBytes > 20*base.RedisDataBytes },
		"--life 1h --idempotency-keys 0": func(p capacity.Plan) bool {
			return p.RedisDataBytes < plan("--tasks 10M --life 1h").RedisDataBytes
		},
		"--way worker --life 1h --claim-ids 0": func(p capacity.Plan) bool {
			return p.RedisDataBytes < plan("--tasks 10M --way worker --life 1h").RedisDataBytes
		},
		"--headroom 20%":          func(p capacity.Plan) bool { return p.RedisPrimaries < base.RedisPrimaries },
		"--redis-memory 1GiB":     func(p capacity.Plan) bool { return p.RedisBoundBy == "memory" },
		"--interval 1s --cores 1": func(p capacity.Plan) bool { return p.APIReplicas > plan("--tasks 10M --interval 1s").APIReplicas },
		"--round-trip 20ms":       func(p capacity.Plan) bool { return p.FlushWaitMs > 2*base.FlushWaitMs },
	} {
		if p := plan("--tasks 10M " + args); !changed(p) {
			t.Errorf("%s changes nothing: %+v", args, p)
		}
	}
}

func TestPlanByCostsOfAFile(t *testing.T) {
	_, built, _ := command(nil, "plan", "--tasks", "10M")
	code, own, stderr := command(nil, "plan", "--tasks", "10M", "--costs", "../../internal/capacity/costs.json")
	if code != exitOK || own != built {
		t.Errorf("%d %s\n%s\n%s", code, stderr, own, built)
	}
}
