package bench

import (
	"context"
	"time"

	"github.com/lubdub-io/lubdub/bench/load"
	"github.com/lubdub-io/lubdub/bench/report"
)

// window is the width of what timelines show.
const window = 100 * time.Millisecond

func runLatency(ctx context.Context, b *bench, s *report.Scenario) error {
	f, err := b.fewTasks(ctx)
	if err != nil {
		return err
	}
	rate, err := b.halfOfTop(ctx, f)
	if err != nil {
		return err
	}
	for round := 1; round <= b.Rounds; round++ {
		r, res, err := b.drive(ctx, &f.target, report.Run{Round: round},
			load.Load{Source: f.tasks.beatOneByOne, For: b.For, PerSecond: rate, Poisson: b.Poisson, Window: window})
		s.Runs = append(s.Runs, r)
		if err != nil {
			return err
		}
		if r.Latency != nil {
			b.give("latency-p99", &r.Latency.P99Ms)
		}
		if round == b.Rounds {
			s.Timelines = append(s.Timelines, report.Timeline{
				Name: "latency", Title: "Rate and p99 of beats at half of the top rate, last round", IntervalMs: ms(window),
				Series: []report.Series{rates("beats", res.Windows), p99s("p99 of beats", res.Windows)},
			})
		}
	}
	return nil
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// rates is beats per second, window by window.
func rates(name string, windows []load.Window) report.Series {
	s := report.Series{Name: name, Unit: "beats/s"}
	for _, w := range windows {
		v := float64(w.Beats) / window.Seconds()
		s.Values = append(s.Values, &v)
	}
	return s
}

// p99s is the latency's p99, window by window.
func p99s(name string, windows []load.Window) report.Series {
	s := report.Series{Name: name, Unit: "ms"}
	for _, w := range windows {
		var v *float64
		if w.Latency.TotalCount() > 0 {
			p := float64(w.Latency.ValueAtPercentile(99)) / 1000
			v = &p
		}
		s.Values = append(s.Values, v)
	}
	return s
}
