package bench

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/lubdub-io/lubdub/bench/load"
)

// verdict is when an attempt was declared dead, and how long after it was due.
type verdict struct {
	at  time.Time
	lag time.Duration
}

// verdictsTotal is the metric that counts what is waited for.
const verdictsTotal = `lubdub_verdicts_total{reason="HEARTBEAT_TIMEOUT"}`

// awaitDead waits until so many more attempts were declared dead than before.
func (b *bench) awaitDead(ctx context.Context, f *fixture, before float64, n int, patience time.Duration) error {
	b.progress.step("waiting for %s verdicts", grouped(int64(n)))
	for limit := time.Now().Add(patience); ; {
		dead := scrape(ctx, f.server)[verdictsTotal] - before
		if int(dead) >= n {
			return nil
		}
		if time.Now().After(limit) {
			return fmt.Errorf("only %.0f of %d silent tasks were declared dead within %v", dead, n, patience)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// verdicts reads the evidence of every task, each of which must be dead.
func (b *bench) verdicts(ctx context.Context, f *fixture, t *tasks) ([]verdict, error) {
	all := make([]verdict, len(t.at))
	source := func(i, n int) load.Source {
		return &autopsies{tasks: t, walk: walk{share: t.part(i, n), once: true}, control: f.control, verdicts: all}
	}
	r, err := f.pool.Run(ctx, load.Load{Source: source, Progress: b.progress.of("reading the evidence", "tasks", int64(t.len()))})
	if err == nil {
		err = complete(r, t.len(), "found dead")
	}
	return slices.DeleteFunc(all, func(v verdict) bool { return v.at.IsZero() }), err
}

// autopsies reads one task a request.
type autopsies struct {
	*tasks
	walk
	control  string
	task     uint32
	verdicts []verdict // by task
}

func (a *autopsies) Next(dst []byte) []byte {
	task, ok := a.next()
	if !ok {
		return nil
	}
	a.task = task
	dst = append(dst, "GET /v1/tasks/"...)
	dst = a.appendID(dst, task)
	dst = append(dst, " HTTP/1.1\r\nHost: bench\r\n"+bearer...)
	dst = append(dst, a.control...)
	return append(dst, "\r\n\r\n"...)
}

var (
	zombieField     = []byte(`"reason":"HEARTBEAT_TIMEOUT"`)
	detectedAtField = []byte(`"detectedAt":"`)
	lagField        = []byte(`"detectionLagMs":`)
	stateField      = []byte(`"state":"`)
)

func (a *autopsies) Answered(status int, body []byte, t *load.Tally) int {
	if status != 200 {
		t.Refused(strconv.Itoa(status), 1)
		return 0
	}
	at, err := time.Parse(time.RFC3339, string(after(body, detectedAtField, '"')))
	lag, err2 := strconv.Atoi(string(bytes.TrimRight(after(body, lagField, ','), "}")))
	if !bytes.Contains(body, zombieField) || err != nil || err2 != nil {
		t.Refused("state "+string(after(body, stateField, '"')), 1)
		return 0
	}
	a.verdicts[a.task] = verdict{at, time.Duration(lag) * time.Millisecond}
	return 1
}

// after gives what stands between a field's name and an end; nothing when it is not there.
func after(body, field []byte, end byte) []byte {
	_, rest, ok := bytes.Cut(body, field)
	i := bytes.IndexByte(rest, end)
	if !ok || i < 0 {
		return nil
	}
	return rest[:i]
}

func lags(verdicts []verdict) load.Histogram {
	h := load.NewHistogram()
	for _, v := range verdicts {
		h.Record(v.lag)
	}
	return h
}
