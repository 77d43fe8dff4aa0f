package sweep

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/schema"
	"github.com/lubdub-io/lubdub/tracker/store"
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
func (s *Sweeper) sweepWorkers(ctx context.Context, n *store.Node, shards []int, ranked bool) (SweepResult, error) {
	var result SweepResult
	if err := s.auditWorkers(ctx, n, shards, ranked); err != nil {
		return result, err
	}
	todo, next, err := s.peekWorkers(ctx, n, shards, ranked)
	result.next = next
	if err != nil || len(todo) == 0 {
		return result, err
	}
	for _, step := range []func(context.Context, *store.Node, []workersDue, *SweepResult) error{s.expireWorkers, s.takeDueWorkers} {
		if err := step(ctx, n, todo, &result); err != nil {
			return result, err
		}
	}
	return result, s.recoverWorkers(ctx, n, todo, ranked, &result)
}

func (s *Sweeper) peekWorkers(ctx context.Context, n *store.Node, shards []int, ranked bool) (todo []workersDue, next time.Duration, err error) {
	var calls []*store.Call
	groups := s.t.store.Together(shards)
	for _, group := range groups {
		var keys []string
		for _, shard := range group {
			k := s.t.store.Keys[shard]
			keys = append(keys, k.Clock, k.WorkerBeats, k.WorkerDue, k.Recoveries, k.Sweepers)
		}
		calls = append(calls, store.NewCall(group[0], s.t.store.Scripts.Get("worker_peek"), keys))
	}
	next = maxNap
	err = s.t.store.ExecEach(ctx, n, calls, groups, func(shard int, now int64, r store.Reply) {
		d := workersDue{shard: shard}
		if ranked {
			d.grace = rankDelay * time.Duration(s.rank(shard, r.List(4).Strings()))
		}
		is := func(dueIn int64) bool {
			late := time.Duration(-dueIn) * time.Millisecond
			if late < d.grace {
				next = min(next, d.grace-late)
			}
			return late >= d.grace
		}
		d.beats = is(r.Int(1) - r.Int(0))
		d.due = is(r.Int(2) - now)
		d.recoveries = is(r.Int(3) - now)
		if d.beats || d.due || d.recoveries {
			todo = append(todo, d)
		}
	})
	return todo, next, err
}

// dueWorker is a worker that was found with something due.
type dueWorker struct {
	ref    *schema.WorkerRef
	entry  string
	spared bool // the brake found it not silent for its timeout, so it must not end before the brake is asked again
}

// findDue lists what is overdue in one sorted set of each shard, but for the first `from` of each.
func (s *Sweeper) findDue(ctx context.Context, n *store.Node, todo []workersDue, from int, in func(workersDue) (key string, wall, ok bool)) (found []dueWorker, more bool, err error) {
	var calls []*store.Call
	for _, d := range todo {
		if key, wall, ok := in(d); ok {
			calls = append(calls, s.t.store.FindCall(d.shard, store.Overdue{Set: key, Wall: wall, Grace: d.grace, Limit: findLimit, Skip: from}))
		}
	}
	s.t.store.Exec(ctx, n, calls)
	for _, c := range calls {
		if c.Err != nil {
			return nil, false, c.Err
		}
		entries := store.ReadFound(c.Reply)
		more = more || len(entries) == findLimit
		for _, entry := range entries {
			name := entry
			if kind, rest, ok := strings.Cut(entry, ":"); ok && len(kind) == 1 {
				name = rest
			}
			if scope, id, ok := schema.SplitName(name); ok {
				found = append(found, dueWorker{ref: &schema.WorkerRef{Scope: scope, ID: id, Shard: c.Shard}, entry: entry})
			}
		}
	}
	return found, more, nil
}

// nameDue resolves the keys of workers that were found. One whose record is gone gets names of its own: the script
// then clears the entry away.
func (s *Sweeper) nameDue(ctx context.Context, n *store.Node, found []dueWorker) error {
	refs := make([]*schema.WorkerRef, len(found))
	for i := range found {
		refs[i] = found[i].ref
	}
	calls, resolve := s.t.workers.WorkerNames(refs)
	s.t.store.Exec(ctx, n, calls)
	for _, c := range calls {
		if c.Err != nil {
			return c.Err
		}
	}
	resolve()
	for _, r := range refs {
		if r.Machine == "" {
			r.Machine, r.Lineage, r.Identity = r.ID, r.ID, r.ID
		}
	}
	return nil
}

// shardsOf cuts what was found into pieces of one script call each.
func shardsOf(found []dueWorker) (groups [][]dueWorker) {
	for len(found) > 0 {
		k := 1
		for k < len(found) && k < workerLimit && found[k].ref.Shard == found[0].ref.Shard {
			k++
		}
		groups = append(groups, found[:k])
		found = found[k:]
	}
	return groups
}

// expireWorkers takes workers that are late or silent for their timeout.
func (s *Sweeper) expireWorkers(ctx context.Context, n *store.Node, todo []workersDue, result *SweepResult) error {
	found, more, err := s.findDue(ctx, n, todo, 0, func(d workersDue) (string, bool, bool) { return s.t.store.Keys[d.shard].WorkerBeats, false, d.beats })
	if err != nil || len(found) == 0 {
		return err
	}
	result.more = result.more || more
	found, inDoubt := s.brakedWorkers(ctx, n, found, result)
	if len(found) > 0 {
		err = s.expire(ctx, n, found, result)
	}
	return cmp.Or(err, inDoubt)
}

func (s *Sweeper) expire(ctx context.Context, n *store.Node, found []dueWorker, result *SweepResult) error {
	if err := s.nameDue(ctx, n, found); err != nil {
		return err
	}
	probing := ""
	if s.probe != nil {
		probing = "1"
	}
	groups := shardsOf(found)
	calls := make([]*store.Call, len(groups))
	for i, group := range groups {
		k := s.t.store.Keys[group[0].ref.Shard]
		keys, args := append([]string(nil), k.OfWorkers...), []any{s.id, model.Millis(s.t.opts.OfflineRetention), s.t.store.Shards(), probing}
		for _, w := range group {
			mayEnd := "1"
			if w.spared {
				mayEnd = ""
			}
			keys = k.OfWorker(keys, w.ref)
			args = append(args, w.ref.Scope.String(), w.ref.ID, mayEnd)
		}
		calls[i] = store.NewCall(group[0].ref.Shard, s.t.store.Scripts.Get("worker_expire"), keys, args...)
	}
	s.t.store.Exec(ctx, n, calls)
	for i, c := range calls {
		if c.Err != nil {
			return c.Err
		}
		for j, w := range groups[i] {
			switch c.Reply.Int(4 * j) {
			case 1:
				if url := c.Reply.Str(4*j + 3); url != "" {
					s.askProbe(ctx, w.ref, url)
				}
			case 2:
				result.StaleWorkers++
				result.addMachine(MachineName{w.ref.Scope, c.Reply.Str(4*j + 2)})
				s.t.metrics.staleWorkers.Inc()
				s.t.metrics.detectionLag.Observe((time.Duration(c.Reply.Int(4*j+1)) * time.Millisecond).Seconds())
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
func (s *Sweeper) takeDueWorkers(ctx context.Context, n *store.Node, todo []workersDue, result *SweepResult) error {
	found, more, err := s.findDue(ctx, n, todo, 0, func(d workersDue) (string, bool, bool) { return s.t.store.Keys[d.shard].WorkerDue, true, d.due })
	if err != nil || len(found) == 0 {
		return err
	}
	if err := s.nameDue(ctx, n, found); err != nil {
		return err
	}
	drains, err := s.judgeDrains(ctx, n, found)
	if err != nil {
		return err
	}
	groups := shardsOf(found)
	calls := make([]*store.Call, len(groups))
	for i, group := range groups {
		k := s.t.store.Keys[group[0].ref.Shard]
		keys, args := append([]string(nil), k.OfWorkers...), []any{model.Millis(s.t.opts.OfflineRetention), s.t.store.Shards(), model.Millis(drainAgain)}
		for _, w := range group {
			keys = k.OfWorker(keys, w.ref)
			d := drains[w.ref]
			args = append(args, w.ref.Scope.String(), w.ref.ID, w.entry, d.began, d.empty)
		}
		calls[i] = store.NewCall(group[0].ref.Shard, s.t.store.Scripts.Get("worker_due"), keys, args...)
	}
	s.t.store.Exec(ctx, n, calls)
	for i, c := range calls {
		if c.Err != nil {
			return c.Err
		}
		for j := range groups[i] {
			switch c.Reply.Int(2 * j) {
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
func (s *Sweeper) judgeDrains(ctx context.Context, n *store.Node, found []dueWorker) (map[*schema.WorkerRef]drained, error) {
	seen := map[*schema.WorkerRef]drained{}
	var refs []*schema.WorkerRef
	for _, w := range found {
		if strings.HasPrefix(w.entry, "g:") {
			refs = append(refs, w.ref)
		}
	}
	groups := schema.WorkersByShard(refs)
	calls := make([]*store.Call, len(groups))
	for g, group := range groups {
		k := s.t.store.Keys[group[0].Shard]
		var keys []string
		for _, r := range group {
			name := schema.TaskName(r.Scope, r.ID)
			keys = append(keys, k.Worker(name), k.Reserved(name))
		}
		calls[g] = store.NewCall(group[0].Shard, s.t.store.Scripts.Get("worker_drains"), keys)
	}
	s.t.store.Exec(ctx, n, calls)
	var idle []*model.Worker
	var of []*schema.WorkerRef
	for g, group := range groups {
		if calls[g].Err != nil {
			return nil, calls[g].Err
		}
		for i, r := range group {
			if began := calls[g].Reply.Str(i); began != "" {
				seen[r] = drained{began: began}
				idle = append(idle, &model.Worker{Scope: r.Scope, ID: r.ID})
				of = append(of, r)
			}
		}
	}
	if len(idle) == 0 {
		return seen, nil
	}
	if err := s.t.workers.CountLoad(ctx, s.t.store.DoAll, "sweep", idle); err != nil { // a shard on another node that does not answer ends no drain
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
func (s *Sweeper) recoverWorkers(ctx context.Context, n *store.Node, todo []workersDue, ranked bool, result *SweepResult) error {
	var refs []*schema.WorkerRef
	// Those that this sweeper is at already may be many, when a node does not answer: others stand behind them.
	for from, more := 0, true; more && len(refs) < recoverLimit; from += findLimit {
		var found []dueWorker
		var err error
		found, more, err = s.findDue(ctx, n, todo, from, func(d workersDue) (string, bool, bool) {
			return s.t.store.Keys[d.shard].Recoveries, true, d.recoveries
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
		s.beside.Go(s.t.store.Guard("recoveries", func() { _, _, _ = s.recoverAll(ctx, refs) })) // what fails is found again in the next round
		return nil
	}
	begun, taken, err := s.recoverAll(ctx, refs)
	result.Recovered += taken
	result.more = result.more || err == nil && begun > 0
	return err
}

// begin tells whether this sweeper is not at it already.
func (s *Sweeper) begin(r *schema.WorkerRef) bool {
	_, busy := s.recovering.LoadOrStore(r.ID, true)
	return !busy
}

func (s *Sweeper) end(refs []*schema.WorkerRef) {
	for _, r := range refs {
		s.recovering.Delete(r.ID)
	}
}

// recoverAll tells of how many there was anything left to do, and what it took.
func (s *Sweeper) recoverAll(ctx context.Context, refs []*schema.WorkerRef) (begun, taken int, err error) {
	defer s.end(refs)
	recs, err := s.t.holdings.ReadRecoveries(ctx, "sweep", s.id, refs)
	if err != nil {
		return 0, 0, err
	}
	taken, err = s.t.holdings.Recover(s.life, recs...)
	return len(recs), taken, err
}

// askProbe asks a late worker's probe URL beside the rounds of the sweeper.
func (s *Sweeper) askProbe(ctx context.Context, r *schema.WorkerRef, url string) {
	select {
	case s.probing <- struct{}{}:
	default:
		return // too many at once: the network is down, not the workers; their timeouts decide
	}
	s.beside.Go(func() {
		defer s.t.store.Contain("probing workers")
		defer func() { <-s.probing }()
		ctx, cancel := context.WithTimeout(context.Background(), probeTimeout)
		defer cancel()
		if err := s.probe(ctx, url); err != nil {
			s.t.metrics.probes.WithLabelValues("failed").Inc()
			return
		}
		s.t.metrics.probes.WithLabelValues("answered").Inc()
		_, _ = s.t.store.Do(ctx, "probe", store.NewCall(r.Shard, s.t.store.Scripts.Get("worker_probed"), s.t.workers.WorkerKeys(r), r.Scope.String(), r.ID))
	})
}

// probeTimeout is well below the time between late and lost, which is at least half a second.
const probeTimeout = 2 * time.Second
