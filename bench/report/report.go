// Package report is the result of a run of the benchmark: plain data, its JSON, the table, and the bars that it is compared with. It does
// not know how anything was measured.
package report

import (
	"fmt"
	"time"
)

// Version is the version of the JSON. It changes when the meaning of a field changes, not when a field is added.
const Version = 1

// Report is one run of the benchmark. Fields end in their unit; a number that could not be measured is null and never zero.
type Report struct {
	Version int `json:"version"`
	// Name is what the report's files are called where it is kept: day and commit, 2026-01-31-1a2b3c4. Empty when the
	// program does not know its commit.
	Name string `json:"name,omitempty"`
	// Command is the command line that made it.
	Command   string    `json:"command,omitempty"`
	StartedAt time.Time `json:"startedAt"`
	Seconds   float64   `json:"seconds"`
	// Complete is false when the run was interrupted or a scenario failed.
	Complete bool `json:"complete"`
	// Quick is true for a run with small counts and few rounds, whose numbers prove little.
	Quick bool `json:"quick"`

	Machine  Machine  `json:"machine"`
	Lubdub   Lubdub   `json:"lubdub"`
	Redis    Redis    `json:"redis"`
	Settings Settings `json:"settings"`

	// Bars are in the order in which they are to be shown.
	Bars []Bar `json:"bars"`
	// Scenarios are in the order in which they ran.
	Scenarios []Scenario `json:"scenarios"`
	// Notes tell what bears on the whole run: baselines that are missing, CPU that could not be read.
	Notes []string `json:"notes,omitempty"`
}

// Machine is where generator, servers and Redis ran, all together.
type Machine struct {
	OS          string `json:"os"`
	Arch        string `json:"arch"`
	Kernel      string `json:"kernel,omitempty"`
	CPU         string `json:"cpu,omitempty"`
	Cores       int    `json:"cores"`
	MemoryBytes int64  `json:"memoryBytes,omitempty"`
}

// String describes a machine, as far as it is known.
func (m *Machine) String() string {
	machine := fmt.Sprintf("%d cores, %s/%s", m.Cores, m.OS, m.Arch)
	if m.CPU != "" {
		machine += ", " + m.CPU
	}
	if m.MemoryBytes > 0 {
		machine += fmt.Sprintf(", %s GiB", Number(float64(m.MemoryBytes>>20)/1024))
	}
	return machine
}

// Lubdub is what was measured.
type Lubdub struct {
	Version string `json:"version"`
	// Commit that it was built from, in short.
	Commit string `json:"commit,omitempty"`
	Go     string `json:"go"`
	// URL of the deployment, when it was not started by the run.
	URL string `json:"url,omitempty"`
}

// Redis is the store that Lubdub and the baselines stood on.
type Redis struct {
	Version string `json:"version,omitempty"`
	// Private is true for processes that the run started: nothing on disk, loopback only.
	Private bool `json:"private"`
	// Settings are the arguments of private processes.
	Settings []string `json:"settings,omitempty"`
}

// Settings are the run's own.
type Settings struct {
	Scenarios   []string `json:"scenarios"`
	Connections int      `json:"connections"`
	ForSeconds  float64  `json:"forSeconds"`
	Rounds      int      `json:"rounds"`
	Tracked     int      `json:"tracked"`
	// RatePerSecond of open loops; 0: half of the top rate that was measured.
	RatePerSecond float64 `json:"ratePerSecond,omitempty"`
	// ServerCores are those of servers and Redis, GeneratorCores those of the generator; none: they shared all.
	ServerCores    []int `json:"serverCores,omitempty"`
	GeneratorCores []int `json:"generatorCores,omitempty"`
	// Baselines that were there.
	Baselines []string `json:"baselines"`
}

// Bar is a promise about speed or size and what became of it.
type Bar struct {
	// Name is stable, so that reports can be compared: single-cpu-vs-naive.
	Name string `json:"name"`
	What string `json:"what"`
	Unit string `json:"unit"` // ×, ms, s, bytes, beats/s
	// AtLeast is true where more is better.
	AtLeast  bool     `json:"atLeast"`
	Bar      float64  `json:"bar"`
	Aim      *float64 `json:"aim"`
	Measured *float64 `json:"measured"` // the median of Rounds
	// Rounds are the values of each round.
	Rounds  []float64 `json:"rounds,omitempty"`
	Verdict Verdict   `json:"verdict"`
	// Note says why it was not measured, or what to know about the number.
	Note string `json:"note,omitempty"`
}

// Verdict on a bar.
type Verdict string

const (
	Met         Verdict = "met"
	AimReached  Verdict = "aim reached"
	Missed      Verdict = "missed"
	NotMeasured Verdict = "not measured"
)

// Scenario is one kind of load and what was seen under it.
type Scenario struct {
	Name  string `json:"name"`
	Title string `json:"title"`
	About string `json:"about"`

	StartedAt time.Time `json:"startedAt"`
	Seconds   float64   `json:"seconds"`

	// Runs are the stretches of load in the order in which they ran: programs alternate within a round.
	Runs []Run `json:"runs,omitempty"`
	// Figures are single numbers.
	Figures []Figure `json:"figures,omitempty"`
	// Distributions are other than those of beats' latency, such as that of the detection lag.
	Distributions []Distribution `json:"distributions,omitempty"`
	// Failed is why the scenario did not come to its end.
	Failed string   `json:"failed,omitempty"`
	Notes  []string `json:"notes,omitempty"`
}

// Run is one stretch of load on one program.
type Run struct {
	// Program is lubdub, or a baseline: empty, naive, autopipeline, zadd, etcd.
	Program string `json:"program"`
	// Variant tells runs of one program in one scenario apart, such as "with progress"; often empty.
	Variant string `json:"variant,omitempty"`
	Round   int    `json:"round"` // from 1
	Loop    Loop   `json:"loop"`

	Connections int `json:"connections,omitempty"`
	// BeatsPerRequest is 1, or the items of a batch.
	BeatsPerRequest int `json:"beatsPerRequest,omitempty"`
	// Tracked is how many tasks the program tracks, whether they beat or not.
	Tracked int `json:"tracked,omitempty"`
	// TargetPerSecond is an open loop's.
	TargetPerSecond float64 `json:"targetPerSecond,omitempty"`

	Seconds float64 `json:"seconds"`
	// Beats counts those answered 200, and nothing else. (A life cycle's other calls are in Requests only.)
	Beats          int64   `json:"beats"`
	BeatsPerSecond float64 `json:"beatsPerSecond"`
	// Requests counts requests that were answered, whatever the answer.
	Requests int64 `json:"requests,omitempty"`
	// NotOK counts everything else by HTTP status, or by what went wrong on the connection.
	NotOK map[string]int64 `json:"notOk,omitempty"`

	// ServerMicros, RedisMicros and GeneratorMicros are CPU per beat, in µs.
	ServerMicros    *float64 `json:"serverMicrosPerBeat"`
	RedisMicros     *float64 `json:"redisMicrosPerBeat"`
	GeneratorMicros *float64 `json:"generatorMicrosPerBeat,omitempty"`
	// FlushBeats is how many beats one round trip to Redis carried on the average, as Lubdub's metrics tell.
	FlushBeats *float64 `json:"flushBeats,omitempty"`

	// Latency of requests: of an open loop from the intended start, of a closed one from the actual.
	Latency *Quantiles `json:"latency,omitempty"`
	// Lateness is how long after the intended start an open loop sent: the generator's own part of the latency,
	// and the wait for the connection's answer before.
	Lateness *Quantiles `json:"lateness,omitempty"`
	// OwnLateness is the generator's own part, without that wait.
	OwnLateness *Quantiles `json:"ownLateness,omitempty"`
}

// Loop is how the generator decides when to send.
type Loop string

const (
	// Closed sends on each connection as soon as its last answer is there: the top rate.
	Closed Loop = "closed"
	// Open sends by a schedule that does not wait for answers: the latency at a rate.
	Open Loop = "open"
)

// Quantiles of a distribution, in ms.
type Quantiles struct {
	Count  int64   `json:"count"`
	MeanMs float64 `json:"meanMs"`
	MinMs  float64 `json:"minMs"`
	P50Ms  float64 `json:"p50Ms"`
	P90Ms  float64 `json:"p90Ms"`
	P99Ms  float64 `json:"p99Ms"`
	P999Ms float64 `json:"p999Ms"`
	MaxMs  float64 `json:"maxMs"`
}

// Figure is one number.
type Figure struct {
	Name  string  `json:"name"` // fixed
	What  string  `json:"what"`
	Value float64 `json:"value"`
	Unit  string  `json:"unit"`
	// Group gathers figures that are parts of one thing, such as the Redis memory of a task by kind of key.
	Group string `json:"group,omitempty"`
}

// Distribution of something else than latency.
type Distribution struct {
	Name      string    `json:"name"`
	What      string    `json:"what"`
	Quantiles Quantiles `json:"quantiles"`
}
