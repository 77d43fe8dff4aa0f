package events

import (
	"context"
	"iter"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/schema"
	"github.com/lubdub-io/lubdub/tracker/store"
)

// Host is where a worker runs and which version it is. It never changes for a worker's id, so it is cached.
type Host struct{ Machine, Version string }

// WorkerName names a worker.
type WorkerName struct {
	Scope model.Scope
	ID    string
}

// How many workers are cached, some 250 bytes each, and how long one without a record is: the store may have lost it, and then it
// may come back.
const (
	hostsKept = 1 << 15
	absentFor = 10 * time.Second
)

type hosts struct {
	byWorker *lru.Cache[WorkerName, cachedHost]
}

type cachedHost struct {
	Host
	read time.Time
}

func newHosts() hosts {
	cache, _ := lru.New[WorkerName, cachedHost](hostsKept) // fails for sizes below 1 only
	return hosts{cache}
}

// get returns the cached host of a worker; false: it must be read.
func (h hosts) get(name WorkerName) (Host, bool) {
	found, ok := h.byWorker.Get(name)
	return found.Host, ok && (found.Machine != "" || time.Since(found.read) <= absentFor)
}

// Hosts returns the hosts of workers; the zero Host of those that have no record. op names the operation in metrics.
func (s *Service) Hosts(ctx context.Context, op string, names iter.Seq[WorkerName]) (map[WorkerName]Host, error) {
	found, wanted := map[WorkerName]Host{}, []*schema.WorkerRef(nil)
	for name := range names {
		ref, ok := s.store.WorkerRef(name.Scope, name.ID)
		if _, seen := found[name]; !ok || seen {
			continue
		}
		cached, ok := s.hosts.get(name)
		if found[name] = cached; !ok {
			wanted = append(wanted, ref)
		}
	}
	groups := schema.ByShard(wanted, hostsAtOnce, func(r *schema.WorkerRef) int { return r.Shard })
	calls := store.CallEach(groups, s.hostsCall)
	s.store.DoBulk(ctx, op, calls)
	if err := store.FirstError(calls); err != nil {
		return nil, err
	}
	for i, group := range groups {
		for j, r := range group {
			name, host := WorkerName{r.Scope, r.ID}, readHost(calls[i].Reply, j)
			found[name] = host
			s.hosts.byWorker.Add(name, cachedHost{host, time.Now()})
		}
	}
	return found, nil
}

// Resolve fills in the machine and the version of the worker that an event names, as far as the store still has them.
func (s *Service) Resolve(ctx context.Context, all []*Event) error {
	found, err := s.Hosts(ctx, "events", func(yield func(WorkerName) bool) {
		for _, e := range all {
			if !yield(WorkerName{e.Scope, e.WorkerID}) {
				return
			}
		}
	})
	if err != nil {
		return err
	}
	for _, e := range all {
		h := found[WorkerName{e.Scope, e.WorkerID}]
		e.Version = h.Version
		if e.MachineID == "" {
			e.MachineID = h.Machine
		}
	}
	return nil
}
