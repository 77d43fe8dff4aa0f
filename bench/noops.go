package bench

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"sync/atomic"

	"github.com/lubdub-io/lubdub/bench/load"
	"github.com/lubdub-io/lubdub/bench/report"
	sdkclient "github.com/lubdub-io/lubdub/sdk/go/client"
	sdkworker "github.com/lubdub-io/lubdub/sdk/go/worker"
)

// noOpPlaces are how many tasks a worker does at the same time.
var noOpPlaces = []int{1, ten, hundred}

const (
	noOpsPerSecond = 1000 // about as many as one place does
	leastNoOps     = 100
	noOpConns      = 4 // of the bare client, at most
)

// runNoOps has tasks claimed, started and completed in which there is nothing to do: by a client that does no more than that, and by a
// worker of the Go SDK, in turns. Both are this process, whose CPU is counted.
func runNoOps(ctx context.Context, b *bench, s *report.Scenario) error {
	site, err := b.workers(ctx)
	if err != nil {
		return err
	}
	for _, places := range noOpPlaces {
		var bare, worker, ratios []float64
		for range b.Rounds {
			one, err := site.noOps(ctx, b, places, site.bareNoOps)
			if err != nil {
				return err
			}
			other, err := site.noOps(ctx, b, places, site.sdkNoOps)
			if err != nil {
				return err
			}
			r := ratio(other, one)
			if r == nil {
				continue
			}
			bare, worker, ratios = append(bare, *one), append(worker, *other), append(ratios, *r)
			if places != ten {
				b.give(fmt.Sprintf("sdk-noop-%d", places), r)
			}
		}
		if len(ratios) > 0 {
			tellNoOps(s, places, report.Median(bare), report.Median(worker), report.Median(ratios))
		}
	}
	return nil
}

func tellNoOps(s *report.Scenario, places int, bare, worker, ratio float64) {
	of := fmt.Sprintf("%d places", places)
	if places == 1 {
		of = "1 place"
	}
	for _, f := range []report.Figure{
		{Name: "noop-bare-cpu", What: "CPU of the bare client for a no-op task, " + of, Value: bare, Unit: "µs"},
		{Name: "noop-sdk-cpu", What: "CPU of the Go SDK for a no-op task, " + of, Value: worker, Unit: "µs"},
		{Name: "noop-sdk-to-bare", What: "the Go SDK to the bare client, " + of, Value: ratio, Unit: "×"},
	} {
		f.Name = fmt.Sprintf("%s-%d", f.Name, places)
		s.Figures = append(s.Figures, f)
	}
}

// emptying does the jobs, so many at a time.
type emptying func(ctx context.Context, b *bench, j *jobs, places int) error

// noOps has a queue filled and then emptied; it returns the CPU of this process for a task.
func (s *workerSite) noOps(ctx context.Context, b *bench, places int, empty emptying) (*float64, error) {
	j := newJobs(max(leastNoOps, int(noOpsPerSecond*b.short().Seconds())))
	if err := s.enqueue(ctx, b, j); err != nil {
		return nil, err
	}
	before := cpuOf(os.Getpid())
	if err := empty(ctx, b, j, places); err != nil {
		return nil, err
	}
	return micros(cpuOf(os.Getpid()), before, int64(j.len())), nil
}

// sdkNoOps has a worker of the SDK do them.
func (s *workerSite) sdkNoOps(ctx context.Context, b *bench, j *jobs, places int) error {
	b.progress.of(fmt.Sprintf("a worker with %d places", places), "tasks", int64(j.len()))
	c, err := sdkclient.New(s.server.URL, sdkclient.Token(s.control))
	if err != nil {
		return err
	}
	defer c.Close()
	w, err := sdkworker.New(c, j.queue, sdkworker.Concurrency(places), sdkworker.Logger(slog.New(slog.DiscardHandler)))
	if err != nil {
		return err
	}
	var begun atomic.Int64
	w.Handle(jobType, func(context.Context, *sdkworker.Task) (any, error) {
		if begun.Add(1) == int64(j.len()) {
			w.Close() // which waits for all completions
		}
		return nil, nil
	})
	if err := w.Run(ctx); err != nil {
		return err
	}
	if n := begun.Load(); n != int64(j.len()) && ctx.Err() == nil {
		return fmt.Errorf("the worker did %d of %d tasks", n, j.len())
	}
	return ctx.Err()
}

// bareNoOps does them with as little as it takes, on as many connections as there are places, 4 at most.
func (s *workerSite) bareNoOps(ctx context.Context, b *bench, j *jobs, places int) error {
	workers, err := s.hire(ctx, b, j.queue, 1)
	if err != nil {
		return err
	}
	pool, err := load.Dial(ctx, s.address(), min(places, noOpConns))
	if err != nil {
		return err
	}
	defer pool.Close()
	r, err := pool.Run(ctx, load.Load{
		Source:   func(int, int) load.Source { return &noOps{claims: newClaims(j.queue, workers[0], places, nil)} },
		Progress: b.progress.of(fmt.Sprintf("a bare client with %d places", places), "tasks", int64(j.len())),
	})
	if err == nil {
		err = complete(r, j.len(), "completed by a bare client")
	}
	return err
}

// noOps claims tasks and ends them until the queue is empty. Each task counts as one beat.
type noOps struct {
	*claims
	held  []claimedTask
	begun bool // the first one is
	path  []byte
}

type claimedTask struct{ id, token []byte }

var (
	noOpStarted   = []byte(`{"attempt":1}`)
	noOpCompleted = []byte(`{"attempt":1,"outcome":"SUCCEEDED","output":null}`)
)

func (o *noOps) Next(dst []byte) []byte {
	if len(o.held) == 0 {
		return o.claims.Next(dst)
	}
	call, body := "/started", noOpStarted
	if o.begun {
		call, body = "/completed", noOpCompleted
	}
	o.path = append(append(append(o.path[:0], "/v1/tasks/"...), o.held[0].id...), call...)
	return post(dst, string(o.path), o.held[0].token, body)
}

func (o *noOps) Answered(status int, body []byte, t *load.Tally) (ended int) {
	switch {
	case len(o.held) == 0:
		if o.claims.Answered(status, body, t) > 0 {
			o.keep(body)
		}
	case status != 200:
		t.Refused(refusal(status, body), 1)
		o.over, o.held = true, nil
	case !o.begun:
		o.begun = true
	default:
		o.begun, o.held = false, o.held[1:]
		return 1
	}
	return 0
}

// keep takes the ids and tokens of what was claimed.
func (o *noOps) keep(body []byte) {
	for rest := body; ; {
		i := bytes.Index(rest, tokenField)
		if i < 0 {
			return
		}
		token := after(rest[i:], tokenField, '"')
		o.held = append(o.held, claimedTask{bytes.Clone(after(rest[:i], taskIDField, '"')), bytes.Clone(token)})
		rest = rest[i+len(tokenField):]
	}
}
