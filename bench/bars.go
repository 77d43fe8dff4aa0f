package bench

import (
	"slices"

	"github.com/lubdub-io/lubdub/bench/report"
)

// bars are the promises about speed and size, in the order of the table. A scenario that measures one gives its
// values, one for each round.
func bars() []report.Bar {
	aim := func(v float64) *float64 { return &v }
	return []report.Bar{
		{Name: "single-cpu-vs-naive", What: "single beat: CPU of server and Redis, to that of the naive way", Unit: "×", Bar: 0.24,
			Aim: aim(0.19)},
		{Name: "single-cpu-vs-autopipeline", What: "single beat: CPU of server and Redis, to that of go-redis AutoPipeline", Unit: "×", Bar: 0.45,
			Aim: aim(0.36)},
		{Name: "frontend-cpu-vs-empty", What: "single beat: CPU of the server, to that of an empty fasthttp handler", Unit: "×", Bar: 1.15,
			Aim: aim(0.95)},
		{Name: "single-rate-vs-empty", What: "single beat: top rate, to that of an empty fasthttp handler", Unit: "×", AtLeast: true, Bar: 0.62,
			Aim: aim(0.75)},
		{Name: "paced-10k-cpu-vs-autopipeline", What: "10,000 beats/s over 1,000 connections: CPU of server and Redis, to that of AutoPipeline",
			Unit: "×", Bar: 0.75, Aim: aim(0.5)},
		{Name: "paced-25k-cpu-vs-autopipeline", What: "25,000 beats/s: the same", Unit: "×", Bar: 0.65, Aim: aim(0.5)},
		{Name: "paced-50k-cpu-vs-autopipeline", What: "50,000 beats/s: the same", Unit: "×", Bar: 0.65, Aim: aim(0.5)},
		{Name: "paced-10k-p99", What: "p99 of a single beat at 10,000 beats/s", Unit: "ms", Bar: 8},
		{Name: "paced-25k-p99", What: "p99 of a single beat at 25,000 beats/s", Unit: "ms", Bar: 8},
		{Name: "paced-50k-p99", What: "p99 of a single beat at 50,000 beats/s", Unit: "ms", Bar: 8},
		{Name: "redis-cpu-vs-zadd", What: "batches of 100: CPU of Redis per beat, to that of a bulk ZADD", Unit: "×", Bar: 1.4, Aim: aim(1.2)},
		{Name: "redis-cpu-vs-zadd-progress", What: "the same, each beat with its progress", Unit: "×", Bar: 2, Aim: aim(1.6)},
		{Name: "batch-rate", What: "batch endpoint: top rate", Unit: "beats/s", AtLeast: true, Bar: 250_000, Aim: aim(400_000)},
		{Name: "batch-rate-vs-single", What: "batch endpoint: top rate, to that of single beats", Unit: "×", AtLeast: true, Bar: 3},
		{Name: "connections-rss", What: "memory of the server with 100,000 connections that beat every 10 s", Unit: "MB", Bar: 300,
			Aim: aim(150)},
		{Name: "connections-cpu", What: "single beat over these: CPU of server and Redis, to that over 1,000 at the same rate", Unit: "×",
			Bar: 1.5, Aim: aim(1.2)},
		{Name: "growth", What: "single beat: CPU of server and Redis with all tracked tasks, to that with 10,000", Unit: "×", Bar: 1.5},
		{Name: "detection-lag-p99", What: "detection lag with all tracked tasks, p99", Unit: "ms", Bar: 100, Aim: aim(50)},
		{Name: "mass-death-at-rest", What: "100,000 simultaneous deaths, nobody beats: from the first due to the last verdict", Unit: "s", Bar: 5,
			Aim: aim(3)},
		{Name: "mass-death", What: "the same beside beats at half of the top rate", Unit: "s", Bar: 8, Aim: aim(5)},
		{Name: "redis-bytes-per-task", What: "Redis memory of a running task", Unit: "bytes", Bar: 800, Aim: aim(500)},
		{Name: "worker-beat", What: "a worker's beat that holds 10,000 tasks: CPU of server and Redis, to one that holds 1", Unit: "×", Bar: 1.5},
		{Name: "claim-rate", What: "claims of 100 workers, one task a request", Unit: "tasks/s", AtLeast: true, Bar: 1000},
		{Name: "claim-latency-p99", What: "claims of 10 workers: p99", Unit: "ms", Bar: 50},
		{Name: "sdk-noop-1", What: "a claimed task with nothing to do, one at a time: CPU of the Go SDK, to that of a bare client",
			Unit: "×", Bar: 3},
		{Name: "sdk-noop-100", What: "the same, 100 at a time", Unit: "×", Bar: 3},
		{Name: "pollers", What: "1,000 idle long-pollers: CPU of server and Redis above that at rest", Unit: "% of a core", Bar: 2},
		{Name: "streams", What: "single beat beside 10,000 streams of events: CPU of server and Redis above that without", Unit: "%", Bar: 2},
		{Name: "event-p99", What: "from an event to a listener at 5,000 transitions a second: p99", Unit: "ms", Bar: 250},
		{Name: "webhooks", What: "deliveries to one webhook by one sweeper", Unit: "deliveries/s", AtLeast: true, Bar: 1000},
		{Name: "beside-schedules", What: "p99 of a single beat while 1,200 schedules catch up, to that alone", Unit: "×", Bar: 1.5},
		{Name: "recovery", What: "a dead worker's 10,000 tasks: from its verdict until the last is requeued", Unit: "s", Bar: 2},
		{Name: "beside-polls", What: "p99 of a single beat beside 1,000 long polls, to that alone", Unit: "×", Bar: 1.5},
		{Name: "beside-bodies", What: "p99 of a single beat beside 100 slow bodies, to that alone", Unit: "×", Bar: 1.5},
		{Name: "beside-list", What: "p99 of a single beat beside a list of 10,000 tasks, to that alone", Unit: "×", Bar: 1.5},
		{Name: "latency-p99", What: "p99 of a single beat at half of the top rate", Unit: "ms", Bar: 5},
	}
}

// give adds a round's value to a bar; nil is one that could not be measured.
func (b *bench) give(name string, value *float64) {
	if bar := b.bar(name); value != nil {
		bar.Rounds = append(bar.Rounds, *value)
	}
}

// because notes on a bar what to know about its number, or why there is none.
func (b *bench) because(name, note string) { b.bar(name).Note = note }

func (b *bench) bar(name string) *report.Bar {
	i := slices.IndexFunc(b.report.Bars, func(bar report.Bar) bool { return bar.Name == name })
	if i < 0 {
		panic("there is no bar " + name)
	}
	return &b.report.Bars[i]
}

// judge fills in medians and verdicts.
func judge(bars []report.Bar) {
	for i := range bars {
		bar := &bars[i]
		if bar.Verdict = report.NotMeasured; len(bar.Rounds) == 0 {
			if bar.Note == "" {
				bar.Note = "what measures it was not run"
			}
			continue
		}
		m := report.Median(bar.Rounds)
		bar.Measured = &m
		reached := func(goal float64) bool { return m <= goal }
		if bar.AtLeast {
			reached = func(goal float64) bool { return m >= goal }
		}
		switch {
		case bar.Aim != nil && reached(*bar.Aim):
			bar.Verdict = report.AimReached
		case reached(bar.Bar):
			bar.Verdict = report.Met
		default:
			bar.Verdict = report.Missed
		}
	}
}

// ratio is a by b; nil when either is not known.
func ratio(a, b *float64) *float64 {
	if a == nil || b == nil || *b == 0 {
		return nil
	}
	v := *a / *b
	return &v
}

func sum(a, b *float64) *float64 {
	if a == nil || b == nil {
		return nil
	}
	v := *a + *b
	return &v
}

// both is the CPU of server and Redis per beat.
func both(r report.Run) *float64 { return sum(r.ServerMicros, r.RedisMicros) }
