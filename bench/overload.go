package bench

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/lubdub-io/lubdub/bench/load"
	"github.com/lubdub-io/lubdub/bench/proc"
	"github.com/lubdub-io/lubdub/bench/report"
)

// overloads is how many times the connections that make the top rate are let loose.
const overloads = 10

// redisDelay is added in each direction between a server and a slow Redis.
const redisDelay = 50 * time.Millisecond

// runOverload offers ten times what makes the top rate: to a deployment whose connections are bounded, to the same on a slow
// Redis, and as creations and lists beside the beats, of which a sixteenth of max-connections may be under way. Every ratio is to the
// same deployment's own base, just before.
func runOverload(ctx context.Context, b *bench, s *report.Scenario) error {
	twice := strconv.Itoa(2 * b.Connections)
	for _, c := range []struct {
		name  string
		slow  bool
		flood bool // of the control plane
		args  []string
	}{
		{"connections", false, false, []string{"--max-connections", twice}},
		{"slow-redis", true, false, []string{"--max-connections", twice}},
		{"control-plane", false, true, []string{"--max-connections", strconv.Itoa((overloads + 2) * b.Connections)}},
	} {
		if err := b.overload(ctx, s, c.name, c.slow, c.flood, c.args); err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
	}
	return nil
}

func (b *bench) overload(ctx context.Context, s *report.Scenario, name string, slow, flood bool, args []string) (err error) {
	f := &fixture{target: target{program: lubdub}}
	defer func() { f.stop() }()
	if f.redis, err = b.newRedis(ctx); err != nil {
		return err
	}
	url := *f.redis
	if slow {
		d, err := proc.StartDelay(strings.TrimSuffix(strings.TrimPrefix(f.redis.URL, "redis://"), "/0"), redisDelay)
		if err != nil {
			return err
		}
		defer d.Stop()
		url.URL = "redis://" + d.Address() + "/0"
	}
	// Filled by a server of its own, to whose bounds the filling is not subject.
	tracked := max(min(few, b.Tracked), overloads*b.Connections) // each connection needs a task of its own
	filler, err := b.serve(ctx, f.redis, tracked, "--redis-timeout", "10s")
	if err != nil {
		return err
	}
	f.server = filler
	if f.control, err = b.control(ctx, "default", "default"); err != nil {
		return err
	}
	f.tasks = newTasks(newPrefix(), tracked, quietInterval, quietTimeout, 0)
	if _, err = b.populate(ctx, f, f.tasks); err != nil {
		return err
	}
	filler.Stop()
	if f.server, err = b.serve(ctx, &url, tracked, args...); err != nil {
		return err
	}
	if f.pool, err = load.Dial(ctx, f.address(), b.Connections); err != nil {
		return err
	}
	if err := b.warm(ctx, &f.target, f.tasks); err != nil {
		return err
	}
	before, err := b.judged(ctx, f, f.pool, name+" base", f.tasks.beatOneByOne, s)
	if err != nil {
		return err
	}
	var after *verdicts
	rss := rssOf(f.server.Pid)
	if flood {
		after, err = b.besideControl(ctx, f, name, s)
	} else {
		f.pool.Close()
		if f.pool, err = load.Dial(ctx, f.address(), overloads*b.Connections); err != nil {
			return err
		}
		after, err = b.judged(ctx, f, f.pool, name+" overload", f.tasks.beatOneByOne, s)
	}
	if err != nil {
		return err
	}
	figure := func(what, text string, value float64, unit string) {
		s.Figures = append(s.Figures, report.Figure{Name: name + "-" + what, What: text, Value: value, Unit: unit})
	}
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
	if rss > 0 {
		figure("memory-base", "memory of the server before the overload", rss, "MiB")
		figure("memory", "and in it", rssOf(f.server.Pid), "MiB")
	}
	return nil
}

func rssOf(pid int) float64 {
	bytes, err := proc.RSS(pid)
	if err != nil {
		return 0
	}
	return float64(bytes) / (1 << 20)
}

// verdicts keeps the latencies of admitted requests apart from those of refused ones.
type verdicts struct {
	mu                sync.Mutex
	admitted, refused load.Histogram
}

// client is a source that waits a second after a refusal, as Retry-After says, and after a connection that
// was closed.
type client struct {
	load.Source
	all     *verdicts
	sent    time.Time
	waiting bool // for an answer
}

func (c *client) Next(dst []byte) []byte {
	if c.waiting {
		time.Sleep(time.Second)
	}
	c.waiting, c.sent = true, time.Now()
	return c.Source.Next(dst)
}

func (c *client) Answered(status int, body []byte, t *load.Tally) int {
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

// judged drives a pool in a closed loop.
func (b *bench) judged(ctx context.Context, f *fixture, pool load.Generator, name string, of func(i, n int) load.Source,
	s *report.Scenario) (*verdicts, error) {
	v := &verdicts{admitted: load.NewHistogram(), refused: load.NewHistogram()}
	t := f.target
	t.pool = pool
	r, _, err := b.drive(ctx, &t, report.Run{Round: 1, Variant: name},
		load.Load{For: b.For, Source: func(i, n int) load.Source { return &client{Source: of(i, n), all: v} }})
	s.Runs = append(s.Runs, r)
	return v, err
}

// besideControl drives the beats while ten times as many connections create tasks and list them.
func (b *bench) besideControl(ctx context.Context, f *fixture, name string, s *report.Scenario) (*verdicts, error) {
	pool, err := load.Dial(ctx, f.address(), overloads*b.Connections)
	if err != nil {
		return nil, err
	}
	defer pool.Close()
	over := make(chan struct{})
	flooded := make(chan error, 1)
	control := &verdicts{admitted: load.NewHistogram(), refused: load.NewHistogram()}
	go func() {
		_, err := pool.Run(ctx, load.Load{Until: over, Source: func(i, n int) load.Source {
			return &client{Source: &controls{token: []byte(f.control), lists: i%2 == 0}, all: control}
		}})
		flooded <- err
	}()
	v, err := b.judged(ctx, f, f.pool, name+" overload", f.tasks.beatOneByOne, s)
	close(over)
	if floodErr := <-flooded; err == nil {
		err = floodErr
	}
	v.refused = control.refused
	s.Figures = append(s.Figures, report.Figure{Name: name + "-calls", What: "creations and lists answered meanwhile",
		Value: float64(control.admitted.TotalCount()), Unit: ""})
	return v, err
}

// controls creates tasks, or lists them, for ever.
type controls struct {
	token []byte
	lists bool
}

func (c *controls) Next(dst []byte) []byte {
	if c.lists {
		dst = append(dst, "GET /v1/tasks?pageSize=10 HTTP/1.1\r\nHost: bench\r\n"+bearer...)
		dst = append(dst, c.token...)
		return append(dst, "\r\n\r\n"...)
	}
	return post(dst, "/v1/tasks", c.token, []byte(`{}`))
}

func (c *controls) Answered(status int, body []byte, t *load.Tally) int {
	if status == 200 || status == 201 {
		return 1
	}
	t.Refused(refusal(status, body), 1)
	return 0
}
