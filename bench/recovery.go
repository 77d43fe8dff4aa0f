package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/lubdub-io/lubdub/bench/load"
	"github.com/lubdub-io/lubdub/bench/report"
)

// mortalInterval is that of workers which are to die: their timeout is three times it.
const mortalInterval = time.Second

// runRecovery kills a worker that holds many tasks, round by round: it falls silent, and all must be requeued.
func runRecovery(ctx context.Context, b *bench, s *report.Scenario) error {
	site, err := b.newWorkerSite(ctx, mortalInterval)
	if err != nil {
		return err
	}
	defer site.stop()
	n := b.heldByOne()
	took, noticed := load.NewHistogram(), []float64{}
	for range min(b.Rounds, 2) { // most of a round is waiting
		r, err := site.kill(ctx, b, n)
		if err != nil {
			return err
		}
		seconds := 0.0
		for _, at := range r.requeued {
			took.Record(at.Sub(r.verdict))
			seconds = max(seconds, at.Sub(r.verdict).Seconds())
		}
		b.give("recovery", &seconds)
		noticed = append(noticed, ms(r.verdict.Sub(r.due)))
	}
	q := quantiles(took)
	s.Distributions = append(s.Distributions, report.Distribution{
		Name: "recovery", What: fmt.Sprintf("from the verdict on a worker until each of its %s tasks was requeued", grouped(int64(n))),
		Quantiles: *q,
	})
	s.Figures = append(s.Figures, report.Figure{Name: "worker-detection-lag", What: "from the worker's last beat + its timeout to the verdict",
		Value: report.Median(noticed), Unit: "ms"})
	if n < 10_000 {
		b.because("recovery", fmt.Sprintf("%s tasks", grouped(int64(n))))
	}
	return nil
}

// killed is what became of a dead worker's tasks.
type killed struct {
	due, verdict time.Time   // of the worker, by the server's clock
	requeued     []time.Time // of each task
}

// kill has a worker hold n tasks and fall silent. Every task must have been taken from it, once.
func (s *workerSite) kill(ctx context.Context, b *bench, n int) (*killed, error) {
	victim, j, err := s.one(ctx, b, n)
	if err != nil {
		return nil, err
	}
	silence, err := s.keepAlive(ctx, victim, mortalInterval)
	if err != nil {
		return nil, err
	}
	err = s.hold(ctx, b, victim, j)
	if err := errors.Join(err, silence()); err != nil {
		return nil, err
	}
	b.progress.step("waiting for the verdict on the worker")
	w, err := s.awaitRecovered(ctx, victim, 3*mortalInterval+30*time.Second)
	if err != nil {
		return nil, err
	}
	timeout := time.Duration(w.HeartbeatTimeoutMs) * time.Millisecond
	k := &killed{due: w.LastHeartbeatAt.Add(timeout), verdict: *w.DeregisteredAt, requeued: make([]time.Time, n)}
	r, err := s.pool.Run(ctx, load.Load{
		Source: func(i, conns int) load.Source {
			return &rescues{tasks: j.tasks, walk: walk{share: j.part(i, conns), once: true}, control: s.control, at: k.requeued}
		},
		Progress: b.progress.of("reading the evidence", "tasks", int64(n)),
	})
	if err == nil {
		err = complete(r, n, "requeued once")
	}
	return k, err
}

// workerView is what the scenario reads of a worker's record.
type workerView struct {
	Status             string
	HeldCount          int
	LastHeartbeatAt    time.Time
	DeregisteredAt     *time.Time
	HeartbeatTimeoutMs int64
}

// awaitRecovered waits until a worker is OFFLINE and holds nothing.
func (s *workerSite) awaitRecovered(ctx context.Context, victim *worker, patience time.Duration) (*workerView, error) {
	for limit := time.Now().Add(patience); ; {
		w, err := s.worker(ctx, victim)
		if err == nil && w.Status == "OFFLINE" && w.DeregisteredAt != nil && w.HeldCount == 0 {
			return w, nil
		}
		if time.Now().After(limit) {
			if err == nil {
				err = fmt.Errorf("it is %s and holds %d", w.Status, w.HeldCount)
			}
			return nil, fmt.Errorf("a silent worker was not recovered within %v: %w", patience, err)
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func (s *workerSite) worker(ctx context.Context, victim *worker) (*workerView, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.server.URL+"/v1/workers/"+string(victim.id), nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+s.control)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	var w workerView
	if err := json.NewDecoder(resp.Body).Decode(&w); err != nil || resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("reading a worker: %s, %w", resp.Status, err)
	}
	return &w, nil
}

// rescues reads when tasks were taken from a dead worker, one a request.
type rescues struct {
	*tasks
	walk
	control string
	task    uint32
	at      []time.Time // by task
}

func (r *rescues) Next(dst []byte) []byte {
	var ok bool
	if r.task, ok = r.next(); !ok {
		return nil
	}
	return r.appendGet(dst, r.task, r.control)
}

var (
	lostOutcome  = []byte(`"outcome":"LOST"`)
	lostReason   = []byte(`"reason":"WORKER_LOST"`)
	endedAtField = []byte(`"endedAt":"`)
)

func (r *rescues) Answered(status int, body []byte, t *load.Tally) int {
	if status != 200 {
		t.Refused(strconv.Itoa(status), 1)
		return 0
	}
	at, err := time.Parse(time.RFC3339, string(after(body, endedAtField, '"')))
	state := string(after(body, stateField, '"'))
	switch {
	case err != nil || state != "QUEUED" || !bytes.Contains(body, lostReason):
		t.Refused("state "+state, 1)
		return 0
	case bytes.Count(body, lostOutcome) != 1:
		t.Refused("not taken exactly once", 1)
		return 0
	}
	r.at[r.task] = at
	return 1
}
