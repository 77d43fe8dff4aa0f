package bench

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lubdub-io/lubdub/bench/load"
	"github.com/lubdub-io/lubdub/bench/report"
)

// workerSite is a deployment for registered workers: what they claim waits in queues, and lives by their beats.
type workerSite struct{ fixture }

// newWorkerSite starts one. The interval is what workers are told, a third of their timeout.
func (b *bench) newWorkerSite(ctx context.Context, interval time.Duration) (s *workerSite, err error) {
	f := &fixture{target: target{program: lubdub}}
	defer func() {
		if err != nil {
			f.stop()
		}
	}()
	if f.redis, err = b.newRedis(ctx); err != nil {
		return nil, err
	}
	if f.server, err = b.serve(ctx, f.redis, 0, "--worker-heartbeat-interval", interval.String()); err != nil {
		return nil, err
	}
	if f.control, err = b.control(ctx, "default", "default"); err != nil {
		return nil, err
	}
	f.pool, err = load.Dial(ctx, f.address(), populateConnections)
	return &workerSite{*f}, err
}

// patientInterval is that of workers at the site that scenarios share: none of them is to die there.
const patientInterval = time.Hour

// workers returns the site that scenarios share.
func (b *bench) workers(ctx context.Context) (*workerSite, error) {
	if b.site == nil && b.siteErr == nil {
		if b.site, b.siteErr = b.newWorkerSite(ctx, patientInterval); b.siteErr == nil {
			b.atEnd(b.site.stop)
		}
	}
	return b.site, b.siteErr
}

// worker is a registered worker.
type worker struct {
	id, token []byte
	seq       atomic.Int64 // of its last beat
}

// jobType is what all queued tasks of the benchmark are, and what its workers run.
const jobType = "job"

// jobs are tasks that wait in a queue of their own, and live by the beats of the worker that claims them.
type jobs struct {
	*tasks
	queue string
}

// newJobs are n that do not exist yet.
func newJobs(n int) *jobs {
	prefix := newPrefix()
	j := &jobs{newTasks(prefix, n, 0, 0, 0), prefix + "queue"}
	j.template = fmt.Sprintf(`"queue":"%s","type":"%s","startTimeoutMs":%d,"tokenTtlSeconds":7200}`, j.queue, jobType,
		quietTimeout.Milliseconds())
	return j
}

// hire registers n workers of a queue.
func (s *workerSite) hire(ctx context.Context, b *bench, queue string, n int) ([]*worker, error) {
	workers := make([]*worker, n)
	r, err := s.pool.Run(ctx, load.Load{
		Source: func(i, conns int) load.Source {
			return &registrations{queue: queue, control: []byte(s.control), workers: workers, at: n * i / conns, end: n * (i + 1) / conns}
		},
		Progress: b.progress.of("registering workers", "workers", int64(n)),
	})
	if err == nil && r.Beats != int64(n) {
		err = fmt.Errorf("only %d of %d workers were registered: %s", r.Beats, n, refusals(r.NotOK))
	}
	return workers, err
}

// enqueue creates jobs.
func (s *workerSite) enqueue(ctx context.Context, b *bench, j *jobs) error {
	r, err := s.pool.Run(ctx, load.Load{
		Source: func(i, n int) load.Source {
			return &enqueuing{creation{tasks: j.tasks, control: []byte(s.control), from: j.len() * i / n, to: j.len() * (i + 1) / n}}
		},
		Progress: b.progress.of("creating tasks in a queue", "tasks", int64(j.len())),
	})
	if err == nil {
		err = complete(r, j.len(), "created in a queue")
	}
	return err
}

// hold has one worker claim all of the jobs and begin with them.
func (s *workerSite) hold(ctx context.Context, b *bench, w *worker, j *jobs) error {
	r, err := s.pool.Run(ctx, load.Load{
		Source:   func(int, int) load.Source { return newClaims(j.queue, w, mostAClaim, j.tasks) },
		Progress: b.progress.of("one worker claims them", "tasks", int64(j.len())),
	})
	if err == nil {
		err = complete(r, j.len(), "claimed by one worker")
	}
	if err != nil {
		return err
	}
	r, err = s.pool.Run(ctx, load.Load{Source: j.beatInBatches(batchSize, false, true),
		Progress: b.progress.of("first beats", "beats", int64(j.len()))})
	if err == nil {
		err = complete(r, j.len(), "started")
	}
	return err
}

// one registers one worker, for whom there are n jobs.
func (s *workerSite) one(ctx context.Context, b *bench, n int) (*worker, *jobs, error) {
	j := newJobs(n)
	if err := s.enqueue(ctx, b, j); err != nil {
		return nil, nil, err
	}
	workers, err := s.hire(ctx, b, j.queue, 1)
	if err != nil {
		return nil, nil, err
	}
	return workers[0], j, nil
}

// keepAlive beats for a worker, several times in its interval, until it is told to fall silent.
func (s *workerSite) keepAlive(ctx context.Context, w *worker, interval time.Duration) (silence func() error, err error) {
	pool, err := load.Dial(ctx, s.address(), 1)
	if err != nil {
		return nil, err
	}
	until, done := make(chan struct{}), make(chan error, 1)
	go func() {
		r, err := pool.Run(ctx, load.Load{Source: beatsOf([]*worker{w}), PerSecond: 4 / interval.Seconds(), Until: until})
		if err == nil && len(r.NotOK) > 0 {
			err = fmt.Errorf("beats of a living worker were refused: %s", refusals(r.NotOK))
		}
		pool.Close()
		done <- err
	}()
	return sync.OnceValue(func() error { close(until); return <-done }), nil
}

// wide is the site under a load of so many connections.
func (s *workerSite) wide(ctx context.Context, connections int) (*target, error) {
	t := s.target
	var err error
	t.pool, err = load.Dial(ctx, s.address(), connections)
	return &t, err
}

// workerCount is how many workers a scenario has where there should be many.
func (b *bench) workerCount() int { return min(1000, max(20, b.Tracked/4)) }

// heldByOne is how many tasks a worker holds where it should be many.
func (b *bench) heldByOne() int { return min(10_000, max(100, b.Tracked/4)) }

// short is the stretch of load of scenarios that need no more: the time of a run is limited.
func (b *bench) short() time.Duration { return max(b.For/2, 100*time.Millisecond) }

// addFigure adds a figure that could be measured.
func addFigure(s *report.Scenario, name, what string, value *float64, unit string) {
	if value != nil {
		s.Figures = append(s.Figures, report.Figure{Name: name, What: what, Value: *value, Unit: unit})
	}
}
