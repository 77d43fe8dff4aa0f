package schedules

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/schema"
	"github.com/lubdub-io/lubdub/tracker/store"
)

const (
	batchFires = 100     // whose tasks are created together
	batchBytes = 4 << 20 // size of their payloads and other fields, unless a single one is larger

	retryPause     = time.Second // after which a refused fire is retried; it doubles with each refusal,
	retryPauseMost = time.Minute // up to this
)

// job is the waiting fires of one schedule that are handled together.
type job struct {
	found
	fires []waiting
	done  []settled
	pause time.Duration // how long the remaining fires wait: they would fail for now as well
}

// settled is a fire whose outcome is known.
type settled struct {
	fire    waiting
	outcome Outcome
	detail  string // the task, the one that still runs, or the code of the refusal
	err     error  // of a refusal
}

// jobsOf takes as many of the waiting fires as may be handled and as their tenants may have. Of a schedule whose last fires were
// refused for now it takes one: if that one is refused too, the others would be.
func (s *Service) jobsOf(now time.Time, all []found, allow func(fires int) int) (jobs []*job) {
	for _, f := range all {
		if f.Schedule == nil || len(f.waiting) == 0 {
			continue
		}
		n := len(f.waiting)
		if f.backoff > 0 {
			n = 1
		}
		if n = s.paces.take(f.scope.Tenant, now, n, f.bytes); n == 0 {
			continue
		}
		if n = allow(n); n == 0 {
			break
		}
		jobs = append(jobs, &job{found: f, fires: f.waiting[:n]})
	}
	return jobs
}

// batches splits jobs into batches that are created together.
func batches(jobs []*job) (all [][]*job) {
	fires, bytes := batchFires, batchBytes
	for _, j := range jobs {
		size := len(j.fires) * j.bytes
		if fires+len(j.fires) > batchFires || bytes+size > batchBytes {
			all, fires, bytes = append(all, nil), 0, 0
		}
		fires, bytes = fires+len(j.fires), bytes+size
		all[len(all)-1] = append(all[len(all)-1], j)
	}
	return all
}

// create creates the tasks of waiting fires, records their outcomes, and returns those that this call recorded. Whatever fails is
// repeated by the next look, which finds a created task by its key.
func (s *Service) create(ctx context.Context, op string, now time.Time, jobs []*job) (done []settled, err error) {
	if err := s.skipOverlaps(ctx, op, jobs); err != nil {
		return nil, err
	}
	if err := s.readTasks(ctx, op, jobs); err != nil {
		return nil, err
	}
	if err := s.findOlder(ctx, op, now, jobs); err != nil {
		return nil, err
	}
	s.createTasks(ctx, jobs)
	calls := make([]*store.Call, len(jobs))
	for i, j := range jobs {
		calls[i] = s.settleCall(j.ref, j.version, j.Next, j.pause, j.done)
	}
	s.store.DoBulk(ctx, op, calls)
	for i, j := range jobs {
		for at, d := range j.done {
			if calls[i].Err == nil && readSettle(calls[i].Reply, at) {
				done = append(done, d)
				s.count(j.ref, d)
			}
		}
	}
	return done, store.FirstError(calls)
}

// readTasks reads the specifications of the tasks.
func (s *Service) readTasks(ctx context.Context, op string, jobs []*job) error {
	var calls []*store.Call
	var of []*job
	for _, j := range jobs {
		if len(j.fires) > 0 {
			calls, of = append(calls, s.readCall([]ref{j.ref}, 0, wholeTask)), append(of, j)
		}
	}
	s.store.DoBulk(ctx, op, calls)
	for i, j := range of {
		if calls[i].Err != nil {
			return calls[i].Err
		}
		if read := readRead([]ref{j.ref}, calls[i].Reply).schedules[0]; read != nil {
			j.Task = read.Task
		} else {
			j.fires = nil // it has just been deleted
		}
	}
	return nil
}

// findOlder settles fires whose tasks an older release has created under other IDs. It finds them by their idempotency keys while
// these are kept, later by their IDs.
func (s *Service) findOlder(ctx context.Context, op string, now time.Time, jobs []*job) error {
	var refs []*schema.TaskRef
	var of []*job
	for _, j := range jobs {
		for _, w := range j.fires {
			if j.mayBeOlder(w.at, now) {
				refs, of = append(refs, s.store.Ref(j.scope, olderTaskOf(j.scope, j.id, w.at))), append(of, j)
			}
		}
	}
	if len(refs) == 0 {
		return nil
	}
	states, err := s.tasks.States(ctx, op, refs)
	if err != nil {
		return err
	}
	made := map[string]bool{}
	for i, is := range states {
		if is.State != "" {
			made[refs[i].ID] = true
		}
	}
	for _, j := range of {
		older, rest := split(j.fires, func(w waiting) bool { return made[olderTaskOf(j.scope, j.id, w.at)] && j.mayBeOlder(w.at, now) })
		j.fires = rest
		for _, w := range older {
			j.done = append(j.done, settled{fire: w, outcome: Created, detail: olderTaskOf(j.scope, j.id, w.at)})
		}
	}
	return nil
}

// createTasks creates the tasks of the jobs' fires. A task that this fire created before is found; any other task with its ID does
// not belong to the fire, which is then refused.
func (s *Service) createTasks(ctx context.Context, jobs []*job) {
	var tasks []model.NewTask
	var of []*job
	var fires []waiting
	for _, j := range jobs {
		for _, w := range j.fires {
			n := j.Task
			n.TaskID, n.ScheduleID = taskOf(j.scope, j.id, w.at), j.id
			n.IdempotencyKey, n.IdempotencyHash = keyOf(j.id, w.at), firesHash
			tasks, of, fires = append(tasks, n), append(of, j), append(fires, w)
		}
	}
	if len(tasks) == 0 {
		return
	}
	for i, result := range s.tasks.CreateBatch(ctx, tasks) {
		j, done := of[i], settled{fire: fires[i], outcome: Created, detail: tasks[i].TaskID}
		switch code := model.CodeOf(result.Err); {
		case result.Err == nil:
			done.detail = result.Created.Task.ID
		case slices.Contains(passing, code):
			j.pause = max(j.pause, pauseAfter(result.Err, j.backoff))
			s.metrics.deferred.Inc()
			continue
		default:
			done.outcome, done.detail, done.err = Refused, string(code), result.Err
		}
		j.done = append(j.done, done)
	}
}

// pauseAfter returns how long the fires of a schedule wait after a refusal. If Redis is slow or down, the tenant did not cause it,
// and the fires of all that were created together are affected: they are retried soon.
func pauseAfter(refusal error, before time.Duration) time.Duration {
	var e *model.Error
	switch code := model.CodeOf(refusal); {
	case code == model.Unavailable, code == model.Overloaded && errors.As(refusal, &e) && !e.TooMany:
		return retryPause
	}
	return min(max(retryPause, 2*before), retryPauseMost)
}

// passing are refusals after which a creation is retried: the store is down, a quota is used up, or no worker can take a placed
// task now.
var passing = []model.Code{model.Unavailable, model.Overloaded, model.NoFreshWorkers, model.NoMatchingWorkers, model.NoCapacity}

// skipOverlaps removes from the jobs of schedules that skip overlaps the fires whose previous task still runs, and of the others
// all but the first. It does not affect fires that were requested manually.
func (s *Service) skipOverlaps(ctx context.Context, op string, jobs []*job) error {
	var refs []*schema.TaskRef
	var checked []*job
	for _, j := range jobs {
		if j.SkipOverlap && slices.ContainsFunc(j.fires, isByTime) {
			checked = append(checked, j)
			refs = append(refs, s.store.Ref(j.scope, j.task)) // "": no task has that ID
		}
	}
	states, err := s.tasks.States(ctx, op, refs)
	if err != nil {
		return err
	}
	var calls []*store.Call
	var deciding []*job
	for i, j := range checked {
		var byTime []waiting
		byTime, j.fires = split(j.fires, isByTime)
		first := byTime[0]
		switch {
		case j.decided == millisText(first.at):
			j.fires = append(j.fires, first)
		case states[i].State != "" && !states[i].State.Terminal():
			for _, w := range byTime {
				j.done = append(j.done, settled{fire: w, outcome: Skipped, detail: j.task})
			}
		default:
			calls, deciding = append(calls, s.decideCall(j.ref, first, j.task)), append(deciding, j)
			j.fires = append(j.fires, first)
		}
	}
	s.store.DoBulk(ctx, op, calls)
	for i, c := range calls {
		if c.Err != nil || readCode(c.Reply) != schema.CodeOK {
			deciding[i].fires = deciding[i].fires[:len(deciding[i].fires)-1] // another look decides
		}
	}
	return nil
}

func isByTime(w waiting) bool { return w.kind == ByTime }

// split returns the items of a list that match, and the others.
func split(all []waiting, is func(waiting) bool) (yes, no []waiting) {
	for _, w := range all {
		if is(w) {
			yes = append(yes, w)
		} else {
			no = append(no, w)
		}
	}
	return yes, no
}

// count counts the outcome of a schedule's fire.
func (s *Service) count(of ref, d settled) {
	switch d.outcome {
	case Created:
		s.metrics.fires.WithLabelValues("created").Inc()
	case Skipped:
		s.metrics.fires.WithLabelValues("overlap").Inc()
	case Refused:
		s.metrics.fires.WithLabelValues("refused").Inc()
		s.log.Warn("a schedule's task was refused", of.scope.LogAttr(), "scheduleId", of.id, "error", d.err)
	}
}
