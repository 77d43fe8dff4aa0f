package schedules

import (
	"context"
	"time"

	"github.com/lubdub-io/lubdub/internal/cron"
	"github.com/lubdub-io/lubdub/tracker/schema"
	"github.com/lubdub-io/lubdub/tracker/store"
)

const (
	sweeperLease    = time.Second            // a sweeper that has not reported for this long is left nothing
	minListInterval = 500 * time.Millisecond // between two listings of what is due: a new schedule may fire soon
	restAtLeast     = 250 * time.Millisecond // while all tenants with due schedules have used up their fires for now
	dueAtOnce       = 100                    // schedules of one look
	waitingRead     = 10                     // fires of one schedule that one look handles, so that others have their turn
	onTime          = 10 * time.Second       // an older fire counts as missed
)

// Round configures one look at what is due in the shards of a node.
type Round struct {
	Node   *store.Node
	Shards []int
	Turns  *Turns                                           // of the node
	Grace  func(shard int, sweepers []string) time.Duration // how long due schedules are left to other sweepers
	Allow  func(fires int) int                              // how many of some fires may be handled
}

// RoundResult is the result of a look.
type RoundResult struct {
	More bool          // there is more due now
	Next time.Duration // until something may be due again
}

// FireDue looks once: it records due fires and creates the tasks of recorded ones. If it is interrupted, the next look of any
// sweeper does the rest.
func (s *Service) FireDue(ctx context.Context, round Round) (RoundResult, error) {
	const op = "sweep"
	t := round.Turns
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.stale() {
		if err := s.list(ctx, &round); err != nil {
			return RoundResult{Next: minListInterval}, err
		}
	}
	due, rest := t.take(s.paces)
	result := RoundResult{Next: t.next}
	if len(due) == 0 {
		if rest > 0 { // the remaining schedules belong to tenants that have used up their fires for now
			t.listed = time.Time{}
			result.Next = min(result.Next, max(rest, restAtLeast))
		}
		return result, nil
	}
	all, now, err := s.readAll(ctx, op, due, waitingRead, noTask)
	if err != nil {
		return result, err
	}
	t.now = now
	if err := s.recordAll(ctx, op, now, all); err != nil {
		return result, err
	}
	jobs := s.jobsOf(now, all, round.Allow)
	t.count(due, jobs)
	for _, batch := range batches(jobs) {
		if ctx.Err() != nil {
			break
		}
		if _, err := s.create(ctx, op, now, batch); err != nil {
			return result, err
		}
	}
	if result.More = len(jobs) > 0 || t.more(); result.More {
		result.Next = 0
	}
	return result, nil
}

// plan is what is due of a schedule.
type plan struct {
	fires   []time.Time // to record, oldest first
	skipped int64       // older fires that are dropped
	last    time.Time   // the last fire that this covers
	next    time.Time   // the next fire; zero: none
}

// planOf computes what a schedule has to fire within (last, now].
func planOf(of *Schedule, now time.Time) (*plan, error) {
	times, err := cron.Parse(of.Cron)
	if err != nil {
		return nil, err
	}
	p := &plan{last: of.Last, next: times.Next(latest(now, of.Last))}
	total := times.Count(of.Last, now)
	if total == 0 {
		return p, nil
	}
	p.fires = times.Newest(of.Last, now, max(of.MaxCatchup, 1))
	p.skipped = total - int64(len(p.fires))
	if len(p.fires) > firesAtOnce { // the next look handles the rest
		p.fires = p.fires[:firesAtOnce]
	}
	p.last = p.fires[len(p.fires)-1]
	if of.MaxCatchup == 0 && (now.Sub(p.last) > onTime+of.backoff || !p.last.After(of.resumed)) {
		p.fires, p.skipped = nil, total // it was missed
	}
	return p, nil
}

// recordAll records the due fires of schedules and sets which fires of each wait then. It skips schedules that another sweeper has
// handled first.
func (s *Service) recordAll(ctx context.Context, op string, now time.Time, all []found) error {
	var calls []*store.Call
	var of []*found
	var deleted []ref
	for i := range all {
		f := &all[i]
		switch {
		case f.Schedule == nil:
			deleted = append(deleted, f.ref)
			continue
		case !f.PausedAt.IsZero():
			continue
		}
		p, err := planOf(f.Schedule, now)
		if err != nil {
			s.log.Error("a stored schedule cannot be read; delete it, or save it again", f.scope.LogAttr(), "scheduleId", f.id, "error", err)
			continue
		}
		f.Next = p.next
		calls, of = append(calls, s.recordCall(f.ref, f.Schedule, p)), append(of, f)
	}
	for _, group := range schema.ByShard(deleted, readAtOnce, func(r ref) int { return r.shard }) {
		calls = append(calls, s.repairCall(group))
	}
	s.store.DoBulk(ctx, op, calls)
	for i, f := range of {
		if calls[i].Err != nil {
			continue
		}
		reply := readRecord(calls[i].Reply)
		if f.waiting = reply.waiting; reply.recorded && reply.skipped > 0 {
			s.metrics.missed.Add(float64(reply.skipped))
			s.log.Warn("a schedule missed fires that are more than it catches up", f.scope.LogAttr(), "scheduleId", f.id,
				"skipped", reply.skipped, "maxCatchup", f.MaxCatchup)
		}
	}
	return store.FirstError(calls)
}
