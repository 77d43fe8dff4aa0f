package schedules

import (
	"context"
	"time"

	"github.com/lubdub-io/lubdub/internal/cron"
	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/schema"
)

// maxWaiting bounds how many fires of one schedule may wait for their tasks when further ones are requested.
const maxWaiting = 2 * MaxMaxCatchup

// BackfillResult is the result of a request for fires.
type BackfillResult struct {
	Fires   []Fire // oldest first; their tasks are created, now or later by a sweeper
	Skipped int64  // older ones beyond MaxCatchup, or whose tasks would exceed maxPendingBytes
}

// Fire fires a schedule now, once, whether it is paused or not and whatever still runs. The fire's time is the current second: two
// requests within one second are one fire. Once it is recorded, its task is created here or by a sweeper.
func (s *Service) Fire(ctx context.Context, scope model.Scope, id string) (*Fire, error) {
	const op = "fireSchedule"
	ctx = s.store.Within(ctx, 0)
	r := s.ref(scope, id)
	at, err := s.request(ctx, op, r, nil, maxWaiting)
	if err != nil {
		return nil, err
	}
	f := &Fire{At: at, Kind: Manual, TaskID: taskOf(scope, id, at)}
	all, now, err := s.readAll(ctx, op, []ref{r}, maxWaiting+MaxMaxCatchup, noTask)
	if err != nil || all[0].Schedule == nil {
		return f, nil // it is recorded, and sweepers continue
	}
	j := &job{found: all[0]}
	if times, err := cron.Parse(j.Cron); err == nil {
		j.Next = times.Next(j.Last) // not after now: fires missed by now are examined as before
	}
	for _, w := range j.waiting {
		if w.at.Equal(at) {
			j.fires = []waiting{w}
		}
	}
	if s.paces.take(scope.Tenant, now, 1, j.bytes) == 0 {
		return f, nil // the tenant has used up its fires for now, and sweepers continue
	}
	done, err := s.create(ctx, op, now, []*job{j})
	if err == nil && len(done) == 1 {
		if done[0].outcome == Refused {
			return nil, done[0].err
		}
		f.TaskID = done[0].detail
	}
	return f, nil
}

// Backfill fires for times within (from, to], which must be in the past: the latest MaxCatchup of them, up to maxPendingBytes. It
// does not change the last fire and ignores tasks that still run. Sweepers create the tasks.
func (s *Service) Backfill(ctx context.Context, scope model.Scope, id string, from, to time.Time) (*BackfillResult, error) {
	const op = "backfillSchedule"
	ctx = s.store.Within(ctx, 0)
	r := s.ref(scope, id)
	now, of, err := s.read(ctx, op, r)
	switch {
	case err != nil:
		return nil, err
	case !from.Before(to):
		return nil, model.Invalidf("to", "is not after from; a backfill is of the fires after from, up to and with to")
	case to.After(now):
		return nil, model.Invalidf("to", "is in the future (it is %s here); future times fire automatically", now.Format(time.RFC3339))
	}
	times, err := cron.Parse(of.Cron)
	if err != nil {
		return nil, err
	}
	most := max(maxPendingBytes/max(of.bytes, 1), 1)
	fires := times.Newest(from, to, min(of.MaxCatchup, most))
	result := &BackfillResult{Skipped: times.Count(from, to) - int64(len(fires))}
	if len(fires) == 0 {
		return result, nil
	}
	recorded, err := s.requestedFires(ctx, op, r, fires)
	if err != nil {
		return nil, err
	}
	for left := recorded; len(left) > 0; { // if a part fails, a repeat does the rest
		some := left[:min(len(left), firesAtOnce)]
		left = left[len(some):]
		if _, err := s.request(ctx, op, r, some, min(maxWaiting, 2*most)-len(left)); err != nil {
			return nil, err
		}
	}
	for _, at := range fires {
		result.Fires = append(result.Fires, Fire{At: at, Kind: Backfill, TaskID: taskOf(scope, id, at)})
	}
	return result, nil
}

// requestedFires finds out which fires already have their tasks.
func (s *Service) requestedFires(ctx context.Context, op string, r ref, fires []time.Time) ([]requestedFire, error) {
	refs := make([]*schema.TaskRef, len(fires))
	for i, at := range fires {
		refs[i] = s.store.Ref(r.scope, taskOf(r.scope, r.id, at))
	}
	states, err := s.tasks.States(ctx, op, refs)
	if err != nil {
		return nil, err
	}
	requested := make([]requestedFire, len(fires))
	for i, at := range fires {
		requested[i] = requestedFire{at, states[i].State != ""}
	}
	return requested, nil
}

// request records fires, or without any a fire now, and returns its time. At most limit may wait afterwards.
func (s *Service) request(ctx context.Context, op string, r ref, fires []requestedFire, limit int) (at time.Time, err error) {
	c := s.requestCall(r, fires, limit)
	s.store.DoDurably(ctx, op, c)
	if c.Err != nil {
		return at, c.Err
	}
	reply := readRequest(c.Reply)
	switch reply.code {
	case schema.CodeNotFound:
		return at, notFound(op)
	case schema.CodeRefused:
		return at, &model.Error{Code: model.Overloaded, TooMany: true, Op: op, RetryAfter: 10 * time.Second,
			Message: "as many fires of this schedule wait for their tasks as may; wait until these are created"}
	}
	return reply.now, nil
}
