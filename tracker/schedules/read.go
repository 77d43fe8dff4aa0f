package schedules

import (
	"context"
	"slices"
	"time"

	"github.com/lubdub-io/lubdub/internal/cron"
	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/schema"
	"github.com/lubdub-io/lubdub/tracker/store"
)

// Filter selects schedules of one scope.
type Filter struct {
	Scope      model.Scope
	Descending bool   // by ID
	PageSize   int    // 1 to 100
	After      string // ID after which the page begins; empty: from the start
}

// Page is one page of a list, ordered by ID.
type Page struct {
	Schedules []*Schedule // without the payloads and resources of their tasks
	Next      string      // After for the next page; empty: this is the last one
	Total     int
}

// Get reads one schedule.
func (s *Service) Get(ctx context.Context, scope model.Scope, id string) (*Schedule, error) {
	ctx = s.store.Within(ctx, 0)
	return s.one(ctx, "schedule", s.ref(scope, id))
}

func (s *Service) one(ctx context.Context, op string, r ref) (*Schedule, error) {
	now, found, err := s.read(ctx, op, r)
	if err != nil {
		return nil, err
	}
	return found, s.complete(ctx, op, now, found)
}

// read reads one schedule as it is stored.
func (s *Service) read(ctx context.Context, op string, r ref) (now time.Time, found *Schedule, err error) {
	re, err := s.store.Do(ctx, op, s.readCall([]ref{r}, 0, wholeTask))
	if err != nil {
		return now, nil, err
	}
	reply := readRead([]ref{r}, re)
	if reply.schedules[0] == nil {
		return now, nil, notFound(op)
	}
	return reply.now, reply.schedules[0], nil
}

// complete adds what the record does not have: the next fire and the states of tasks.
func (s *Service) complete(ctx context.Context, op string, now time.Time, all ...*Schedule) error {
	var names []tasksOf
	for _, of := range all {
		if times, err := cron.Parse(of.Cron); err == nil && of.PausedAt.IsZero() {
			of.Next = times.Next(latest(now, of.Last))
		}
		for i := range of.Recent {
			if f := &of.Recent[i]; f.Outcome == Created {
				names = append(names, tasksOf{of.Scope, f})
			}
		}
	}
	refs := make([]*schema.TaskRef, len(names))
	for i, n := range names {
		refs[i] = s.store.Ref(n.scope, n.fire.TaskID)
	}
	states, err := s.tasks.States(ctx, op, refs)
	if err != nil {
		return err
	}
	for i, is := range states {
		names[i].fire.State, names[i].fire.Reason = is.State, is.Reason
	}
	return nil
}

type tasksOf struct {
	scope model.Scope
	fire  *Fire
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// List returns one page of a scope's schedules and counts all.
func (s *Service) List(ctx context.Context, f Filter) (*Page, error) {
	const op = "schedules"
	ctx = s.store.Within(ctx, 0)
	size := min(max(f.PageSize, 1), 100)
	ids, total, err := s.names(ctx, op, f.Scope.String()+"/", f.After, size+1, f.Descending)
	if err != nil {
		return nil, err
	}
	page := &Page{Total: total}
	if len(ids) > size {
		ids = ids[:size]
		page.Next = ids[size-1]
	}
	refs := make([]ref, len(ids))
	for i, id := range ids {
		refs[i] = s.ref(f.Scope, id)
	}
	found, now, err := s.readAll(ctx, op, refs, 0, shortTask)
	if err != nil {
		return nil, err
	}
	for i := range refs {
		if found[i].Schedule != nil {
			page.Schedules = append(page.Schedules, found[i].Schedule)
		}
	}
	return page, s.complete(ctx, op, now, page.Schedules...)
}

// names lists the names with a prefix in all shards, in order, and counts all of them.
func (s *Service) names(ctx context.Context, op, prefix, after string, limit int, descending bool) (names []string, total int, err error) {
	groups := s.store.AllTogether()
	calls := store.CallEach(groups, func(shards []int) *store.Call { return s.listCall(shards, prefix, after, limit, descending) })
	s.store.DoBulk(ctx, op, calls)
	if err := store.FirstError(calls); err != nil {
		return nil, 0, err
	}
	for _, c := range calls {
		some, n := readList(c.Reply)
		names, total = append(names, some...), total+n
	}
	slices.Sort(names)
	if descending {
		slices.Reverse(names)
	}
	return names[:min(len(names), limit)], total, nil
}

// found is a schedule that was read, with some of its waiting fires.
type found struct {
	ref
	*Schedule // nil: it does not exist
	waiting   []waiting
}

// readAll reads many schedules, in their order.
func (s *Service) readAll(ctx context.Context, op string, refs []ref, waiting int, part taskPart) (all []found, now time.Time, err error) {
	order := make([]int, len(refs))
	for i := range refs {
		order[i] = i
	}
	groups := schema.ByShard(order, readAtOnce, func(i int) int { return refs[i].shard })
	calls := make([]*store.Call, len(groups))
	of := make([][]ref, len(groups))
	for g, group := range groups {
		for _, i := range group {
			of[g] = append(of[g], refs[i])
		}
		calls[g] = s.readCall(of[g], waiting, part)
	}
	s.store.DoBulk(ctx, op, calls)
	if err := store.FirstError(calls); err != nil {
		return nil, now, err
	}
	all = make([]found, len(refs))
	for g, group := range groups {
		reply := readRead(of[g], calls[g].Reply)
		now = latest(now, reply.now)
		for j, i := range group {
			all[i] = found{refs[i], reply.schedules[j], reply.waiting[j]}
		}
	}
	return all, now, nil
}

// NextFires returns the next fires after now, at most count, as if the schedule were not paused.
func (s *Service) NextFires(ctx context.Context, scope model.Scope, id string, count int) ([]time.Time, error) {
	ctx = s.store.Within(ctx, 0)
	now, of, err := s.read(ctx, "nextFires", s.ref(scope, id))
	if err != nil {
		return nil, err
	}
	times, err := cron.Parse(of.Cron)
	if err != nil {
		return nil, store.AsUnavailable("nextFires", err) // it was checked when it was saved
	}
	return firesAfter(times, latest(now, of.Last), count), nil
}

// PreviewFires returns the fires after now, at most count, that a schedule with this cron expression would have. It reads no schedule.
func PreviewFires(expression string, now time.Time, count int) ([]time.Time, error) {
	spec := Spec{Cron: expression}
	if err := spec.checkCron(now); err != nil {
		return nil, err
	}
	times, err := cron.Parse(spec.Cron)
	if err != nil {
		return nil, err
	}
	return firesAfter(times, now, count), nil
}

func firesAfter(times *cron.Schedule, after time.Time, count int) (next []time.Time) {
	for at := times.Next(after); !at.IsZero() && len(next) < min(count, MaxNext); at = times.Next(at) {
		next = append(next, at)
	}
	return next
}
