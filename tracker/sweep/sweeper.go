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
	ID string // shown in evidence; empty: the ID of the process, swp_ and a ULID

	FiresPerSecond int // fires of schedules that this sweeper handles per second; 0: 1,000. Tests use fewer
}

// Sweeper ends attempts and workers that are silent past their timeout or past another deadline. Any number of sweepers may run at
// once: the script of each verdict checks the state again, so two sweepers cannot both decide the same case. They share the shards by
// rank only to save work. Its parts have their own locks; its fields do not change.
type Sweeper struct {
	service    *Service
	id         sweeperID
	background *background
	tasks      *taskSweep
	workers    *workerSweep
	schedules  *scheduleSweep
	reconciler *reconcile.Reconciler
	webhooks   *webhooks.Courier
	trims      *trims
}

// How sweepers share the work and how much they take at once.
const (
	maxNap       = 100 * time.Millisecond // a new task may be due earlier than anything scanned so far
	minNap       = 10 * time.Millisecond  // handles deaths that arrive one by one together: a sweep for each would cost more than it
	rankDelay    = 100 * time.Millisecond // a sweeper of rank r leaves r times this to those with a better rank
	sweeperLease = time.Second            // a sweeper that has not scanned for this long is no longer counted
	findLimit    = 500                    // entries that a round reads of one sorted set
	workerLimit  = 25                     // the same for workers, whose records are read whole
	verdictLimit = 16                     // verdicts in one call; heartbeats wait while it runs
	silentLimit  = 32                     // the same where all are of silent attempts, which cost less
	verdictTrips = 3                      // verdict calls in flight at once, so that heartbeats run in between
)

// NewSweeper creates a sweeper; start it with Run.
func NewSweeper(s *Service, o SweeperOptions) *Sweeper {
	id := sweeperID(o.ID)
	if id == "" {
		id = sweeperID(s.store.SweeperID())
	}
	bg := &background{store: s.store}
	known := newTimeouts(s.store.Shards())
	b := brake.NewBrake(s.brake, string(id), known)
	first := &leads{mine: make([]bool, s.store.Shards())}
	return &Sweeper{
		service: s, id: id, background: bg,
		tasks:      newTaskSweep(s, id, known, first, b, bg),
		workers:    newWorkerSweep(s, id, b, bg),
		schedules:  newScheduleSweep(s, id, cmp.Or(o.FiresPerSecond, firesPerSecond)),
		reconciler: reconcile.NewReconciler(s.reconcile, string(id), id.rank),
		webhooks:   webhooks.NewCourier(s.webhooks, string(id), id.rank),
		trims:      &trims{s.store, s.events, first},
	}
}

// round is one scan of the shards of one node, and its result.
type round struct {
	node   *store.Node
	shards []int
	ranked bool // leave sweepers with a better rank their time, and do slow work in the background
	result SweepResult
	next   time.Duration // until something may be due again
	more   bool          // a limit was reached: there is more now
}

// grace returns how long this sweeper leaves a shard's overdue entries to those with a better rank.
func (r *round) grace(id sweeperID, shard int, live []string) time.Duration {
	if !r.ranked {
		return 0
	}
	return rankDelay * time.Duration(id.rank(shard, live))
}

// background is work of a sweeper that may wait for another node than the one that its round sweeps.
type background struct {
	store   *store.Store
	running sync.WaitGroup
}

// run runs the function in the background. After a panic the store refuses all calls, and the process ends.
func (b *background) run(what string, do func()) { b.running.Go(b.store.Guard(what, do)) }

// Run sweeps until the context ends. It sweeps each Redis node separately, so that a frozen node delays no verdict elsewhere, and
// tasks, workers and schedules each separately, so that a long round over one kind does not delay another. It logs and counts
// errors of Redis and continues.
func (s *Sweeper) Run(ctx context.Context) error {
	ctx = s.acting(ctx)
	var running sync.WaitGroup
	defer s.background.running.Wait()
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

// scan turns a sweep of the shards of a node into a round.
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

// RunOnce sweeps every shard until nothing is due, regardless of other sweepers.
func (s *Sweeper) RunOnce(ctx context.Context) (SweepResult, error) {
	ctx = s.acting(ctx)
	defer s.background.running.Wait()
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

// Sweep sweeps every shard until nothing is due or its time runs out, regardless of other sweepers, and records the result as an event.
func (s *Service) Sweep(ctx context.Context) (SweepResult, error) {
	ctx = s.store.Within(ctx, 0)
	r, err := NewSweeper(s, SweeperOptions{}).RunOnce(ctx)
	if err != nil {
		return r, err
	}
	if _, err := s.store.Do(ctx, "sweep", s.scripts.sweptCall(model.NewID("act_"), r.data())); err != nil {
		s.log.Warn("a requested sweep is done, but its result could not be published", "by", model.ActorOf(ctx), "error", err)
	}
	return r, nil
}

// Reconcile checks everything once, regardless of other sweepers, and counts what it repaired.
func (s *Sweeper) Reconcile(ctx context.Context) (map[string]int, error) {
	return s.reconciler.WalkOnce(s.acting(ctx))
}

// Deliver takes all events for webhooks and posts what is due, once.
func (s *Sweeper) Deliver(ctx context.Context) error { return s.webhooks.Once(s.acting(ctx)) }

// acting makes the sweeper the actor of events unless the context already has one.
func (s *Sweeper) acting(ctx context.Context) context.Context {
	if model.ActorOf(ctx) != "" {
		return ctx
	}
	return model.WithActor(ctx, string(s.id))
}
