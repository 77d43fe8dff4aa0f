package bench

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lubdub-io/lubdub/bench/load"
	"github.com/lubdub-io/lubdub/bench/report"
)

// slowConnections is how many connections dawdle beside the beats.
const slowConnections = 5000

// runFlood measures beats at half of the top rate, then again beside connections that say nothing and connections that
// send their request a byte a second.
func runFlood(ctx context.Context, b *bench, s *report.Scenario) error {
	f, err := b.fewTasks(ctx)
	if err != nil {
		return err
	}
	rate, err := b.halfOfTop(ctx, f)
	if err != nil {
		return err
	}
	p99 := func(variant string) (float64, error) {
		r, _, err := b.drive(ctx, &f.target, report.Run{Round: 1, Variant: variant},
			load.Load{Source: f.tasks.beatOneByOne, For: b.For, PerSecond: rate})
		s.Runs = append(s.Runs, r)
		if err != nil || r.Latency == nil {
			return 0, err
		}
		return r.Latency.P99Ms, nil
	}
	base, err := p99("base")
	if err != nil {
		return err
	}
	inner, cancel := context.WithCancel(ctx)
	defer cancel()
	var open atomic.Int64
	var dawdlers sync.WaitGroup
	defer dawdlers.Wait()
	for i := range slowConnections {
		dawdlers.Go(func() {
			shortly() // they know nothing of each other
			dawdle(inner, f.address(), i%2 == 0, &open)
		})
	}
	for deadline := time.Now().Add(30 * time.Second); open.Load() < slowConnections && time.Now().Before(deadline) && ctx.Err() == nil; {
		time.Sleep(50 * time.Millisecond) // between two counts
	}
	there := open.Load()
	flooded, err := p99("beside slow connections")
	cancel()
	if err != nil {
		return err
	}
	s.Figures = append(s.Figures,
		report.Figure{Name: "slow-connections", What: "slow and idle connections that were open", Value: float64(there)},
		report.Figure{Name: "flood-p99-ratio", What: "p99 of beats beside them, to that without", Value: flooded / base, Unit: "×"})
	return nil
}

// dawdle keeps one connection that never sends a whole request, and makes another when it is cut off.
func dawdle(ctx context.Context, address string, idle bool, open *atomic.Int64) {
	for ctx.Err() == nil {
		c, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
		if err != nil {
			return
		}
		open.Add(1)
		begin := "POST /v1/heartbeats HTTP/1.1\r\nHost: x\r\nContent-Length: 10000\r\n\r\n"
		if idle {
			begin = "GET /livez HTTP/1.1\r\nHost: x\r\n\r\n"
		}
		_, err = c.Write([]byte(begin))
		for err == nil && ctx.Err() == nil {
			select {
			case <-ctx.Done():
			case <-time.After(time.Second):
			}
			if idle {
				continue
			}
			_, err = c.Write([]byte("1"))
		}
		_ = c.Close()
		open.Add(-1)
	}
}
