package costs

import (
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/lubdub-io/lubdub/bench/report"
	"github.com/lubdub-io/lubdub/internal/capacity"
)

func f64(v float64) *float64 { return &v }

func testReport() *report.Report {
	run := func(program, variant string, beats, tracked int, server, redis float64) report.Run {
		return report.Run{Program: program, Variant: variant, Loop: report.Closed, BeatsPerRequest: beats, Tracked: tracked,
			ServerMicros: f64(server), RedisMicros: f64(redis)}
	}
	return &report.Report{
		Version: report.Version, Complete: true, Machine: report.Machine{Cores: 2, OS: "linux", Arch: "amd64", CPU: "x"},
		Redis: report.Redis{Version: "7.0.15"}, Lubdub: report.Lubdub{Version: "v1"},
		Scenarios: []report.Scenario{
			{Name: "single", Runs: []report.Run{
				run("lubdub", "", 1, 0, 12, 5), run("naive", "", 1, 0, 30, 15), run("lubdub", "", 1, 0, 10, 4), run("lubdub", "", 1, 0, 9, 3.0004),
			}},
			{Name: "batch", Runs: []report.Run{run("lubdub", "single", 1, 0, 10, 4), run("lubdub", "batch", 100, 0, 1.5, 3)}},
			{Name: "floor", Runs: []report.Run{run("lubdub", "bare", 100, 0, 2, 2.5), run("lubdub", "with progress", 100, 0, 2.4, 3.7)}},
			{Name: "growth", Runs: []report.Run{run("lubdub", "few", 1, 10_000, 10, 4), run("lubdub", "many", 1, 1_000_000, 9, 6)}},
			{Name: "populate", Figures: []report.Figure{{Name: "redis-bytes-per-task", Value: 612.34, Unit: "bytes"}}},
			{Name: "lifecycle", Figures: []report.Figure{{Name: "life-cycle-server-cpu", Value: 130, Unit: "µs"},
				{Name: "life-cycle-redis-cpu", Value: 62, Unit: "µs"}}},
			{Name: "deaths", Figures: []report.Figure{{Name: "handled", Value: 2, Unit: "s"}},
				Distributions: []report.Distribution{{Name: "mass-detection-lag", Quantiles: report.Quantiles{Count: 100_000}}}},
			{Name: "worker-beat", Runs: []report.Run{
				run("lubdub", "holds 1 task", 1, 1, 70, 40), run("lubdub", "many workers", 1, 0, 60, 30), run("lubdub", "many workers", 1, 0, 62, 32),
			}},
			{Name: "replica", Figures: []report.Figure{{Name: "rss", Value: 40, Unit: "MiB"}, {Name: "rss-tokens", Value: 100, Unit: "MiB"},
				{Name: "rss-connections", Value: 200, Unit: "MiB"}}},
		},
	}
}

func TestFromReport(t *testing.T) {
	c, err := FromReport("x.json", testReport())
	if err != nil {
		t.Fatal(err)
	}
	each := func(beats int, server, redis float64) capacity.Cost {
		return capacity.Cost{Beats: beats, Share: capacity.Share{ServerMicros: server, RedisMicros: redis}}
	}
	worker := each(1, 61, 31)
	want := capacity.Costs{
		Source: "x.json", Machine: "2 cores, linux/amd64, x, Redis 7.0.15, Lubdub v1",
		Single: each(1, 10, 4), Batch: each(100, 1.5, 3), Worker: &worker, Progress: capacity.Share{ServerMicros: 0.4, RedisMicros: 1.2},
		Growth:      capacity.Growth{FromTasks: 10_000, ToTasks: 1_000_000, Server: 1, Redis: 1.5},
		FlushMicros: 11, TaskBytes: 612, LifeServerMicros: 100, LifeRedisMicros: 50, DeathsPerSecond: 50_000,
		ReplicaBytes: 41_900_000, TokenBytes: 1050, ConnectionBytes: 21_000,
	}
	if !reflect.DeepEqual(*c, want) {
		t.Errorf("%+v\nwant %+v", *c, want)
	}
}

// Whatever is taken away, something is missed: nothing is skipped in silence.
func TestFromReportSkipsNothing(t *testing.T) {
	for i, s := range testReport().Scenarios {
		r := testReport()
		r.Scenarios = append(r.Scenarios[:i:i], r.Scenarios[i+1:]...)
		if _, err := FromReport("x.json", r); err == nil || !strings.Contains(err.Error(), s.Name) {
			t.Errorf("without %s: %v", s.Name, err)
		}
		for j := range s.Figures {
			r := testReport()
			r.Scenarios[i].Figures[j].Unit = "furlongs"
			if _, err := FromReport("x.json", r); err == nil || !strings.Contains(err.Error(), s.Figures[j].Name) {
				t.Errorf("without %s: %v", s.Figures[j].Name, err)
			}
		}
		for j := range s.Runs {
			if v := s.Runs[j].Variant; v == "single" || v == "holds 1 task" {
				continue // others are read
			}
			r := testReport()
			r.Scenarios[i].Runs[j].RedisMicros = nil
			if _, err := FromReport("x.json", r); err == nil || !strings.Contains(err.Error(), "no CPU of") {
				t.Errorf("without Redis's CPU in %s: %v", s.Name, err)
			}
		}
	}
	r := testReport()
	r.Complete = false
	if _, err := FromReport("x.json", r); err == nil {
		t.Error("an interrupted run was taken")
	}
	r = testReport()
	r.Scenarios[3].Runs[1].Tracked = 10_000
	if _, err := FromReport("x.json", r); err == nil || !strings.Contains(err.Error(), "give more with --tracked") {
		t.Errorf("growth of nothing: %v", err)
	}
	r = testReport()
	r.Quick = true
	if c, err := FromReport("x.json", r); err != nil || !c.Provisional {
		t.Errorf("a quick run: %+v %v", c, err)
	}
}

// The costs that are built in are those of the committed result.
func TestBuiltInCostsAreThoseOfTheResult(t *testing.T) {
	built, err := capacity.Default()
	if err != nil {
		t.Fatal(err)
	}
	path, result, err := report.Newest("../results")
	if err != nil || result == nil {
		t.Fatalf("no result: %v", err)
	}
	path = "bench/results/" + filepath.Base(path)
	from, err := FromReport(path, result)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(built, from) {
		t.Errorf("costs.json has the source %s; from the repository's root run: go run ./cmd/lubdub-bench costs %s > "+
			"internal/capacity/costs.json, and go test ./cmd/lubdub -run Capacity -update-capacity", built.Source, path)
	}
}
