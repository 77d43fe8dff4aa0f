package sweep

import (
	"context"
	"time"

	"github.com/lubdub-io/lubdub/tracker/schema"
	"github.com/lubdub-io/lubdub/tracker/store"
)

// A worker is found by its entry among those to look at. Should the store lose that entry, nothing else would ever
// find the worker silent, so the sweepers walk over the index of workers too, slowly.
const (
	auditEvery = 5 * time.Second
	auditLimit = 500 // entries of one shard's index a step
)

// audit is how far a sweeper has come with one shard.
type audit struct {
	after string
	next  time.Time
}

// auditWorkers takes a step in each shard where one is due, or, unranked, walks over all of them.
func (s *Sweeper) auditWorkers(ctx context.Context, n *store.Node, shards []int, ranked bool) error {
	for {
		var calls []*store.Call
		for _, shard := range shards {
			if a := s.audited(shard); !ranked || !time.Now().Before(a.next) {
				k := s.t.store.Keys[shard]
				calls = append(calls, store.NewCall(shard, s.t.store.Scripts.Get("worker_missing"), []string{k.Workers, k.WorkerBeats}, a.after, auditLimit))
			}
		}
		if len(calls) == 0 {
			return nil
		}
		s.t.store.Exec(ctx, n, calls)
		var found []dueWorker
		var more []int
		for _, c := range calls {
			if c.Err != nil {
				return c.Err
			}
			a := audit{after: c.Reply.Str(0)}
			if a.after == "" {
				a.next = time.Now().Add(auditEvery)
			} else {
				more = append(more, c.Shard)
			}
			s.setAudited(c.Shard, a)
			for _, name := range c.Reply.List(1).Strings() {
				if scope, id, ok := schema.SplitName(name); ok {
					found = append(found, dueWorker{ref: &schema.WorkerRef{Scope: scope, ID: id, Shard: c.Shard}, entry: name})
				}
			}
		}
		if len(found) > 0 {
			if err := s.repairLooks(ctx, n, found); err != nil {
				return err
			}
		}
		if shards = more; ranked || len(shards) == 0 {
			return nil
		}
	}
}

// repairLooks gives workers their entry again; the round that begins now finds those that are overdue.
func (s *Sweeper) repairLooks(ctx context.Context, n *store.Node, found []dueWorker) error {
	if err := s.nameDue(ctx, n, found); err != nil {
		return err
	}
	var calls []*store.Call
	for _, group := range shardsOf(found) {
		entries := make([]workerEntry, len(group))
		for i, w := range group {
			entries[i] = workerEntry{w.ref, "workerbeats", w.entry}
		}
		calls = append(calls, s.t.repairWorkerCalls(entries)...)
	}
	s.t.store.Exec(ctx, n, calls)
	_, err := s.t.countRepairs(calls)
	return err
}

// On a Cluster a shard may move from one node's rounds to another's.

func (s *Sweeper) audited(shard int) audit {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.audits[shard]
}

func (s *Sweeper) setAudited(shard int, a audit) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.audits[shard] = a
}
