package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
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

// running counts the tasks that run in the fixture's scope.
func (f *fixture) running(ctx context.Context) (int, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, f.server.URL+"/v1/tasks?state=RUNNING&pageSize=1", nil)
	if err != nil {
		return 0, err
	}
	req.Header.Set("Authorization", "Bearer "+f.control)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	var list struct{ TotalCount *int }
	if err := json.NewDecoder(resp.Body).Decode(&list); err != nil || list.TotalCount == nil {
		return 0, fmt.Errorf("counting running tasks: %s, %w", resp.Status, err)
	}
	return *list.TotalCount, nil
}

// awaitDead waits until no more tasks run than before the silent ones were created, whichever sweeper ends them.
func (b *bench) awaitDead(ctx context.Context, f *fixture, before int, patience time.Duration) error {
	b.progress.step("waiting for the verdicts")
	for limit := time.Now().Add(patience); ; {
		now, err := f.running(ctx)
		if err == nil && now <= before {
			return nil
		}
		if time.Now().After(limit) {
			return errors.Join(fmt.Errorf("%d silent tasks were not declared dead within %v", now-before, patience), err)
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
		err = b.nearly(r, t.len(), "found dead")
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
	return a.appendGet(dst, task, a.control)
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

// after returns what stands between a field's name and an end; nothing when it is not there.
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
