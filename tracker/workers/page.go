package workers

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/schema"
	"github.com/lubdub-io/lubdub/tracker/store"
)

// entry is a place in a list: its sort key and its worker.
type entry struct {
	name string // an ID, or <sort key>/<ID>
	ref  *schema.WorkerRef
}

// views shows single workers and sorted pages of many.
type views struct {
	store   *store.Store
	scripts *scripts
	reader  *reader
	loads   *loads
}

// Get reads one worker.
func (s *views) Get(ctx context.Context, scope model.Scope, id string) (*model.Worker, error) {
	const op = "worker"
	ctx = s.store.Within(ctx, 0)
	r, ok := s.store.WorkerRef(scope, id)
	if !ok {
		return nil, NoWorker(op)
	}
	list, err := s.reader.Read(ctx, op, []*schema.WorkerRef{r})
	if err != nil {
		return nil, err
	}
	if len(list) == 0 {
		return nil, NoWorker(op)
	}
	return list[0], s.complete(ctx, op, list)
}

// pageOf returns the 1 to 100 items of a list that follow a name, in order, and the name after which the next page begins, "" for
// none.
func pageOf[T any](all []T, after string, descending bool, size int, name func(T) string) (page []T, next string) {
	order := strings.Compare
	if descending {
		order = func(a, b string) int { return strings.Compare(b, a) }
	}
	slices.SortFunc(all, func(a, b T) int { return order(name(a), name(b)) })
	from := 0
	if after != "" {
		from, _ = slices.BinarySearchFunc(all, after, func(t T, after string) int { // the first one after it
			if order(name(t), after) <= 0 {
				return -1
			}
			return 1
		})
	}
	page = all[from:]
	if size = min(max(size, 1), 100); len(page) > size {
		page = page[:size]
		next = name(page[size-1])
	}
	return page, next
}

// List returns one page of workers and counts all that match. Unless the order is that of registration, a worker that moves
// between two pages may be on both or on neither.
func (s *views) List(ctx context.Context, f WorkerFilter) (*WorkerPage, error) {
	const op = "workers"
	ctx = s.store.Within(ctx, 0)
	entries, total, err := s.entries(ctx, op, &f)
	if err != nil {
		return nil, err
	}
	page := &WorkerPage{Total: total}
	entries, page.Next = pageOf(entries, f.After, f.Descending, f.PageSize, func(e entry) string { return e.name })
	refs := make([]*schema.WorkerRef, len(entries))
	for i, e := range entries {
		refs[i] = e.ref
	}
	if page.Workers, err = s.reader.Read(ctx, op, refs); err != nil {
		return nil, err
	}
	return page, s.complete(ctx, op, page.Workers)
}

// entries returns the workers that a filter matches, or as many of them as a page needs, and their number. It reads only the
// fields that the filter needs.
func (s *views) entries(ctx context.Context, op string, f *WorkerFilter) (entries []entry, total int, err error) {
	if !f.narrows() && f.Sort == ByRegistration {
		return s.inOrder(ctx, op, f)
	}
	refs, err := s.indexedFor(ctx, op, f)
	if err != nil {
		return nil, 0, err
	}
	conditions, rest := f.split()
	workers, err := s.reader.readSome(ctx, s.store.DoBulk, op, refs, conditions, rest.fields(), rest.matches)
	if err != nil {
		return nil, 0, err
	}
	if f.Schedulable != nil {
		if err := s.loads.CountLoad(ctx, s.store.DoBulk, op, workers); err != nil {
			return nil, 0, err
		}
	}
	if err := s.readLineages(ctx, op, f, workers); err != nil {
		return nil, 0, err
	}
	for _, w := range workers {
		if f.Schedulable != nil && *f.Schedulable != (len(w.FailedFilters()) == 0) || f.Flapping != nil && *f.Flapping != w.Flapping {
			continue
		}
		r, _ := s.store.WorkerRef(w.Scope, w.ID)
		entries = append(entries, entry{f.Sort.key(w) + w.ID, r})
	}
	return entries, len(entries), nil
}

// readLineages reads the data about lineages that the filter and its order need.
func (s *views) readLineages(ctx context.Context, op string, f *WorkerFilter, workers []*model.Worker) error {
	for _, of := range []struct {
		needed bool
		calls  func([]*model.Worker) ([]*store.Call, func())
	}{{f.Sort == ByUptime, s.uptimeCalls}, {f.Sort == ByStaleCount || f.Flapping != nil, s.staleCalls}} {
		if !of.needed {
			continue
		}
		calls, set := of.calls(workers)
		s.store.DoBulk(ctx, op, calls)
		if err := store.FirstError(calls); err != nil {
			return err
		}
		set()
	}
	return nil
}

// key returns the sort key that precedes the ID in the name of an entry.
func (o WorkerSort) key(w *model.Worker) string {
	switch o {
	case ByLastHeartbeat:
		return schema.Sortable(w.LastHeartbeatAt) + "/"
	case ByStaleCount:
		return fmt.Sprintf("%06d/", w.StaleCount)
	case ByUptime:
		return fmt.Sprintf("%05.1f/", w.Uptime)
	}
	return ""
}

// inOrder returns the next workers by ID, of each status and shard as many as a page may need, and counts all.
func (s *views) inOrder(ctx context.Context, op string, f *WorkerFilter) (entries []entry, total int, err error) {
	letters := model.StatusCode(f.statuses()...)
	calls := make([]*store.Call, len(s.store.Keys))
	for shard, k := range s.store.Keys {
		calls[shard] = s.scripts.ListCall(shard, []string{k.Workers}, ListArgs{Prefix: f.Scope.String() + "/", States: letters, After: f.After,
			Reverse: f.Descending, Limit: min(max(f.PageSize, 1), 100) + 1, Count: letters})
	}
	s.store.DoBulk(ctx, op, calls)
	if err := store.FirstError(calls); err != nil {
		return nil, 0, err
	}
	for _, c := range calls {
		of := ReadList(c.Reply, 1, len(letters))[0]
		for i := range letters {
			total += of.Counts[i]
			for _, id := range of.IDs[i] {
				if r, ok := s.store.WorkerRef(f.Scope, id); ok {
					entries = append(entries, entry{id, r})
				}
			}
		}
	}
	return entries, total, nil
}

func (f *WorkerFilter) statuses() []model.WorkerStatus {
	if len(f.Statuses) > 0 {
		return f.Statuses
	}
	return model.WorkerStatuses
}

// indexedFor returns the workers from the index that covers all matches of the filter.
func (s *views) indexedFor(ctx context.Context, op string, f *WorkerFilter) ([]*schema.WorkerRef, error) {
	if f.MachineID == "" {
		return s.reader.IDs(ctx, op, f.Scope, f.statuses())
	}
	ids, err := s.reader.OfMachine(ctx, op, f.Scope, f.MachineID)
	if err != nil {
		return nil, err
	}
	refs := make([]*schema.WorkerRef, 0, len(ids))
	for id := range ids {
		if r, ok := s.store.WorkerRef(f.Scope, id); ok {
			refs = append(refs, r)
		}
	}
	return refs, nil
}

// mostSought is how many labels Redis searches for; each search may scan 8 KiB.
const mostSought = 4

func notALabelKey(key string) bool { return !model.ValidLabelKey(key) }

// split returns the conditions that Redis checks, so that other workers are not read, and a filter for the rest.
func (f *WorkerFilter) split() (conditions []condition, rest WorkerFilter) {
	rest = *f
	for _, c := range []struct {
		field, how string
		text       *string
	}{
		{schema.WorkerQueue, is, &rest.Queue}, {schema.WorkerName, is, &rest.Name}, {schema.WorkerVersion, is, &rest.Version},
		{schema.WorkerTypes, lists, &rest.Type}, {schema.WorkerRuntimes, lists, &rest.Runtime},
	} {
		if text := *c.text; text != "" && (c.how != lists || !strings.Contains(text, ",")) {
			conditions = append(conditions, condition{c.field, c.how, text})
			*c.text = ""
		}
	}
	if len(f.Labels) > mostSought || slices.ContainsFunc(slices.Collect(maps.Keys(f.Labels)), notALabelKey) {
		return conditions, rest
	}
	for key, value := range f.Labels { // such a key has no quotes, and in a value they are escaped, so a match is that label
		conditions = append(conditions, condition{schema.WorkerLabels, contains, model.PackLabel(key, value)})
	}
	rest.Labels = nil
	return conditions, rest
}

// fields returns the fields of a worker's record that the rest of the filter after split, and its order, need.
func (f *WorkerFilter) fields() []string {
	fields := []string{schema.WorkerStatus}
	if f.Schedulable != nil {
		fields = append(slices.Clone(candidateFields), schema.WorkerMachine, schema.WorkerLastBeatWall)
	}
	for _, of := range []struct {
		wanted bool
		fields []string
	}{
		{f.Type != "", []string{schema.WorkerTypes}},
		{f.Runtime != "", []string{schema.WorkerRuntimes}},
		{f.MachineID != "", []string{schema.WorkerMachine}},
		{len(f.Labels) > 0, []string{schema.WorkerLabels}},
		{f.Liveness != "", []string{schema.WorkerInterval, schema.WorkerTimeout, schema.WorkerProbes}},
		{f.Sort == ByLastHeartbeat || f.SilentFor > 0, []string{schema.WorkerLastBeatWall}},
		{f.Sort == ByStaleCount || f.Sort == ByUptime || f.Flapping != nil, []string{schema.WorkerLineage, schema.WorkerMachine}},
		{f.Sort == ByUptime, []string{schema.WorkerRegistered, schema.WorkerEnded, schema.WorkerReason, schema.WorkerLastBeatWall,
			schema.WorkerInterval, schema.WorkerTimeout, schema.WorkerProbes}},
	} {
		for _, name := range of.fields {
			if of.wanted && !slices.Contains(fields, name) {
				fields = append(fields, name)
			}
		}
	}
	return fields
}
