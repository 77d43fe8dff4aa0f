package worker

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/lubdub-io/lubdub/sdk/go/client"
	"github.com/lubdub-io/lubdub/sdk/go/internal/clock"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

// ignored is how long a handler may continue after its context has ended before that is logged.
const ignored = 10 * time.Second

// watch contains the timers of a handler, which stop when it returns.
type watch struct {
	clock clock.Clock

	mu    sync.Mutex
	over  bool
	stops []func() bool
}

// after calls f after d, unless the watch ends before.
func (g *watch) after(d time.Duration, f func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.over {
		g.stops = append(g.stops, g.clock.AfterFunc(d, f))
	}
}

func (g *watch) end() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.over = true
	for _, stop := range g.stops {
		stop()
	}
	g.stops = nil
}

// watch ends the task when it takes too long or is stuck, and logs a handler that ignores the end of its context.
func (j *job) watch(ctx context.Context, end context.CancelCauseFunc, t *Task) *watch {
	w := j.worker
	g := &watch{clock: w.clock}
	if d := w.set.limitOf(j.envelope); d > 0 {
		g.after(d, func() {
			if end(ErrTaskTimeout); j.stopping() {
				return // and is given back at the hard stop
			}
			g.after(max(j.grace(), time.Second), func() { j.settle(nil, client.Categorize(v1.CategoryTimeout, ErrTaskTimeout), nil) })
		})
	}
	if d := w.set.watchdog; d > 0 {
		var look func()
		look = func() {
			if quiet := t.quiet(); quiet < d {
				g.after(d-quiet, look)
				return
			}
			if j.stopping() {
				return
			}
			err := client.Categorize(v1.CategoryTimeout, fmt.Errorf("no progress for %v: %w", d, ErrStuck))
			j.settle(nil, err, func() { end(ErrStuck) })
		}
		g.after(d, look)
	}
	stop := context.AfterFunc(ctx, func() {
		g.after(ignored, func() {
			w.set.log.Warn("A handler still runs although its context has ended", "taskId", t.ID(), "attempt", t.Attempt(),
				"cause", context.Cause(ctx))
		})
	})
	g.mu.Lock()
	defer g.mu.Unlock()
	g.stops = append(g.stops, stop)
	return g
}
