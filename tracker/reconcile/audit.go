package reconcile

import (
	"context"
	"sync"
	"time"

	"github.com/lubdub-io/lubdub/tracker/schema"
	"github.com/lubdub-io/lubdub/tracker/store"
)

// A worker is found by its entry in the set of workers to check. If the store loses that entry, nothing else would ever find the
// worker silent, so the sweepers also scan the index of workers, slowly.
const (
	auditEvery = 5 * time.Second
	auditLimit = 500 // entries of one shard's index in a step
)

// Audit is that scan by one sweeper.
type Audit struct {
	service *Service

	mu    sync.Mutex // on a Cluster a shard may move from one node's rounds to another's
	shard []audited
}

// audited is the position of the scan in one shard.
type audited struct {
	after string
	next  time.Time
}

// NewAudit returns the scan of one sweeper.
func NewAudit(s *Service) *Audit { return &Audit{service: s, shard: make([]audited, s.store.Shards())} }

// Step continues the scan in each of these shards of a node where it is time, or scans all of them to the end.
func (a *Audit) Step(ctx context.Context, n *store.Node, shards []int, toTheEnd bool) error {
	for len(shards) > 0 {
		var calls []*store.Call
		for _, shard := range shards {
			if at := a.at(shard); toTheEnd || !time.Now().Before(at.next) {
				calls = append(calls, a.service.scripts.workerMissingCall(shard, at.after, auditLimit))
			}
		}
		if len(calls) == 0 {
			return nil
		}
		a.service.store.Exec(ctx, n, calls)
		var found []workerEntry
		var more []int
		for _, c := range calls {
			if c.Err != nil {
				return c.Err
			}
			after, names := readWorkerMissing(c.Reply)
			if a.moveOn(c.Shard, after) {
				more = append(more, c.Shard)
			}
			for _, name := range names {
				if e, ok := ofWorkerCheck(name, c.Shard); ok {
					found = append(found, e)
				}
			}
		}
		if len(found) > 0 {
			if err := a.repairChecks(ctx, n, found); err != nil {
				return err
			}
		}
		if shards = more; !toTheEnd {
			return nil
		}
	}
	return nil
}

// repairChecks restores the entries of workers; the round that is starting finds those that are overdue.
func (a *Audit) repairChecks(ctx context.Context, n *store.Node, found []workerEntry) error {
	if err := a.service.resolve(found, func(calls []*store.Call) { a.service.store.Exec(ctx, n, calls) }); err != nil {
		return err
	}
	var calls []*store.Call
	for _, ofShard := range schema.ByShard(found, repairLimit, func(e workerEntry) int { return e.ref.Shard }) {
		calls = append(calls, a.service.repairWorkerCalls(ofShard)...)
	}
	a.service.store.Exec(ctx, n, calls)
	_, err := a.service.countRepairs(calls)
	return err
}

func (a *Audit) at(shard int) audited {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.shard[shard]
}

// moveOn sets the position after an entry; "": it was the last one. It reports whether there is more.
func (a *Audit) moveOn(shard int, after string) (more bool) {
	at := audited{after: after}
	if after == "" {
		at.next = time.Now().Add(auditEvery)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.shard[shard] = at
	return after != ""
}
