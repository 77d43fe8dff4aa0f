package schedules

import (
	"context"
	"slices"
	"time"

	"github.com/lubdub-io/lubdub/internal/cron"
	"github.com/lubdub-io/lubdub/tracker/schema"
	"github.com/lubdub-io/lubdub/tracker/store"
)

const (
	sweeperLease = time.Second            // a sweeper that has not been heard for so long is left nothing
	lookAtLeast  = 500 * time.Millisecond // between two looks: a schedule may be saved that fires soon
	dueAtOnce    = 100                    // schedules of one look
	waitingRead  = 10                     // fires of one schedule that one look deals with, so that others have their turn
	onTime       = 10 * time.Second       // a fire that is no older is none that was missed
)

// Look is one look at what is due in the shards of a node.
type Look struct {
	Node   *store.Node
	Shards []int
	Grace  func(shard int, sweepers []string) time.Duration // how long what is due is left to others
	Allow  func(fires int) int                              // how many of some fires may be dealt with
}

// Looked is what came of it.
type Looked struct {
	More bool          // there is more due now
	Next time.Duration // until something may be due again
}

// FireDue looks once: it records the fires whose time has come, and creates tasks for those that are recorded. Whoever dies in it
// leaves the rest to the next look, of any sweeper.
func (s *Service) FireDue(ctx context.Context, look Look) (Looked, error) {
	const op = "sweep"
	due, looked, err := s.due(ctx, look)
	if err != nil || len(due) == 0 {
		return looked, err
	}
	all, now, err := s.readAll(ctx, op, due, waitingRead, noTask)
	if err != nil {
		return looked, err
	}
	if err := s.recordAll(ctx, op, now, all); err != nil {
		return looked, err
	}
	jobs := jobsOf(all, look.Allow)
	for _, batch := range batches(jobs) {
		if ctx.Err() != nil {
			break
		}
		if _, err := s.create(ctx, op, batch); err != nil {
			return looked, err
		}
	}
	if looked.More = looked.More || len(jobs) > 0; looked.More {
		looked.Next = 0
	}
	return looked, nil
}

// due lists the schedules that are due and not left to others, those that have been longest first.
func (s *Service) due(ctx context.Context, look Look) (refs []ref, looked Looked, err error) {
	type one struct {
		ref
		since time.Time
	}
	var all []one
	groups := s.store.Together(look.Shards)
	calls := make([]*store.Call, len(groups))
	for i, shards := range groups {
		calls[i] = s.dueCall(shards, dueAtOnce)
	}
	looked.Next = lookAtLeast
	lag := time.Duration(0)
	err = s.store.ExecEach(ctx, look.Node, calls, groups, func(shard int, now int64, r store.Reply) {
		at, reply := time.UnixMilli(now), readDue(r)
		looked.Next = min(looked.Next, max(reply.next.Sub(at), 0))
		grace := look.Grace(shard, reply.sweepers)
		for i, name := range reply.names {
			late := at.Sub(reply.since[i])
			if late < grace {
				looked.Next = min(looked.Next, grace-late)
				continue
			}
			lag = max(lag, late)
			if scope, id, ok := schema.SplitName(name); ok {
				all = append(all, one{ref{scope, id, shard}, reply.since[i]})
			}
		}
	})
	if err != nil {
		return nil, looked, err
	}
	s.metrics.lag.Set(lag.Seconds())
	slices.SortStableFunc(all, func(a, b one) int { return a.since.Compare(b.since) })
	for _, o := range all[:min(len(all), dueAtOnce)] {
		refs = append(refs, o.ref)
	}
	looked.More = len(all) > dueAtOnce
	return refs, looked, nil
}

// plan is what a schedule's time has brought.
type plan struct {
	fires   []time.Time // to record, oldest first
	skipped int64       // older ones
	last    time.Time   // fire that is dealt with by that
	next    time.Time   // fire to come; zero: none
}

// planOf works out what a schedule has to fire within (last, now].
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
	if len(p.fires) > firesAtOnce { // the rest is for the next look
		p.fires = p.fires[:firesAtOnce]
	}
	p.last = p.fires[len(p.fires)-1]
	if of.MaxCatchup == 0 && (now.Sub(p.last) > onTime || !p.last.After(of.resumed)) {
		p.fires, p.skipped = nil, total // it was missed
	}
	return p, nil
}

// recordAll records the fires of schedules whose time has come, and says of each which wait then. Of those that another sweeper
// has been faster with, nothing is done.
func (s *Service) recordAll(ctx context.Context, op string, now time.Time, all []found) error {
	var calls []*store.Call
	var of []*found
	var gone []ref
	for i := range all {
		f := &all[i]
		switch {
		case f.Schedule == nil:
			gone = append(gone, f.ref)
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
	for _, group := range schema.ByShard(gone, readAtOnce, func(r ref) int { return r.shard }) {
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
