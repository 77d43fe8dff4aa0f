package tracker

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"
)

// How the sweeper looks after workers.
const (
	drainAgain   = 250 * time.Millisecond // until a draining worker is looked at again
	probeAtOnce  = 64                     // probes under way; more late workers wait for the next look
	recoverLimit = 100                    // recoveries begun a round
)

// due of workers in one shard.
type workersDue struct {
	shard                  int
	beats, due, recoveries bool
	grace                  time.Duration
}

// sweepWorkers does one round over the workers of one node's shards, as sweep does over its tasks.
func (s *Sweeper) sweepWorkers(n *node, shards []int, ranked bool) (SweepResult, error) {
	var result SweepResult
	if err := s.auditWorkers(n, shards, ranked); err != nil {
		return result, err
	}
	todo, next, err := s.peekWorkers(n, shards, ranked)
	result.next = next
	if err != nil || len(todo) == 0 {
		return result, err
	}
	for _, step := range []func(*node, []workersDue, *SweepResult) error{s.expireWorkers, s.takeDueWorkers} {
		if err := step(n, todo, &result); err != nil {
			return result, err
		}
	}
	return result, s.recoverWorkers(n, todo, ranked, &result)
}

func (s *Sweeper) peekWorkers(n *node, shards []int, ranked bool) (todo []workersDue, next time.Duration, err error) {
	var calls []*call
	groups := s.t.store.together(shards)
	for _, group := range groups {
		var keys []string
		for _, shard := range group {
			k := s.t.store.keys[shard]
			keys = append(keys, k.clock, k.workerBeats, k.workerDue, k.recoveries, k.sweepers)
		}
		calls = append(calls, newCall(group[0], s.t.store.scripts.Get("worker_peek"), keys))
	}
	next = maxNap
	err = s.t.store.execEach(n, calls, groups, func(shard int, now int64, r reply) {
		d := workersDue{shard: shard}
		if ranked {
			d.grace = rankDelay * time.Duration(s.rank(shard, r.list(4).strings()))
		}
		is := func(dueIn int64) bool {
			late := time.Duration(-dueIn) * time.Millisecond
			if late < d.grace {
				next = min(next, d.grace-late)
			}
			return late >= d.grace
		}
		d.beats = is(r.int(1) - r.int(0))
		d.due = is(r.int(2) - now)
		d.recoveries = is(r.int(3) - now)
		if d.beats || d.due || d.recoveries {
			todo = append(todo, d)
		}
	})
	return todo, next, err
}

// dueWorker is a worker that was found with something due.
type dueWorker struct {
	ref    *workerRef
	entry  string
	spared bool // the brake found it not silent for its timeout, so it must not end before the brake is asked again
}

// findDue lists what is overdue in one sorted set of each shard, but for the first `from` of each.
func (s *Sweeper) findDue(n *node, todo []workersDue, from int, in func(workersDue) (key string, clock string, ok bool)) (found []dueWorker, more bool, err error) {
	var calls []*call
	for _, d := range todo {
		if key, clock, ok := in(d); ok {
			calls = append(calls, newCall(d.shard, s.t.store.scripts.Get("find"), []string{s.t.store.keys[d.shard].clock, key}, clock, 0, ms(d.grace), findLimit, from))
		}
	}
	s.t.store.exec(n, calls)
	for _, c := range calls {
		if c.err != nil {
			return nil, false, c.err
		}
		entries := c.reply.list(2).strings()
		more = more || len(entries) == findLimit
		for _, entry := range entries {
			name := entry
			if kind, rest, ok := strings.Cut(entry, ":"); ok && len(kind) == 1 {
				name = rest
			}
			if scope, id, ok := splitName(name); ok {
				found = append(found, dueWorker{ref: &workerRef{scope: scope, id: id, shard: c.shard}, entry: entry})
			}
		}
	}
	return found, more, nil
}

// nameDue resolves the keys of workers that were found. One whose record is gone gets names of its own: the script
// then clears the entry away.
func (s *Sweeper) nameDue(n *node, found []dueWorker) error {
	refs := make([]*workerRef, len(found))
	for i := range found {
		refs[i] = found[i].ref
	}
	calls, resolve := s.t.workerNames(refs)
	s.t.store.exec(n, calls)
	for _, c := range calls {
		if c.err != nil {
			return c.err
		}
	}
	resolve()
	for _, r := range refs {
		if r.machine == "" {
			r.machine, r.lineage, r.identity = r.id, r.id, r.id
		}
	}
	return nil
}

// shardsOf cuts what was found into pieces of one script call each.
func shardsOf(found []dueWorker) (groups [][]dueWorker) {
	for len(found) > 0 {
		k := 1
		for k < len(found) && k < workerLimit && found[k].ref.shard == found[0].ref.shard {
			k++
		}
		groups = append(groups, found[:k])
		found = found[k:]
	}
	return groups
}

// expireWorkers takes workers that are late or silent for their timeout.
func (s *Sweeper) expireWorkers(n *node, todo []workersDue, result *SweepResult) error {
	found, more, err := s.findDue(n, todo, 0, func(d workersDue) (string, string, bool) { return s.t.store.keys[d.shard].workerBeats, "L", d.beats })
	if err != nil || len(found) == 0 {
		return err
	}
	result.more = result.more || more
	found, inDoubt := s.brakedWorkers(n, found, result)
	if len(found) > 0 {
		err = s.expire(n, found, result)
	}
	return cmp.Or(err, inDoubt)
}

func (s *Sweeper) expire(n *node, found []dueWorker, result *SweepResult) error {
	if err := s.nameDue(n, found); err != nil {
		return err
	}
	probing := ""
	if s.probe != nil {
		probing = "1"
	}
	groups := shardsOf(found)
	calls := make([]*call, len(groups))
	for i, group := range groups {
		k := s.t.store.keys[group[0].ref.shard]
		keys, args := append([]string(nil), k.ofWorkers...), []any{s.id, ms(s.t.opts.OfflineRetention), s.t.store.shards(), probing}
		for _, w := range group {
			mayEnd := "1"
			if w.spared {
				mayEnd = ""
			}
			keys = k.ofWorker(keys, w.ref)
			args = append(args, w.ref.scope.String(), w.ref.id, mayEnd)
		}
		calls[i] = newCall(group[0].ref.shard, s.t.store.scripts.Get("worker_expire"), keys, args...)
	}
	s.t.store.exec(n, calls)
	for i, c := range calls {
		if c.err != nil {
			return c.err
		}
		for j, w := range groups[i] {
			switch c.reply.int(4 * j) {
			case 1:
				if url := c.reply.str(4*j + 3); url != "" {
					s.askProbe(w.ref, url)
				}
			case 2:
				result.StaleWorkers++
				result.addMachine(MachineName{w.ref.scope, c.reply.str(4*j + 2)})
				s.t.metrics.staleWorkers.Inc()
				s.t.metrics.detectionLag.Observe((time.Duration(c.reply.int(4*j+1)) * time.Millisecond).Seconds())
				result.next, result.more = 0, true // its recovery is due now
			}
		}
	}
	return nil
}

func (r *SweepResult) addMachine(m MachineName) {
	if !slices.Contains(r.Machines, m) {
		r.Machines = append(r.Machines, m)
	}
}

// takeDueWorkers looks after drains and removes what its retention is over for.
func (s *Sweeper) takeDueWorkers(n *node, todo []workersDue, result *SweepResult) error {
	found, more, err := s.findDue(n, todo, 0, func(d workersDue) (string, string, bool) { return s.t.store.keys[d.shard].workerDue, "wall", d.due })
	if err != nil || len(found) == 0 {
		return err
	}
	if err := s.nameDue(n, found); err != nil {
		return err
	}
	drains, err := s.judgeDrains(n, found)
	if err != nil {
		return err
	}
	groups := shardsOf(found)
	calls := make([]*call, len(groups))
	for i, group := range groups {
		k := s.t.store.keys[group[0].ref.shard]
		keys, args := append([]string(nil), k.ofWorkers...), []any{ms(s.t.opts.OfflineRetention), s.t.store.shards(), ms(drainAgain)}
		for _, w := range group {
			keys = k.ofWorker(keys, w.ref)
			d := drains[w.ref]
			args = append(args, w.ref.scope.String(), w.ref.id, w.entry, d.began, d.empty)
		}
		calls[i] = newCall(group[0].ref.shard, s.t.store.scripts.Get("worker_due"), keys, args...)
	}
	s.t.store.exec(n, calls)
	for i, c := range calls {
		if c.err != nil {
			return c.err
		}
		for j := range groups[i] {
			switch c.reply.int(2 * j) {
			case 1:
				result.DrainedWorkers++
				result.more = true
			case 2:
				result.RemovedWorkers++
			}
		}
	}
	result.more = result.more || more
	return nil
}

// drained is what was seen of a drain.
type drained struct{ began, empty string }

// judgeDrains tells which draining workers hold nothing. That no claim is under way is read before what they hold is
// counted; while a worker drains none begins.
func (s *Sweeper) judgeDrains(n *node, found []dueWorker) (map[*workerRef]drained, error) {
	seen := map[*workerRef]drained{}
	var refs []*workerRef
	for _, w := range found {
		if strings.HasPrefix(w.entry, "g:") {
			refs = append(refs, w.ref)
		}
	}
	groups := byShard(refs)
	calls := make([]*call, len(groups))
	for g, group := range groups {
		k := s.t.store.keys[group[0].shard]
		var keys []string
		for _, r := range group {
			name := taskName(r.scope, r.id)
			keys = append(keys, k.worker(name), k.reserved(name))
		}
		calls[g] = newCall(group[0].shard, s.t.store.scripts.Get("worker_drains"), keys)
	}
	s.t.store.exec(n, calls)
	var idle []*Worker
	var of []*workerRef
	for g, group := range groups {
		if calls[g].err != nil {
			return nil, calls[g].err
		}
		for i, r := range group {
			if began := calls[g].reply.str(i); began != "" {
				seen[r] = drained{began: began}
				idle = append(idle, &Worker{Scope: r.scope, ID: r.id})
				of = append(of, r)
			}
		}
	}
	if len(idle) == 0 {
		return seen, nil
	}
	if err := s.t.countLoad(s.t.store.doAll, "sweep", idle); err != nil { // a shard on another node that does not answer ends no drain
		return seen, nil //nolint:nilerr // the drain is looked at again
	}
	for i, w := range idle {
		if w.Held == 0 {
			seen[of[i]] = drained{seen[of[i]].began, "1"}
		}
	}
	return seen, nil
}

// recoverWorkers goes on with recoveries that are not done. A ranked sweeper does them beside its rounds: a shard on a
// node that does not answer must not hold up the verdicts of this one.
func (s *Sweeper) recoverWorkers(n *node, todo []workersDue, ranked bool, result *SweepResult) error {
	var refs []*workerRef
	// Those that this sweeper is at already may be many, when a node does not answer: others stand behind them.
	for from, more := 0, true; more && len(refs) < recoverLimit; from += findLimit {
		var found []dueWorker
		var err error
		found, more, err = s.findDue(n, todo, from, func(d workersDue) (string, string, bool) {
			return s.t.store.keys[d.shard].recoveries, "wall", d.recoveries
		})
		if err != nil {
			s.end(refs)
			return err
		}
		for _, w := range found {
			if len(refs) < recoverLimit && s.begin(w.ref) {
				refs = append(refs, w.ref)
			}
		}
	}
	if len(refs) == 0 {
		return nil
	}
	if ranked {
		s.beside.Go(s.t.store.guard("recoveries", func() { _, _, _ = s.recoverAll(refs) })) // what fails is found again in the next round
		return nil
	}
	begun, taken, err := s.recoverAll(refs)
	result.Recovered += taken
	result.more = result.more || err == nil && begun > 0
	return err
}

// begin tells whether this sweeper is not at it already.
func (s *Sweeper) begin(r *workerRef) bool {
	_, busy := s.recovering.LoadOrStore(r.id, true)
	return !busy
}

func (s *Sweeper) end(refs []*workerRef) {
	for _, r := range refs {
		s.recovering.Delete(r.id)
	}
}

// recoverAll tells of how many there was anything left to do, and what it took.
func (s *Sweeper) recoverAll(refs []*workerRef) (begun, taken int, err error) {
	defer s.end(refs)
	recs, err := s.t.readRecoveries("sweep", s.id, refs)
	if err != nil {
		return 0, 0, err
	}
	taken, err = s.t.recover(s.life, recs...)
	return len(recs), taken, err
}

// askProbe asks a late worker's probe URL beside the rounds of the sweeper.
func (s *Sweeper) askProbe(r *workerRef, url string) {
	select {
	case s.probing <- struct{}{}:
	default:
		return // too many at once: the network is down, not the workers; their timeouts decide
	}
	s.beside.Go(func() {
		defer s.t.store.contain("probing workers")
		defer func() { <-s.probing }()
		ctx, cancel := context.WithTimeout(context.Background(), probeTimeout)
		defer cancel()
		if err := s.probe(ctx, url); err != nil {
			s.t.metrics.probes.WithLabelValues("failed").Inc()
			return
		}
		s.t.metrics.probes.WithLabelValues("answered").Inc()
		_, _ = s.t.store.do("probe", newCall(r.shard, s.t.store.scripts.Get("worker_probed"), s.t.workerKeys(r), r.scope.String(), r.id))
	})
}

// probeTimeout is well below the time between late and lost, which is at least half a second.
const probeTimeout = 2 * time.Second
