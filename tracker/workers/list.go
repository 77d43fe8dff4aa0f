package workers

import (
	"context"
	"slices"
	"time"

	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/schema"
	"github.com/lubdub-io/lubdub/tracker/store"
)

// WorkerFilter chooses workers of one scope. Zero fields do not filter.
type WorkerFilter struct {
	Scope       model.Scope
	Queue       string
	Statuses    []model.WorkerStatus // none: all
	Type        string
	Runtime     string
	MachineID   string
	Name        string
	Version     string
	Labels      map[string]string
	Liveness    model.Liveness
	Schedulable *bool
	Flapping    *bool
	SilentFor   time.Duration // in shard time, or never heard

	Sort       WorkerSort
	Descending bool   // the other way round
	PageSize   int    // 1 to 100
	After      string // Next of the page before; empty: from the start

	withMachine bool // they are taken offline with their machine, whose hold covers them
}

// WorkerSort is what the order of a list of workers goes by.
type WorkerSort string

// The orders of lists of workers. Those that are the same in it follow each other as they registered.
const (
	ByRegistration  WorkerSort = ""
	ByLastHeartbeat WorkerSort = "lastHeartbeatAt"
	ByStaleCount    WorkerSort = "staleCount24h"
	ByUptime        WorkerSort = "uptimePct24h"
)

// WorkerPage is one page of a list.
type WorkerPage struct {
	Workers []*model.Worker
	Next    string // give it as After for the next page; empty: this was the last
	Total   int    // of all pages
}

// maxWorkers bounds how many workers of one scope are examined. Beyond that they belong in several workspaces.
const maxWorkers = 100_000

// idsAtOnce is how many ids one script lists.
const idsAtOnce = 1000

// workersAtOnce is how many workers are read before those that are not wanted are dropped: records of MaxWorkerBytes come to 8
// MiB then.
const workersAtOnce = 1000

// shortAtOnce is the same of workers of which nothing is read that may be long.
const shortAtOnce = 2_500

// WorkerIDs lists the workers of a scope in the order of their ids.
func (s *Service) IDs(ctx context.Context, op string, scope model.Scope, statuses []model.WorkerStatus) ([]*schema.WorkerRef, error) {
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

// indexed lists what every shard's index of workers has behind a prefix for some letters, sorted.
func (s *Service) indexed(ctx context.Context, op, prefix, letters string) (ids []string, err error) {
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
			calls[i] = s.ListCall(l.shard, []string{s.store.Keys[l.shard].Workers},
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

// sift reads many workers and returns those that are wanted, without what may be long.
func (s *Service) sift(
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

// narrows reports whether the filter asks for more than a scope and a status.
func (f *WorkerFilter) narrows() bool {
	return f.Queue != "" || f.Type != "" || f.Runtime != "" || f.MachineID != "" || f.Name != "" || f.Version != "" || len(f.Labels) > 0 ||
		f.Liveness != "" || f.Schedulable != nil || f.Flapping != nil || f.SilentFor > 0
}

// matches reports whether a worker has what the filter asks for, apart from being schedulable or flapping, which take counts.
func (f *WorkerFilter) matches(w *model.Worker) bool {
	return (len(f.Statuses) == 0 || slices.Contains(f.Statuses, w.Status)) && (f.Queue == "" || w.Queue == f.Queue) &&
		(f.Type == "" || slices.Contains(w.Types, f.Type)) && (f.Runtime == "" || slices.Contains(w.Runtimes, f.Runtime)) &&
		(f.MachineID == "" || w.MachineID == f.MachineID) && (f.Name == "" || w.Name == f.Name) && (f.Version == "" || w.Version == f.Version) &&
		model.HasLabels(w.Labels, f.Labels) && (f.Liveness == "" || w.Liveness == f.Liveness) &&
		(w.Silent >= f.SilentFor || w.LastHeartbeatAt.IsZero())
}
