// Package load is the generator: connections that send rendered requests as fast as answers come (closed loop) or by
// a schedule (open loop), and histograms of what came back. It shares its cores with what it measures, so it is
// cheap: one goroutine and one plain socket for each connection, no allocation for a request. It knows the shape of
// HTTP answers and nothing of what the requests say.
package load

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"
)

// Generator is open connections to one server, which one run after the other uses.
type Generator interface {
	// Run sends until the time is over, the sources are at their end, or ctx ends. Requests under way are waited for.
	Run(ctx context.Context, l Load) (Result, error)
	// Size is the number of connections.
	Size() int
	Close()
}

// Source makes the requests of one connection and counts their answers. One goroutine uses it.
type Source interface {
	// Next appends the next request to dst; nil ends the connection's part of the run.
	Next(dst []byte) []byte
	// Answered says how many beats an answer acknowledges. What it refuses it counts itself. The body is lent.
	Answered(status int, body []byte, t *Tally) (beats int)
}

// Load is one run.
type Load struct {
	// Source makes the source of connection i of n.
	Source func(i, n int) Source
	// For is how long; 0: until the sources are at their end.
	For time.Duration
	// Until, if any, ends the run in good order when it is closed.
	Until <-chan struct{}
	// PerSecond is the requests of an open loop, over all connections; 0 is a closed loop.
	PerSecond float64
	// Poisson draws the gaps of an open loop from an exponential distribution instead of keeping them constant.
	Poisson bool
	// Window is the width of the result's windows; 0: none.
	Window time.Duration

	clock clock // of tests
}

// Result of a run.
type Result struct {
	Elapsed time.Duration
	Tally
	Latency  Histogram // of requests; an open loop's counts from the intended start
	Lateness Histogram // from the intended start to the actual one
	// OwnLateness is the generator's part of it: what is left without the wait for the connection's answer before.
	OwnLateness Histogram
	Windows     []Window
}

// Tally counts answers.
type Tally struct {
	Beats    int64 // acknowledged
	Requests int64 // answered
	NotOK    map[string]int64
}

// Refused counts something that is no acknowledged beat.
func (t *Tally) Refused(why string, n int64) {
	if t.NotOK == nil {
		t.NotOK = map[string]int64{}
	}
	t.NotOK[why] += n
}

func (t *Tally) add(o *Tally) {
	t.Beats += o.Beats
	t.Requests += o.Requests
	for why, n := range o.NotOK {
		t.Refused(why, n)
	}
}

// ErrStalled ends a run in which no answer came for a long time.
var ErrStalled = errors.New("no answer for 30 s, so the run was given up")

const (
	stalled = 30 * time.Second
	// grace is how long after its end an open loop that is behind its schedule goes on.
	grace = 2 * time.Second
)

// NotSent is what Tally.NotOK calls the requests of an open loop that the server was too slow for.
const NotSent = "not sent in time"

type run struct {
	Load
	ctx      context.Context
	clock    clock
	recorder *recorder
	stop     atomic.Bool
}

// crew are the connections of a generator during a run: parts of it are driven side by side.
type crew interface {
	parts() int
	drive(r *run, part int, t *Tally) error
	answers() int64 // of the run under way
	interrupt()     // makes whatever waits return at once
}

// conduct runs a load. Requests under way at its end are waited for.
func conduct(ctx context.Context, l Load, g crew) (Result, error) {
	inner, cancel := context.WithCancel(ctx)
	defer cancel()
	r := &run{Load: l, ctx: inner, recorder: newRecorder(l.Window)}
	if r.clock = l.clock; r.clock == nil {
		r.clock = newWallClock()
	}
	tallies := make([]Tally, g.parts())
	errs := make([]error, g.parts())
	var wg sync.WaitGroup
	for i := range tallies {
		wg.Go(func() { errs[i] = g.drive(r, i, &tallies[i]) })
	}
	ended := make(chan struct{})
	watched := make(chan error, 1)
	go func() { watched <- r.watch(g, cancel, ended) }()
	wg.Wait()
	close(ended)
	res := Result{Elapsed: r.clock.now()}
	for i := range tallies {
		res.add(&tallies[i])
	}
	r.recorder.into(&res)
	err := <-watched
	if err == nil {
		err = errors.Join(errs...)
	}
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	return res, err
}

// watch ends what does not end on its own.
func (r *run) watch(g crew, cancel func(), ended <-chan struct{}) error {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	var answers int64
	answered := time.Now()
	giveUp := func(err error) error {
		r.stop.Store(true)
		cancel()
		for { // a connection may be dialled just now
			g.interrupt()
			select {
			case <-ended:
				return err
			case <-tick.C:
			}
		}
	}
	for {
		select {
		case <-ended:
			return nil
		case <-r.Until:
			r.stop.Store(true)
			r.Until = nil
		case <-r.ctx.Done():
			return giveUp(r.ctx.Err())
		case <-tick.C:
			if now := g.answers(); now != answers {
				answers, answered = now, time.Now()
			}
			if time.Since(answered) > stalled {
				return giveUp(ErrStalled)
			}
		}
	}
}
