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

// Host is the machine and version of a worker. It never changes for a worker's ID, so it is cached.
type Host struct{ Machine, Version string }

// WorkerName identifies a worker.
type WorkerName struct {
	Scope model.Scope
	ID    string
}

// These limit how many workers are cached, some 250 bytes each, and how long one without a record is: the store may have lost it, and it
// may come back.
const (
	maxCachedHosts = 1 << 15
	absentFor      = 10 * time.Second
)

type hosts struct {
	byWorker *lru.Cache[WorkerName, cachedHost]
}

type cachedHost struct {
	Host
	read time.Time
}

func newHosts() hosts {
	cache, _ := lru.New[WorkerName, cachedHost](maxCachedHosts) // fails only for sizes below 1
	return hosts{cache}
}

// get returns the cached host of a worker; false: it must be read from the store.
func (h hosts) get(name WorkerName) (Host, bool) {
	found, ok := h.byWorker.Get(name)
	return found.Host, ok && (found.Machine != "" || time.Since(found.read) <= absentFor)
}

// Hosts returns the hosts of workers, and the zero Host for workers without a record. `op` is the operation in errors.
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

// Resolve sets the machine and version of each event's worker, if the store still has its record.
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
