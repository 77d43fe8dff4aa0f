package schedules

import (
	"context"
	"time"

	"github.com/lubdub-io/lubdub/internal/cron"
	"github.com/lubdub-io/lubdub/tracker/schema"
	"github.com/lubdub-io/lubdub/tracker/store"
)

const (
	sweeperLease = time.Second            // a sweeper that has not been heard for so long is left nothing
	lookAtLeast  = 500 * time.Millisecond // between two listings of what is due: a schedule may be saved that fires soon
	restAtLeast  = 250 * time.Millisecond // while all that is due belongs to tenants that have had their fires for now
	dueAtOnce    = 100                    // schedules of one look
	waitingRead  = 10                     // fires of one schedule that one look deals with, so that others have their turn
	onTime       = 10 * time.Second       // a fire that is no older is none that was missed
)

// Look is one look at what is due in the shards of a node.
type Look struct {
	Node   *store.Node
	Shards []int
	Turns  *Turns                                           // of the node
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
	t := look.Turns
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.stale() {
		if err := s.list(ctx, &look); err != nil {
			return Looked{Next: lookAtLeast}, err
		}
	}
	due, rest := t.take(s.paces)
	looked := Looked{Next: t.next}
	if len(due) == 0 {
		if rest > 0 { // what else is due belongs to tenants that have had their fires for now
			t.listed = time.Time{}
			looked.Next = min(looked.Next, max(rest, restAtLeast))
		}
		return looked, nil
	}
	all, now, err := s.readAll(ctx, op, due, waitingRead, noTask)
	if err != nil {
		return looked, err
	}
	t.now = now
	if err := s.recordAll(ctx, op, now, all); err != nil {
		return looked, err
	}
	jobs := s.jobsOf(now, all, look.Allow)
	t.count(due, jobs)
	for _, batch := range batches(jobs) {
		if ctx.Err() != nil {
			break
		}
		if _, err := s.create(ctx, op, now, batch); err != nil {
			return looked, err
		}
	}
	if looked.More = len(jobs) > 0 || t.more(); looked.More {
		looked.Next = 0
	}
	return looked, nil
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
	if of.MaxCatchup == 0 && (now.Sub(p.last) > onTime+of.backoff || !p.last.After(of.resumed)) {
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
