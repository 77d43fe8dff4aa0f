package events

import (
	"context"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/schema"
	"github.com/lubdub-io/lubdub/tracker/store"
)

// host is where a worker runs, and what. It never changes for a worker's id, so it is remembered.
type host struct {
	machine, version string
	asked            time.Time // of one that is not known: when it was asked for
}

// Of how many workers it is remembered, some 250 bytes each, and how long it is that one is not known: a worker that the
// store has lost may come back.
const (
	hostsKept      = 1 << 15
	unknownIsKnown = 10 * time.Second
)

type hosts struct {
	byWorker *lru.Cache[workerName, host]
}

type workerName struct {
	scope model.Scope
	id    string
}

func newHosts() hosts {
	cache, _ := lru.New[workerName, host](hostsKept) // fails for sizes below 1 only
	return hosts{cache}
}

// get returns what is remembered of a worker; false: it must be looked up.
func (h hosts) get(name workerName) (host, bool) {
	found, ok := h.byWorker.Get(name)
	if ok && found.machine == "" && time.Since(found.asked) > unknownIsKnown {
		return host{}, false
	}
	return found, ok
}

// Resolve fills in the machine and the version of the worker that an event names, as far as the store still knows them.
func (s *Service) Resolve(ctx context.Context, all []*Event) error {
	wanted, seen := []*schema.WorkerRef(nil), map[workerName]bool{}
	for _, e := range all {
		name := workerName{e.Scope, e.WorkerID}
		shard, ok := s.store.WorkerShard(e.WorkerID)
		if !ok || seen[name] {
			continue
		}
		seen[name] = true
		if _, known := s.hosts.get(name); !known {
			wanted = append(wanted, &schema.WorkerRef{Scope: e.Scope, ID: e.WorkerID, Shard: shard})
		}
	}
	if err := s.lookUp(ctx, wanted); err != nil {
		return err
	}
	for _, e := range all {
		if found, ok := s.hosts.byWorker.Get(workerName{e.Scope, e.WorkerID}); ok {
			e.Version = found.version
			if e.MachineID == "" {
				e.MachineID = found.machine
			}
		}
	}
	return nil
}

func (s *Service) lookUp(ctx context.Context, refs []*schema.WorkerRef) error {
	groups := schema.ByShard(refs, hostsAtOnce, func(r *schema.WorkerRef) int { return r.Shard })
	calls := make([]*store.Call, len(groups))
	for i, group := range groups {
		calls[i] = s.hostsCall(group)
	}
	s.store.DoBulk(ctx, "events", calls)
	if err := store.FirstError(calls); err != nil {
		return err
	}
	for i, group := range groups {
		for j, r := range group {
			found := readHost(calls[i].Reply, j)
			found.asked = time.Now()
			s.hosts.byWorker.Add(workerName{r.Scope, r.ID}, found)
		}
	}
	return nil
}
