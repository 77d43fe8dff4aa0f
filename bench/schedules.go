package bench

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/lubdub-io/lubdub/bench/report"
)

const (
	schedules     = 1200 // that catch up at once
	firesOfEach   = 10   // that each has missed
	scheduleQueue = "bench-schedules"
)

// runSchedules measures beats at half of the top rate alone, and while many schedules catch up with what they have missed.
func runSchedules(ctx context.Context, b *bench, s *report.Scenario) error {
	f, err := b.fewTasks(ctx)
	if err != nil {
		return err
	}
	rate, err := b.halfOfTop(ctx, f)
	if err != nil {
		return err
	}
	if err := eachOf(schedules, func(i int) error {
		return f.call(ctx, http.MethodPost, "/v1/schedules", fmt.Sprintf(
			`{"scheduleId":"bench-%d","cron":"0 0 0 * * *","maxCatchup":%d,"task":{"queue":%q}}`, i, firesOfEach, scheduleQueue), nil)
	}); err != nil {
		return err
	}
	defer func() {
		_ = eachOf(schedules, func(i int) error {
			return f.call(context.WithoutCancel(ctx), http.MethodDelete, fmt.Sprint("/v1/schedules/bench-", i), "", nil)
		})
	}()
	fired := 0
	for round := 1; round <= b.pairs(); round++ {
		alone, err := b.withAnother(ctx, f, s, round, rate, "before schedules catch up", nil)
		if err != nil {
			return err
		}
		with, err := b.withAnother(ctx, f, s, round, rate, fmt.Sprintf("while %s schedules catch up", grouped(schedules)),
			func() (func() error, error) { return f.catchUp(ctx, round, &fired) })
		if err != nil {
			return err
		}
		if alone.Latency != nil && with.Latency != nil {
			b.give("beside-schedules", ratio(&with.Latency.P99Ms, &alone.Latency.P99Ms))
		}
	}
	s.Figures = append(s.Figures, report.Figure{Name: "fires", What: "tasks that schedules created beside the beats", Value: float64(fired)})
	return nil
}

// catchUp has all schedules fire for days that are over, of each round others; it returns when the first have fired, while others are
// still being asked. At its end some must have fired meanwhile; it waits until none is left to fire.
func (f *fixture) catchUp(ctx context.Context, round int, fired *int) (end func() error, err error) {
	till := time.Now().UTC().Truncate(24*time.Hour).AddDate(0, 0, -firesOfEach*round)
	body := fmt.Sprintf(`{"from":%q,"to":%q}`, till.AddDate(0, 0, -firesOfEach).Format(time.RFC3339), till.Format(time.RFC3339))
	before, err := f.waiting(ctx)
	if err != nil {
		return nil, err
	}
	asked := make(chan error, 1)
	go func() {
		asked <- someOf(schedules, 2, func(i int) error { // so that what is measured is the fires, not the asking
			return f.call(ctx, http.MethodPost, fmt.Sprintf("/v1/schedules/bench-%d/backfill", i), body, nil)
		})
	}()
	begun, err := f.waitingBeyond(ctx, before)
	if err != nil {
		return nil, errors.Join(err, <-asked)
	}
	return func() error {
		now, err := f.waiting(ctx)
		*fired += now - begun
		if err == nil && now == begun {
			err = errors.New("no schedule fired beside the beats: they had caught up before")
		}
		if err = errors.Join(err, <-asked); err == nil {
			_, err = f.waitingBeyond(ctx, before+schedules*firesOfEach-1)
		}
		return err
	}, nil
}

// waitingBeyond waits until schedules have created more than n tasks.
func (f *fixture) waitingBeyond(ctx context.Context, n int) (int, error) {
	for {
		now, err := f.waiting(ctx)
		if err = errors.Join(err, ctx.Err()); err != nil || now > n {
			return now, err
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// waiting is how many tasks schedules have created.
func (f *fixture) waiting(ctx context.Context) (int, error) {
	var queues struct {
		Queues []struct {
			Queue string `json:"queue"`
			Depth int    `json:"depth"`
		} `json:"queues"`
	}
	if err := f.call(ctx, http.MethodGet, "/v1/queues", "", &queues); err != nil {
		return 0, err
	}
	for _, q := range queues.Queues {
		if q.Queue == scheduleQueue {
			return q.Depth, nil
		}
	}
	return 0, nil
}
