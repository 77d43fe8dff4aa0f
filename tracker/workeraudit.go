package tracker

import "time"

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
func (s *Sweeper) auditWorkers(n *node, shards []int, ranked bool) error {
	for {
		var calls []*call
		for _, shard := range shards {
			if a := s.audited(shard); !ranked || !time.Now().Before(a.next) {
				k := s.t.store.keys[shard]
				calls = append(calls, newCall(shard, s.t.store.scripts.Get("worker_missing"), []string{k.workers, k.workerBeats}, a.after, auditLimit))
			}
		}
		if len(calls) == 0 {
			return nil
		}
		s.t.store.exec(n, calls)
		var found []dueWorker
		var more []int
		for _, c := range calls {
			if c.err != nil {
				return c.err
			}
			a := audit{after: c.reply.str(0)}
			if a.after == "" {
				a.next = time.Now().Add(auditEvery)
			} else {
				more = append(more, c.shard)
			}
			s.setAudited(c.shard, a)
			for _, name := range c.reply.list(1).strings() {
				if scope, id, ok := splitName(name); ok {
					found = append(found, dueWorker{ref: &workerRef{scope: scope, id: id, shard: c.shard}, entry: name})
				}
			}
		}
		if len(found) > 0 {
			if err := s.repairLooks(n, found); err != nil {
				return err
			}
		}
		if shards = more; ranked || len(shards) == 0 {
			return nil
		}
	}
}

// repairLooks gives workers their entry again; the round that begins now finds those that are overdue.
func (s *Sweeper) repairLooks(n *node, found []dueWorker) error {
	if err := s.nameDue(n, found); err != nil {
		return err
	}
	var calls []*call
	for _, group := range shardsOf(found) {
		entries := make([]workerEntry, len(group))
		for i, w := range group {
			entries[i] = workerEntry{w.ref, "workerbeats", w.entry}
		}
		calls = append(calls, s.t.repairWorkerCalls(entries)...)
	}
	s.t.store.exec(n, calls)
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
