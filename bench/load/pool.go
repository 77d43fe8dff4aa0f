package load

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// Pool is open connections to one server, which one run after the other uses.
type Pool struct {
	conns []*conn
}

// portsPerAddress is how many connections leave from one loopback address: an address has some 28,000 ports by
// default, and those of closed connections rest for a minute.
const portsPerAddress = 10_000

// Dial opens n connections to host:port.
func Dial(ctx context.Context, address string, n int) (*Pool, error) {
	if n < 1 {
		return nil, fmt.Errorf("%d connections are none", n)
	}
	p := &Pool{}
	for i := range n {
		d := net.Dialer{Timeout: 10 * time.Second}
		if host, _, _ := net.SplitHostPort(address); i >= portsPerAddress && host == "127.0.0.1" {
			d.LocalAddr = &net.TCPAddr{IP: net.IPv4(127, 0, 0, byte(1+i/portsPerAddress))}
		}
		c := &conn{dial: func(ctx context.Context) (net.Conn, error) { return d.DialContext(ctx, "tcp", address) }}
		if err := c.connect(ctx); err != nil {
			p.Close()
			if errors.Is(err, syscall.EMFILE) {
				err = fmt.Errorf("the limit of open files is reached after %d connections; raise it with ulimit -n, or ask for fewer: %w", i, err)
			}
			return nil, err
		}
		p.conns = append(p.conns, c)
	}
	return p, nil
}

// Size is the number of connections.
func (p *Pool) Size() int { return len(p.conns) }

// Close closes every connection.
func (p *Pool) Close() {
	for _, c := range p.conns {
		c.close()
	}
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
	// Progress, if any, is called about ten times a second.
	Progress func(Progress)

	clock clock // of tests
}

// Progress of a run.
type Progress struct {
	Elapsed        time.Duration
	Beats, Answers int64
}

// Result of a run.
type Result struct {
	Elapsed time.Duration
	Tally
	Latency  Histogram // of requests; an open loop's counts from the intended start
	Lateness Histogram // from the intended start to the actual one
	Windows  []Window
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

// Run sends until the time is over, the sources are at their end, or ctx ends. Requests under way are waited for.
func (p *Pool) Run(ctx context.Context, l Load) (Result, error) {
	inner, cancel := context.WithCancel(ctx)
	defer cancel()
	r := &run{Load: l, ctx: inner, recorder: newRecorder(l.Window)}
	if r.clock = l.clock; r.clock == nil {
		r.clock = newWallClock()
	}
	tallies := make([]Tally, len(p.conns))
	errs := make([]error, len(p.conns))
	var wg sync.WaitGroup
	for i, c := range p.conns {
		c.beats.Store(0)
		c.answers.Store(0)
		wg.Go(func() { errs[i] = r.drive(i, len(p.conns), c, &tallies[i]) })
	}
	ended := make(chan struct{})
	watched := make(chan error, 1)
	go func() { watched <- p.watch(r, cancel, ended) }()
	wg.Wait()
	close(ended)
	res := Result{Elapsed: r.clock.now()}
	for i := range tallies {
		res.add(&tallies[i])
	}
	res.Latency, res.Lateness, res.Windows = r.recorder.result()
	err := <-watched
	if err == nil {
		err = errors.Join(errs...)
	}
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	return res, err
}

// watch reports the progress and ends what does not end by itself.
func (p *Pool) watch(r *run, cancel func(), ended <-chan struct{}) error {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	var last Progress
	heard := time.Now()
	giveUp := func(err error) error {
		r.stop.Store(true)
		cancel()
		for { // a connection may be dialled just now
			for _, c := range p.conns {
				c.interrupt()
			}
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
			at := Progress{Elapsed: r.clock.now()}
			for _, c := range p.conns {
				at.Beats += c.beats.Load()
				at.Answers += c.answers.Load()
			}
			if at.Answers != last.Answers {
				heard = time.Now()
			}
			if time.Since(heard) > stalled {
				return giveUp(ErrStalled)
			}
			if last = at; r.Progress != nil {
				r.Progress(at)
			}
		}
	}
}

// maxRedials in a row, a connection gives up.
const maxRedials = 50

// drive is one connection's part of the run.
func (r *run) drive(i, n int, c *conn, t *Tally) error {
	source := r.Source(i, n)
	var plan *schedule
	if r.PerSecond > 0 {
		plan = newSchedule(i, n, r.PerSecond, r.Poisson)
	}
	for !r.stop.Load() {
		intended := r.clock.now()
		if plan != nil {
			intended = plan.take()
		}
		if r.For > 0 && intended >= r.For {
			return nil
		}
		if plan != nil && !r.clock.sleepUntil(r.ctx, intended) {
			return nil
		}
		if plan != nil && r.For > 0 && r.clock.now() > r.For+grace {
			for ; intended < r.For; intended = plan.take() {
				t.Refused(NotSent, 1)
			}
			return nil
		}
		if c.out = source.Next(c.out[:0]); c.out == nil {
			return nil
		}
		sent := r.clock.now()
		if plan == nil {
			intended = sent
		}
		status, body, err := c.do()
		if err != nil {
			if r.stop.Load() {
				return nil
			}
			t.Refused(reason(err), 1)
			if err := r.reconnect(c); err != nil {
				return err
			}
			continue
		}
		done := r.clock.now()
		beats := source.Answered(status, body, t)
		t.Requests++
		t.Beats += int64(beats)
		c.answers.Add(1)
		c.beats.Add(int64(beats))
		r.recorder.record(i, intended, sent, done, beats)
	}
	return nil
}

func (r *run) reconnect(c *conn) (err error) {
	for range maxRedials {
		if err = c.connect(r.ctx); err == nil {
			return nil
		}
		select {
		case <-r.ctx.Done():
			return nil
		case <-time.After(20 * time.Millisecond):
		}
	}
	return fmt.Errorf("the server takes no connections any more: %w", err)
}

// reason is an error in a few words, the same for all of its kind.
func reason(err error) string {
	switch {
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return "connection reset"
	case errors.Is(err, os.ErrDeadlineExceeded):
		return "no answer"
	case errors.Is(err, net.ErrClosed):
		return "connection closed"
	case err.Error() == "EOF":
		return "connection closed by the server"
	}
	return err.Error()
}
