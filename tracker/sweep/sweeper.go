package sweep

import (
	"cmp"
	"context"
	"sync"
	"time"

	"github.com/lubdub-io/lubdub/tracker/brake"
	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/reconcile"
	"github.com/lubdub-io/lubdub/tracker/store"
	"github.com/lubdub-io/lubdub/tracker/webhooks"
)

// SweeperOptions configure a Sweeper.
type SweeperOptions struct {
	ID string // shown in evidence; empty: that of the process, swp_ and a ULID

	FiresPerTick int // of schedules that this sweeper deals with a second; 0: 1,000. Tests have fewer
}

// Sweeper finds what has gone silent or has come due and ends it. Any number of them may run at once: every
// verdict is taken by a script that checks again, so two can never take the same one. They share the shards by
// rank only to save work. Its parts look after their own locks; no field of its own changes.
type Sweeper struct {
	service    *Service
	id         sweeperID
	beside     *beside
	tasks      *taskSweep
	workers    *workerSweep
	schedules  *scheduleSweep
	reconciler *reconcile.Reconciler
	webhooks   *webhooks.Courier
	trims      *trims
}

// How sweepers share the work and how much they take at once.
const (
	maxNap       = 100 * time.Millisecond // a new task may be due earlier than anything seen so far
	minNap       = 10 * time.Millisecond  // while deaths trickle in: a sweep for each would cost Redis more than the deaths
	rankDelay    = 100 * time.Millisecond // a sweeper of rank r leaves this times r to those before it
	sweeperLease = time.Second            // a sweeper that has not peeked for this long is no longer counted
	findLimit    = 500                    // of one sorted set, a round
	workerLimit  = 25                     // the same of workers, whose records are read whole
	verdictLimit = 16                     // the same of verdicts: a beat waits for one call
	zombieLimit  = 32                     // the same of those by silence, of which there may be very many and which cost less
	verdictTrips = 3                      // such calls on their way at once, for the same reason
)

// NewSweeper makes a sweeper; start it with Run.
func NewSweeper(s *Service, o SweeperOptions) *Sweeper {
	id := sweeperID(o.ID)
	if id == "" {
		id = sweeperID(s.store.SweeperID())
	}
	aside := &beside{store: s.store}
	known := newTimeouts(s.store.Shards())
	b := brake.NewBrake(s.brake, string(id), known)
	first := &leads{mine: make([]bool, s.store.Shards())}
	return &Sweeper{
		service: s, id: id, beside: aside,
		tasks:      newTaskSweep(s, id, known, first, b, aside),
		workers:    newWorkerSweep(s, id, b, aside),
		schedules:  newScheduleSweep(s, id, cmp.Or(o.FiresPerTick, firesPerTick)),
		reconciler: reconcile.NewReconciler(s.reconcile, string(id), id.rank),
		webhooks:   webhooks.NewCourier(s.webhooks, string(id), id.rank),
		trims:      &trims{s.store, s.events, first},
	}
}

// round is one scan of the shards of one node, and its outcome.
type round struct {
	node   *store.Node
	shards []int
	ranked bool // sweepers of a better rank are left their time, and what may take long goes on beside the round
	result SweepResult
	next   time.Duration // until something may be due again
	more   bool          // a limit was reached: there is more now
}

// grace is how long this sweeper leaves what is due in a shard to those ranked before it.
func (r *round) grace(id sweeperID, shard int, live []string) time.Duration {
	if !r.ranked {
		return 0
	}
	return rankDelay * time.Duration(id.rank(shard, live))
}

// beside is work that goes on beside the rounds of a sweeper: what may have to wait for another node than the round's.
type beside struct {
	store   *store.Store
	running sync.WaitGroup
}

// run does it there; a panic breaks the tracker.
func (b *beside) run(what string, do func()) { b.running.Go(b.store.Guard(what, do)) }

// Run sweeps until the context ends. Each Redis node is swept by itself, so that a frozen one delays no verdict elsewhere, and
// tasks beside workers and schedules, so that a long round over one kind delays no verdict on another. Redis's trouble is logged, counted
// and outlived.
func (s *Sweeper) Run(ctx context.Context) error {
	ctx = s.acting(ctx)
	var running sync.WaitGroup
	defer s.beside.running.Wait()
	defer running.Wait()
	st := s.service.store
	running.Go(st.Guard("the reconciler", func() { s.reconciler.Run(ctx) }))
	running.Go(func() { s.webhooks.Run(ctx) })
	each := func(name string, round func(context.Context, *store.Node) (time.Duration, error)) {
		running.Go(func() {
			st.RunOnEachNode(ctx, store.NodeWork{Name: name, Errors: s.service.metrics.sweepErrors, Round: round})
		})
	}
	each("sweeping tasks", s.scan(s.tasks.sweep))
	each("sweeping workers", s.scan(s.workers.sweep))
	each("firing schedules", s.scan(s.schedules.sweep))
	each("dropping events", s.trims.round)
	return nil
}

// scan makes rounds of what scans the shards of a node.
func (s *Sweeper) scan(sweep func(context.Context, *round) error) func(context.Context, *store.Node) (time.Duration, error) {
	return func(ctx context.Context, n *store.Node) (time.Duration, error) {
		r := &round{node: n, shards: s.service.store.Settled(n), ranked: true}
		if err := sweep(ctx, r); err != nil {
			return maxNap, err
		}
		if r.more {
			return r.next, nil
		}
		return max(r.next, minNap), nil
	}
}

// RunOnce sweeps every shard until nothing is due, whatever other sweepers do.
func (s *Sweeper) RunOnce(ctx context.Context) (SweepResult, error) {
	ctx = s.acting(ctx)
	defer s.beside.running.Wait()
	var total SweepResult
	for n, shards := range s.service.store.ByNode() {
		for {
			tasks, workers := &round{node: n, shards: shards}, &round{node: n, shards: shards}
			err := s.tasks.sweep(ctx, tasks)
			if err == nil {
				err = s.workers.sweep(ctx, workers)
			}
			total.add(tasks.result)
			total.add(workers.result)
			if err == nil && !tasks.more && !workers.more {
				err = s.trims.runOnce(ctx, n, shards)
			}
			if err != nil {
				return total, store.AsUnavailable("sweep", err)
			}
			if !tasks.more && !workers.more || ctx.Err() != nil || s.service.store.IsLate(ctx, nil) {
				break
			}
		}
		if err := s.schedules.once(ctx, &round{node: n, shards: shards}); err != nil {
			return total, store.AsUnavailable("sweep", err)
		}
	}
	return total, nil
}

// Sweep sweeps every shard once, as a sweeper that nobody else knows of, and tells of that. When its time runs out it returns what
// it has done.
func (s *Service) Sweep(ctx context.Context) (SweepResult, error) {
	ctx = s.store.Within(ctx, 0)
	r, err := NewSweeper(s, SweeperOptions{}).RunOnce(ctx)
	if err != nil {
		return r, err
	}
	if _, err := s.store.Do(ctx, "sweep", s.scripts.sweptCall(model.NewID("act_"), r.data())); err != nil {
		s.log.Warn("a sweep that was asked for is done, and could not be told", "by", model.ActorOf(ctx), "error", err)
	}
	return r, nil
}

// Reconcile walks over everything once, whatever other sweepers do, and counts what it repaired.
func (s *Sweeper) Reconcile(ctx context.Context) (map[string]int, error) {
	return s.reconciler.WalkOnce(s.acting(ctx))
}

// Deliver takes all that has happened for webhooks and posts what is due to them, once.
func (s *Sweeper) Deliver(ctx context.Context) error { return s.webhooks.Once(s.acting(ctx)) }

// acting names the sweeper in events, where nobody has asked it to act.
func (s *Sweeper) acting(ctx context.Context) context.Context {
	if model.ActorOf(ctx) != "" {
		return ctx
	}
	return model.WithActor(ctx, string(s.id))
}
