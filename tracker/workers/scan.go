package workers

import (
	"context"
	"slices"
	"time"

	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/schema"
	"github.com/lubdub-io/lubdub/tracker/store"
)

// idsAtOnce is how many IDs one script lists.
const idsAtOnce = 1000

// workersAtOnce is how many workers are read before the unwanted ones are dropped: with records of MaxWorkerBytes that is 8 MiB.
const workersAtOnce = 1000

// shortAtOnce is the same for workers without their long fields.
const shortAtOnce = 2_500

// IDs lists the workers of a scope in the order of their ids.
func (s *reader) IDs(ctx context.Context, op string, scope model.Scope, statuses []model.WorkerStatus) ([]*schema.WorkerRef, error) {
	ids, err := s.indexed(ctx, op, scope.String()+"/", model.StatusCode(statuses...))
	if err != nil {
		return nil, err
	}
	refs := make([]*schema.WorkerRef, 0, len(ids))
	for _, id := range ids {
		if r, ok := s.store.WorkerRef(scope, id); ok {
			refs = append(refs, r)
		}
	}
	return refs, nil
}

// indexed lists the entries of every shard's index of workers that follow a prefix, for some letters, sorted.
func (s *reader) indexed(ctx context.Context, op, prefix, letters string) (ids []string, err error) {
	type list struct {
		shard          int
		letters, after string
	}
	var open []list
	for shard := range s.store.Keys {
		open = append(open, list{shard, letters, ""})
	}
	for len(open) > 0 && len(ids) < maxWorkers {
		calls := make([]*store.Call, len(open))
		for i, l := range open {
			calls[i] = s.scripts.ListCall(l.shard, []string{s.store.Keys[l.shard].Workers},
				ListArgs{Prefix: prefix, States: l.letters, After: l.after, Limit: idsAtOnce / len(l.letters)})
		}
		s.store.DoBulk(ctx, op, calls)
		if err := store.FirstError(calls); err != nil {
			return nil, err
		}
		var more []list
		for i, c := range calls {
			l := open[i]
			for j, page := range ReadList(c.Reply, 1, len(l.letters))[0].IDs {
				if ids = append(ids, page...); len(page) == idsAtOnce/len(l.letters) {
					more = append(more, list{l.shard, l.letters[j : j+1], page[len(page)-1]})
				}
			}
		}
		open = more
	}
	slices.Sort(ids)
	return slices.Compact(ids), nil
}

// sift reads many workers and returns the wanted ones, without their long fields.
func (s *reader) sift(
	ctx context.Context, op string, refs []*schema.WorkerRef, wanted func(*model.Worker) bool,
) (found []*model.Worker, err error) {
	for page := range slices.Chunk(refs, workersAtOnce) {
		workers, err := s.Read(ctx, op, page)
		if err != nil {
			return nil, err
		}
		for _, w := range workers {
			if wanted(w) {
				found = append(found, w.Slim())
			}
		}
	}
	return found, nil
}

// candidateFields are the fields of a worker's record that filters and strategies need.
var candidateFields = []string{
	schema.WorkerQueue, schema.WorkerStatus, schema.WorkerReason, schema.WorkerTypes, schema.WorkerRuntimes, schema.WorkerLabels,
	schema.WorkerMaxConcurrent, schema.WorkerInterval, schema.WorkerTimeout, schema.WorkerProbes, schema.WorkerSelected,
	schema.WorkerElsewhere, schema.WorkerCordoned,
}

// ReadCandidates reads the workers of a queue, or of all queues for "", with only the fields that a selection needs, since a scope
// may have very many workers. It returns the wanted ones, without their long fields.
func (s *reader) ReadCandidates(
	ctx context.Context, run runner, op string, refs []*schema.WorkerRef, queue string, wanted func(*model.Worker) bool,
) ([]*model.Worker, error) {
	var conditions []condition
	if queue != "" {
		conditions = []condition{{schema.WorkerQueue, is, queue}}
	}
	return s.readSome(ctx, run, op, refs, conditions, candidateFields, wanted)
}

// readSome reads the given fields of workers that meet all conditions, and returns the wanted ones without their long fields.
func (s *reader) readSome(ctx context.Context, run runner, op string, refs []*schema.WorkerRef, conditions []condition, fields []string,
	wanted func(*model.Worker) bool) (workers []*model.Worker, err error) {
	groupsOf, atOnce := schema.ShortByShard, shortAtOnce
	switch {
	case slices.ContainsFunc(fields, isLong):
		groupsOf, atOnce = schema.WorkersByShard, workersAtOnce
	case slices.ContainsFunc(conditions, func(c condition) bool { return isLong(c.field) }):
		groupsOf = schema.SoughtByShard
	}
	type page struct {
		groups [][]*schema.WorkerRef
		calls  []*store.Call
	}
	pages := make(chan page, 1) // reads the next one while one is processed
	go func() {
		defer close(pages)
		for refs := range slices.Chunk(refs, atOnce) {
			p := page{groups: groupsOf(refs)}
			for _, group := range p.groups {
				p.calls = append(p.calls, s.scripts.candidatesCall(group, conditions, fields))
			}
			run(ctx, op, p.calls)
			if pages <- p; store.FirstError(p.calls) != nil {
				return
			}
		}
	}()
	for p := range pages {
		if err := store.FirstError(p.calls); err != nil {
			return nil, err
		}
		for g, group := range p.groups {
			readCandidates(p.calls[g].Reply, len(group), fields, func(i int, now time.Time, as stored) {
				if w := newWorker(group[i], now, as); w != nil && wanted(w) {
					workers = append(workers, w.Slim())
				}
			})
		}
	}
	return workers, nil
}

// isLong reports whether a field of a worker's record may have kilobytes.
func isLong(field string) bool {
	return field == schema.WorkerTypes || field == schema.WorkerRuntimes || field == schema.WorkerLabels
}
