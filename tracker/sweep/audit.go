package sweep

import (
	"context"
	"sync"
	"time"

	"github.com/lubdub-io/lubdub/tracker/schema"
	"github.com/lubdub-io/lubdub/tracker/store"
)

// A worker is found by its entry in the set of workers to check. Should the store lose that entry, nothing else would ever find
// the worker silent, so the sweepers also scan the index of workers, slowly.
const (
	auditEvery = 5 * time.Second
	auditLimit = 500 // entries of one shard's index a step
)

// audit is that scan by one sweeper.
type audit struct {
	service *Service

	mu    sync.Mutex // on a Cluster a shard may move from one node's rounds to another's
	shard []audited
}

// audited is how far the scan has come in one shard.
type audited struct {
	after string
	next  time.Time
}

func newAudit(s *Service) *audit { return &audit{service: s, shard: make([]audited, s.store.Shards())} }

// step continues in each shard of a round where it is time, or, unranked, scans all of them.
func (a *audit) step(ctx context.Context, r *round) error {
	for shards := r.shards; len(shards) > 0; {
		var calls []*store.Call
		for _, shard := range shards {
			if at := a.at(shard); !r.ranked || !time.Now().Before(at.next) {
				calls = append(calls, a.service.scripts.workerMissingCall(shard, at.after, auditLimit))
			}
		}
		if len(calls) == 0 {
			return nil
		}
		a.service.store.Exec(ctx, r.node, calls)
		var found []dueWorker
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
				if scope, id, ok := schema.SplitName(name); ok {
					found = append(found, dueWorker{ref: &schema.WorkerRef{Scope: scope, ID: id, Shard: c.Shard}, entry: name})
				}
			}
		}
		if len(found) > 0 {
			if err := a.repairLooks(ctx, r.node, found); err != nil {
				return err
			}
		}
		if shards = more; r.ranked {
			return nil
		}
	}
	return nil
}

// repairLooks gives workers their entry again; the round that begins now finds those that are overdue.
func (a *audit) repairLooks(ctx context.Context, n *store.Node, found []dueWorker) error {
	if err := a.service.resolve(ctx, n, found); err != nil {
		return err
	}
	var calls []*store.Call
	for _, piece := range piecesOf(found) {
		entries := make([]workerEntry, len(piece))
		for i, w := range piece {
			entries[i] = workerEntry{w.ref, "workerbeats", w.entry}
		}
		calls = append(calls, a.service.repairWorkerCalls(entries)...)
	}
	a.service.store.Exec(ctx, n, calls)
	_, err := a.service.countRepairs(calls)
	return err
}

func (a *audit) at(shard int) audited {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.shard[shard]
}

// moveOn continues after an entry; "": that was the last one. It reports whether there is more.
func (a *audit) moveOn(shard int, after string) (more bool) {
	at := audited{after: after}
	if after == "" {
		at.next = time.Now().Add(auditEvery)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.shard[shard] = at
	return after != ""
}
