// Package load is the load generator: connections that send rendered requests as fast as answers arrive (closed loop) or by
// a schedule (open loop), and histograms of the answers. It shares its cores with the measured programs, so it is
// cheap: one goroutine and one plain socket for each connection, no allocation for a request. It knows the format of
// HTTP answers but not the content of the requests.
package load

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"
)

// Generator is a set of open connections to one server, used by one run after the other.
type Generator interface {
	// Run sends until the time is over, the sources have ended, or ctx ends. It waits for requests under way.
	Run(ctx context.Context, l Load) (Result, error)
	// Size returns the number of connections.
	Size() int
	Close()
}

// Source creates the requests of one connection and counts their answers. Only one goroutine uses it.
type Source interface {
	// Next appends the next request to dst; nil ends the connection's part of the run.
	Next(dst []byte) []byte
	// Answered returns how many beats an answer acknowledges. It counts the refused ones in t. It must not keep the body.
	Answered(status int, body []byte, t *Tally) (beats int)
}

// Load is one run.
type Load struct {
	// Source creates the source of connection i of n.
	Source func(i, n int) Source
	// For is the duration; 0: until the sources have ended.
	For time.Duration
	// Until, if set, ends the run gracefully when it is closed.
	Until <-chan struct{}
	// PerSecond is the rate of an open loop, over all connections; 0 is a closed loop.
	PerSecond float64
	// Poisson draws the gaps of an open loop from an exponential distribution instead of keeping them constant.
	Poisson bool

	clock clock // for tests
}

// Result of a run.
type Result struct {
	Elapsed time.Duration
	Tally
	Latency  Histogram // of requests; an open loop's counts from the intended start
	Lateness Histogram // from the intended start to the actual one
	// OwnLateness is the generator's part of it: without the wait for the connection's previous answer.
	OwnLateness Histogram
}

// Tally counts answers.
type Tally struct {
	Beats    int64 // acknowledged
	Requests int64 // answered
	NotOK    map[string]int64
}

// Refused counts something other than an acknowledged beat.
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

// ErrStalled ends a run without answers for a long time.
var ErrStalled = errors.New("no answer for 30 s, so the run was given up")

const (
	stalled = 30 * time.Second
	// grace is how long an open loop that is behind its schedule continues after its end.
	grace = 2 * time.Second
)

// NotSent is the name in Tally.NotOK of the requests of an open loop that the server was too slow for.
const NotSent = "not sent in time"

type run struct {
	Load
	ctx      context.Context
	clock    clock
	recorder *recorder
	stop     atomic.Bool
}

// connGroup is the connections of a generator during a run, which are driven concurrently.
type connGroup interface {
	parts() int
	drive(r *run, part int, t *Tally) error
	answers() int64 // of the run under way
	interrupt()     // makes pending reads and writes return at once
}

// conduct runs a load. It waits for requests under way at its end.
func conduct(ctx context.Context, l Load, g connGroup) (Result, error) {
	inner, cancel := context.WithCancel(ctx)
	defer cancel()
	r := &run{Load: l, ctx: inner, recorder: newRecorder()}
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

// watch ends a run that does not end on its own.
func (r *run) watch(g connGroup, cancel func(), ended <-chan struct{}) error {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	var answers int64
	answered := time.Now()
	giveUp := func(err error) error {
		r.stop.Store(true)
		cancel()
		for { // a connection may be in dialling
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
