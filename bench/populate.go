package bench

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/lubdub-io/lubdub/bench/load"
)

// populated holds the results of the loads that created the tasks and started them.
type populated struct {
	create, start load.Result
}

// populateConnections are few: each has a whole batch under way, and what is under way has a second to land in Redis.
const populateConnections = 4

// populate creates tasks in batches and starts them by their first beats, in batches too.
func (b *bench) populate(ctx context.Context, f *fixture, t *tasks) (p populated, err error) {
	pool, err := load.Dial(ctx, f.address(), populateConnections)
	if err != nil {
		return p, err
	}
	defer pool.Close()
	n := t.len()
	if p.create, err = b.createAll(ctx, pool, f, t); err == nil {
		err = b.nearly(p.create, n, "created")
	}
	if err != nil {
		return p, err
	}
	t.forget()
	for range 3 { // until every task runs; a beat may be repeated
		var again load.Result
		again, err = pool.Run(ctx, load.Load{Source: t.beatInBatches(batchSize, true, true),
			Progress: b.progress.of("first beats", "beats", int64(t.len()))})
		if p.start.Elapsed == 0 {
			p.start = again
		}
		if err == nil {
			err = complete(again, t.len(), "started")
		}
		if err == nil || ctx.Err() != nil {
			break
		}
	}
	f.tracked += t.len()
	return p, err
}

// createAll creates tasks, and again those that were refused.
func (b *bench) createAll(ctx context.Context, pool load.Generator, f *fixture, t *tasks) (all load.Result, err error) {
	for left := int64(t.len()); ; time.Sleep(time.Second) { // as Retry-After says
		r, err := pool.Run(ctx, load.Load{Source: t.create(f.control), Progress: b.progress.of("creating tasks", "tasks", left)})
		all.Elapsed += r.Elapsed
		all.Beats += r.Beats
		all.NotOK = r.NotOK // those of the last time remain
		if left -= r.Beats; err != nil || left == 0 || r.Beats == 0 {
			return all, err
		}
	}
}

// complete is an error unless all n were.
func complete(r load.Result, n int, what string) error {
	if r.Beats == int64(n) {
		return nil
	}
	return fmt.Errorf("only %d of %d tasks were %s: %s", r.Beats, n, what, refusals(r.NotOK))
}

// nearly lets one in twenty be missing, and notes it: filling a store as fast as it goes may overload it for a
// moment, and a million tasks less some are as good.
func (b *bench) nearly(r load.Result, n int, what string) error {
	err := complete(r, n, what)
	if err != nil && r.Beats >= int64(n-n/20) {
		b.note("%v", err)
		return nil
	}
	return err
}

func refusals(notOK map[string]int64) string {
	var list []string
	for _, why := range slices.Sorted(maps.Keys(notOK)) {
		list = append(list, fmt.Sprintf("%d × %s", notOK[why], why))
	}
	return strings.Join(list, ", ")
}

// perSecond is a rate, for figures.
func perSecond(n int64, d time.Duration) float64 { return float64(n) / d.Seconds() }
