package scenarios

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/lubdub-io/lubdub/bench/load"
	"github.com/lubdub-io/lubdub/bench/proc"
	"github.com/lubdub-io/lubdub/bench/report"
	"github.com/lubdub-io/lubdub/bench/requests"
	"github.com/lubdub-io/lubdub/bench/testbed"
)

// overloads is the multiple of the connections that reach the top rate.
const overloads = 10

// redisDelay is added in each direction between a server and a slow Redis.
const redisDelay = 50 * time.Millisecond

// runOverload offers ten times the load of the top rate: to a deployment with bounded connections, to the same on a slow Redis, and as
// creations and lists alongside the beats, of which a sixteenth of max-connections may be under way. Every ratio is to the same
// deployment's own base, just before.
func runOverload(b *testbed.Bed) {
	for _, o := range []overload{
		{name: "connections", args: []string{"--max-connections", fmt.Sprint(2 * b.Connections)}},
		{name: "slow-redis", slow: true, args: []string{"--max-connections", fmt.Sprint(2 * b.Connections)}},
		{name: "control-plane", control: true, args: []string{"--max-connections", fmt.Sprint((overloads + 2) * b.Connections)}},
	} {
		if err := testbed.Try(func() { o.play(b) }); err != nil {
			testbed.Check(fmt.Errorf("%s: %w", o.name, err))
		}
	}
}

type overload struct {
	name    string
	slow    bool // Redis is slow
	control bool // the overload consists of creations and lists
	args    []string
}

func (o *overload) play(b *testbed.Bed) {
	// It is filled through a server whose limits do not restrict the filling. Each connection needs a separate task.
	tracked := max(min(testbed.Few, b.Tracked), overloads*b.Connections)
	f := b.Deploy(tracked, "--redis-timeout", "10s")
	defer f.Stop()
	f.Tasks = requests.NewQuiet(tracked)
	b.Populate(f, f.Tasks)
	f.Pool.Close()
	f.Server.Stop()
	url := f.Redis.URL
	if o.slow {
		d := testbed.Must(proc.StartDelay(strings.TrimSuffix(strings.TrimPrefix(url, "redis://"), "/0"), redisDelay))
		defer d.Close()
		url = "redis://" + d.Addr().String() + "/0"
	}
	f.Server = b.Serve(url, tracked, o.args...)
	b.Cleanup(f.Server.Stop)
	base := b.Wide(&f.Target, b.Connections, false)
	b.Warm(beats(base, "", f.Tasks, load.Load{}))
	before := o.drive(b, base, "base", f.Tasks)
	rss, rssErr := proc.RSS(f.Server.Pid)
	var after *answers
	if o.control {
		after = o.underControlLoad(b, f, base)
	} else {
		base.Pool.Close()
		after = o.drive(b, b.Wide(&f.Target, overloads*b.Connections, false), "overload", f.Tasks)
	}
	figure := func(what, text string, value float64, unit string) { b.Figure(o.name+"-"+what, text, value, unit) }
	p99 := func(h load.Histogram) float64 { return float64(h.ValueAtPercentile(99)) / 1000 }
	figure("p99-base", "p99 of beats at the top rate", p99(before.admitted), "ms")
	figure("p99", "p99 of the beats that were admitted in the overload", p99(after.admitted), "ms")
	figure("p99-ratio", "the one to the other", p99(after.admitted)/p99(before.admitted), "×")
	figure("admitted-ratio", "beats admitted a second in the overload, to the top rate",
		float64(after.admitted.TotalCount())/float64(before.admitted.TotalCount()), "×")
	figure("refused", "requests refused with 503 in the overload", float64(after.refused.TotalCount()), "")
	if after.refused.TotalCount() > 0 {
		figure("refused-p99", "p99 of those refusals", p99(after.refused), "ms")
	}
	if now, err := proc.RSS(f.Server.Pid); err == nil && rssErr == nil {
		figure("memory-base", "memory of the server before the overload", float64(rss)/(1<<20), "MiB")
		figure("memory", "and in it", float64(now)/(1<<20), "MiB")
	}
}

// answers records the latencies of admitted and of refused requests separately.
type answers struct {
	mu                sync.Mutex
	admitted, refused load.Histogram
}

func newAnswers() *answers {
	return &answers{admitted: load.NewHistogram(), refused: load.NewHistogram()}
}

// patientClient is a source that waits a second after a refusal, as Retry-After requires, and after a closed connection.
type patientClient struct {
	load.Source
	all     *answers
	sent    time.Time
	waiting bool // for an answer
}

func (c *patientClient) Next(dst []byte) []byte {
	if c.waiting {
		time.Sleep(time.Second)
	}
	c.waiting, c.sent = true, time.Now()
	return c.Source.Next(dst)
}

func (c *patientClient) Answered(status int, body []byte, t *load.Tally) int {
	took := time.Since(c.sent)
	c.waiting = status == 503
	n := c.Source.Answered(status, body, t)
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	switch {
	case status == 503:
		c.all.refused.Record(took)
	case n > 0:
		c.all.admitted.Record(took)
	}
	return n
}

// drive beats as fast as the server admits.
func (o *overload) drive(b *testbed.Bed, on *testbed.Target, what string, tasks *requests.Tasks) *answers {
	a := newAnswers()
	b.Drive(on, report.Run{Round: 1, Variant: o.name + " " + what},
		load.Load{For: b.For, Source: func(i, n int) load.Source { return &patientClient{Source: tasks.Beats(i, n), all: a} }})
	return a
}

// underControlLoad beats while ten times as many connections create tasks and list them.
func (o *overload) underControlLoad(b *testbed.Bed, f *testbed.Fixture, on *testbed.Target) *answers {
	pool := b.Wide(&f.Target, overloads*b.Connections, false).Pool
	over, ended, control := make(chan struct{}), make(chan error, 1), newAnswers()
	go func() {
		_, err := pool.Run(b.Ctx, load.Load{Until: over, Source: func(i, _ int) load.Source {
			if i%2 == 0 {
				return &patientClient{Source: requests.ListFirst(f.Control), all: control}
			}
			return &patientClient{Source: requests.CreateOne(f.Control), all: control}
		}})
		ended <- err
	}()
	var beats *answers
	err := testbed.Try(func() { beats = o.drive(b, on, "overload", f.Tasks) })
	close(over)
	testbed.Check(errors.Join(err, <-ended))
	beats.refused = control.refused
	b.Figure(o.name+"-calls", "creations and lists answered meanwhile", float64(control.admitted.TotalCount()), "")
	return beats
}
