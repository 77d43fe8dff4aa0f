package sweep

import (
	"context"
	"hash/fnv"
	"log/slog"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/schema"
	"github.com/lubdub-io/lubdub/tracker/store"
)

// Sweeper finds what has gone silent or has come due and ends it. Any number of them may run at once: every
// verdict is taken by a script that checks again, so two can never take the same one. They share the shards by
// rank only to save work.
type Sweeper struct {
	t   *Service
	id  string
	log *slog.Logger

	mu       sync.Mutex
	timeouts [][]string         // by shard: the timeouts in use when it was last peeked at
	idle     []map[string]int64 // by shard: since when, wall ms, no attempt has lived by a timeout; under mu

	probe      func(context.Context, string) error // nil: no worker is probed
	carrying   sync.Map                            // shard → true: outboxes that this sweeper is at
	probing    chan struct{}                       // one for each probe under way
	audits     []audit                             // by shard; under mu
	recordless map[string]int64                    // worker id → shard time at which it was first found without a record, ms; under mu
	recovering sync.Map                            // worker id → true: recoveries that this sweeper is at
	beside     sync.WaitGroup                      // what runs beside the rounds
	placeless  placeless                           // what is placed again beside the rounds
	vacancies  vacancies                           // what no worker could take
	ended      atomic.Bool                         // Run is over: what runs beside the rounds stops
	life       context.Context                     // of Run or RunOnce
	brake      *brake
	reconciler *reconciler
}

// SweepResult counts what one sweep did.
type SweepResult struct {
	Zombies  int // attempts ended for silence
	TimedOut int // attempts and tasks ended by a start, run or cancel timeout or by their deadline
	Requeued int // of both, those whose task went back to its queue
	Ready    int // queued tasks whose backoff or notBefore was over
	Removed  int // finished tasks at the end of their retention
	Held     int // attempts and workers that the mass expiry brake gave one more timeout

	StaleWorkers   int // workers that went OFFLINE for their silence
	Machines       []MachineName
	DrainedWorkers int // workers whose drain ended
	RemovedWorkers int // OFFLINE workers at the end of their retention
	Recovered      int // attempts taken from workers that have ended

	placeless []*schema.TaskRef // placed tasks that need a worker

	next time.Duration // until something may be due again
	more bool          // a limit was reached: there is more now
}

// MachineName names a machine whose worker was swept.
type MachineName struct {
	Scope model.Scope
	ID    string
}

func (m MachineName) String() string { return m.ID }

func (r *SweepResult) add(o SweepResult) {
	r.Zombies += o.Zombies
	r.TimedOut += o.TimedOut
	r.Requeued += o.Requeued
	r.Ready += o.Ready
	r.Removed += o.Removed
	r.Held += o.Held
	r.StaleWorkers += o.StaleWorkers
	for _, m := range o.Machines {
		r.addMachine(m)
	}
	r.DrainedWorkers += o.DrainedWorkers
	r.RemovedWorkers += o.RemovedWorkers
	r.Recovered += o.Recovered
}

// took tells whether anything about tasks changed.
func (r *SweepResult) took() bool { return r.Zombies+r.TimedOut+r.Ready+r.Removed+len(r.placeless) > 0 }

// How sweepers share the work and how much they take at once.
const (
	maxNap       = 100 * time.Millisecond // a new task may be due earlier than anything seen so far
	minNap       = 10 * time.Millisecond  // while deaths trickle in: a sweep for each would cost Redis more than the deaths
	rankDelay    = 100 * time.Millisecond // a sweeper of rank r leaves this times r to those before it
	sweeperLease = time.Second            // a sweeper that has not peeked for this long is no longer counted
	findLimit    = 500                    // of one sorted set, a round
	workerLimit  = 25                     // the same of workers, whose records are read whole
	verdictLimit = 16                     // the same of verdicts, of which there may be very many: a beat waits for one call
	verdictCalls = 2                      // such calls a round trip, for the same reason
)

// NewSweeper makes a sweeper; start it with Run.
func NewSweeper(t *Service, o SweeperOptions) *Sweeper {
	if o.ID == "" {
		o.ID = t.store.SweeperID()
	}
	s := &Sweeper{
		t: t, id: o.ID, log: t.log, timeouts: make([][]string, t.store.Shards()), idle: make([]map[string]int64, t.store.Shards()),
		audits: make([]audit, t.store.Shards()), recordless: map[string]int64{}, probe: t.opts.Probe, probing: make(chan struct{}, probeAtOnce),
		vacancies: newVacancies(),
	}
	s.brake, s.reconciler = newBrake(s), newReconciler(s, o.ReconcileRate)
	return s
}

// Run sweeps until the context ends. Each Redis node is swept by itself, so that a frozen one delays no verdict
// elsewhere, and tasks beside workers, so that a long round over the ones delays no verdict on the others. Redis's
// trouble is logged, counted and outlived.
func (s *Sweeper) Run(ctx context.Context) error {
	var running sync.WaitGroup
	defer s.beside.Wait()
	defer running.Wait()
	s.ended.Store(false)
	s.life = ctx
	running.Go(s.t.store.Guard("the reconciler", func() { s.reconciler.run(ctx) }))
	started := map[*store.Node]bool{}
	for {
		for n := range s.t.store.ByNode() {
			if !started[n] {
				started[n] = true
				running.Go(s.t.store.Guard("sweeping tasks", func() { s.runNode(ctx, n, s.sweepTasks) }))
				running.Go(s.t.store.Guard("sweeping workers", func() { s.runNode(ctx, n, s.sweepWorkers) }))
			}
		}
		maps.DeleteFunc(started, func(n *store.Node, _ bool) bool { return n.Retired() })
		select {
		case <-ctx.Done():
			s.ended.Store(true)
			return nil
		case <-time.After(time.Second): // the map of a Cluster may have changed
		}
	}
}

func (s *Sweeper) runNode(ctx context.Context, n *store.Node, sweep round) {
	failing := false
	for ctx.Err() == nil && !n.Retired() {
		r, err := sweep(ctx, n, s.t.store.Settled(n), true)
		nap := r.next
		if !r.more {
			nap = max(nap, minNap)
		}
		if err != nil {
			s.t.metrics.sweepErrors.Inc()
			if !failing {
				s.log.Warn("sweeping is held up: the store does not answer; no verdict falls until it does", "error", err)
			}
			nap = maxNap
		} else if failing {
			s.log.Info("sweeping goes on")
		}
		failing = err != nil
		select {
		case <-ctx.Done():
		case <-time.After(nap):
		}
	}
}

// RunOnce sweeps every shard until nothing is due, whatever other sweepers do.
func (s *Sweeper) RunOnce(ctx context.Context) (SweepResult, error) {
	defer s.beside.Wait()
	s.life = ctx
	var total SweepResult
	for n, shards := range s.t.store.ByNode() {
		for {
			r, err := s.sweep(ctx, n, shards, false)
			total.add(r)
			if err != nil {
				return total, store.AsUnavailable("sweep", err)
			}
			if !r.more || ctx.Err() != nil || s.t.store.IsLate(ctx, nil) {
				break
			}
		}
	}
	return total, nil
}

// Sweep sweeps every shard once, as a sweeper that nobody else knows of. When its time is over it tells what it has done.
func (t *Service) Sweep(ctx context.Context) (SweepResult, error) {
	return NewSweeper(t, SweeperOptions{}).RunOnce(t.store.Within(ctx, 0))
}

// overdue is one sorted set of one shard with something to take in it.
type overdue struct {
	shard   int
	kind    string        // the script that takes from it: expire, timers or due; or outbox
	timeout string        // of a beats set, ms
	grace   time.Duration // left to sweepers of a better rank
}

// round is one look at the shards of one node; ranked leaves sweepers of a better rank their time.
type round func(ctx context.Context, n *store.Node, shards []int, ranked bool) (SweepResult, error)

// sweep does one round of each kind.
func (s *Sweeper) sweep(ctx context.Context, n *store.Node, shards []int, ranked bool) (SweepResult, error) {
	result, err := s.sweepTasks(ctx, n, shards, ranked)
	if err != nil {
		return result, err
	}
	workers, err := s.sweepWorkers(ctx, n, shards, ranked)
	result.add(workers)
	result.more = result.more || workers.more
	result.next = min(result.next, workers.next)
	return result, err
}

// sweepTasks does one round over tasks: peek at all shards, find in those where something is due, take it.
func (s *Sweeper) sweepTasks(ctx context.Context, n *store.Node, shards []int, ranked bool) (SweepResult, error) {
	start := time.Now()
	defer func() { s.t.metrics.sweepTime.Observe(time.Since(start).Seconds()) }()
	seen, err := s.peek(ctx, n, shards, ranked)
	if err != nil {
		return SweepResult{}, err
	}
	todo, outboxes := split(seen.todo)
	result, err := s.clear(ctx, n, todo)
	if err != nil {
		return result, err
	}
	if err := s.carry(ctx, outboxes, ranked, &result); err != nil {
		return result, err
	}
	s.placeAgain(ctx, result.placeless, ranked)
	if err := s.dropIdle(ctx, n, seen.idle); err != nil {
		return result, err
	}
	result.more = result.more || seen.next == 0
	if !result.more && !result.took() {
		result.next = seen.next
	} // else look again at once: what stood behind the things taken is not known yet
	return result, nil
}

// rank is this sweeper's place for a shard among the live ones, by rendezvous hashing: each shard has an order
// of its own, and one sweeper more or less moves only its share.
func (s *Sweeper) rank(shard int, live []string) int {
	mine, rank := rendezvous(shard, s.id), 0
	for _, id := range live {
		if w := rendezvous(shard, id); id != s.id && (w > mine || w == mine && id > s.id) {
			rank++
		}
	}
	return rank
}

func rendezvous(shard int, id string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(id))
	_, _ = h.Write([]byte{'/', byte(shard >> 8), byte(shard)})
	x := h.Sum64() // FNV alone mixes the last bytes poorly
	x ^= x >> 33
	x *= 0xff51afd7ed558ccd
	x ^= x >> 33
	return x
}
