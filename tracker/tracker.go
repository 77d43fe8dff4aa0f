package tracker

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"github.com/oklog/ulid/v2"

	"github.com/lubdub-io/lubdub/lua"
)

// Tracker keeps tasks and hears their beats. Its methods may be called from any goroutine. Every error they
// return is an *Error.
type Tracker struct {
	*core
	store *store
}

// core is what all views of a Tracker share (deadline.go).
type core struct {
	opts       Options
	root       *Tracker // that no request's deadline binds
	keeper     *timekeeper
	pace       *pace
	metrics    *metrics
	rooms      rooms
	listener   listener
	nudges     nudges
	fullRetry  time.Duration
	asked      *lru.Cache[string, map[string]string] // labels by their hash
	ownedBy    ownedCache
	eviction   evictionWatch
	quotas     quotas
	stop       context.CancelFunc // what goes on until Close
	watching   sync.WaitGroup     // what does
	background sync.WaitGroup     // what runs beside the callers
	log        *slog.Logger
}

// Open connects to Redis, checks that it is fit to hold tasks, and starts the lanes. Close it.
func Open(ctx context.Context, opts Options) (*Tracker, error) {
	if err := opts.setDefaults(); err != nil {
		return nil, err
	}
	t := &Tracker{core: &core{opts: opts, log: opts.Logger, metrics: newMetrics(opts.Registerer), fullRetry: fullRetry, asked: newAskedCache(),
		pace: &pace{base: opts.WorkerInterval, ceiling: opts.MaxBeatsPerSecond}}}
	t.root = t
	t.setQuotas()
	s := &store{storage: &storage{opts: opts, broken: newBreakdown(), scripts: opts.Scripts, nodes: map[string]*node{}, unconfirmed: t.metrics.unconfirmed,
		newFlush: func(n *node) func([]*Beat) { return newBatcher(t, n).flush }}}
	t.store = s
	t.listener.t = t
	if err := s.connect(); err != nil {
		return nil, err
	}
	if err := s.begin(ctx, func(shards int, founded bool) {
		t.keeper = newTimekeeper(shards, opts.HealthCheckPeriod, func(d time.Duration) { t.metrics.gaps.Add(d.Seconds()) })
		if !founded {
			t.keeper.cutOff.begins()
		}
	}); err != nil {
		_ = s.close()
		return nil, err
	}
	t.eviction.at, t.eviction.byMap = time.Now(), s.byShard.Load()
	life, stop := context.WithCancel(context.Background())
	t.stop = stop
	t.watching.Go(t.store.guard("watching for eviction", func() { t.watchEviction(life) }))
	t.watching.Go(t.store.guard("watching the version of the stored format", func() { t.store.watchSchema(life) }))
	return t, nil
}

func (s *store) begin(ctx context.Context, settled func(shards int, founded bool)) error {
	if err := s.check(ctx); err != nil {
		return err
	}
	shards, founded, err := s.settleShards(ctx)
	if err != nil {
		return err
	}
	for i := range shards {
		s.keys = append(s.keys, newShardKeys(i))
	}
	s.unsettled = make([]atomic.Int64, shards)
	s.scripts = s.scripts.For(lua.Deployment{Database: s.database(), EventsPerShard: s.opts.EventsPerShard})
	settled(shards, founded)
	if err := s.drawMap(ctx); err != nil {
		return err
	}
	return s.settleSchema(ctx, schemaSteps)
}

func (o *Options) setDefaults() error {
	if o.Shards < 0 || o.Shards > MaxShards {
		return fmt.Errorf("shards is %d; it must be 1–%d, or 0 for the default", o.Shards, MaxShards)
	}
	if o.FinishedRetention == 0 {
		o.FinishedRetention = DefaultFinishedRetention
	}
	if o.FinishedRetention < MinFinishedRetention {
		return fmt.Errorf("finished retention is %v; it must be at least %v, the longest token life and 5 min, so that no token outlives its task's record", o.FinishedRetention, MinFinishedRetention)
	}
	if err := o.setWorkerDefaults(); err != nil {
		return err
	}
	if err := o.setDurabilityDefaults(); err != nil {
		return err
	}
	if o.HealthCheckPeriod < 0 {
		return fmt.Errorf("the health check period is %v; use a positive time, or 0 where no balancer checks replicas", o.HealthCheckPeriod)
	}
	if o.EventsPerShard < 0 {
		return fmt.Errorf("events per shard is %d; it must be at least 1, or 0 for the default", o.EventsPerShard)
	}
	if o.BrakeShare < 0 || o.BrakeShare > 100 {
		return fmt.Errorf("the brake's share is %d; it is a percentage, 1 to 100, or 0 for no brake", o.BrakeShare)
	}
	if o.MaxPendingBeats == 0 {
		o.MaxPendingBeats = 65536
	}
	if o.MaxPendingCalls == 0 {
		o.MaxPendingCalls = 8192
	}
	if o.RedisTimeout == 0 {
		o.RedisTimeout = defaultRedisTimeout
	}
	if o.ReplicaID == "" {
		o.ReplicaID = newID(replicaPrefix)
	}
	if o.Scripts == nil {
		o.Scripts = lua.Load()
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	return nil
}

func (o *Options) setWorkerDefaults() error {
	if o.WorkerInterval == 0 {
		o.WorkerInterval = DefaultWorkerInterval
	}
	if o.WorkerTimeoutMultiplier == 0 {
		o.WorkerTimeoutMultiplier = DefaultWorkerMultiplier
	}
	if o.OfflineRetention == 0 {
		o.OfflineRetention = DefaultOfflineRetention
	}
	switch timeout := o.WorkerInterval * time.Duration(o.WorkerTimeoutMultiplier); {
	case o.WorkerTimeoutMultiplier < 2:
		return fmt.Errorf("the worker timeout multiplier is %d; it must be at least 2, or one lost beat would look like a death", o.WorkerTimeoutMultiplier)
	case o.WorkerInterval < 0 || timeout < MinTimeout || timeout > MaxTimeout:
		return fmt.Errorf("the workers' timeout, %d intervals of %v, is %v; it must be %v to %v", o.WorkerTimeoutMultiplier, o.WorkerInterval, timeout, MinTimeout, MaxTimeout)
	case o.MaxBeatsPerSecond < 0:
		return fmt.Errorf("the ceiling on beats per second is %v; use a positive number, or 0 for none", o.MaxBeatsPerSecond)
	case o.OfflineRetention < MinOfflineRetention:
		return fmt.Errorf("the retention of OFFLINE workers is %v; it must be at least %v, twice the life of a worker's token and 5 min, so that no token outlives its worker's record", o.OfflineRetention, MinOfflineRetention)
	}
	return nil
}

// Close refuses new work, lets everything that waits have its fate, and closes the connections.
func (t *Tracker) Close(ctx context.Context) error {
	closed := make(chan error, 1)
	go func() {
		t.stop()
		t.listener.close()
		err := t.store.close()
		t.background.Wait()
		t.watching.Wait()
		closed <- err
	}()
	select {
	case err := <-closed:
		return err
	case <-ctx.Done():
		return fmt.Errorf("flushing the batcher: %w", ctx.Err())
	}
}

// Shards tells how many slices the keyspace has.
func (t *Tracker) Shards() int { return t.store.shards() }

// Ready tells what is wrong with Redis: it does not answer one read on every node, or a server of it may evict keys, which
// is an *EvictionError. nil: nothing is.
func (t *Tracker) Ready(ctx context.Context) error {
	t = t.within(ctx, 0)
	var calls []*call
	for _, shards := range t.store.byNode() {
		k := t.store.keys[shards[0]]
		calls = append(calls, newCall(shards[0], t.store.scripts.Get("find"), []string{k.clock, k.timers}, "L", 0, 0, 0))
	}
	t.store.doAll("ready", calls)
	for _, c := range calls {
		if c.err != nil {
			return c.err
		}
	}
	return t.evicting()
}

// newID makes a sortable id: the prefix and a ULID.
func newID(prefix string) string { return prefix + ulid.Make().String() }

// newFence draws the four characters that tell two attempts with one number apart.
func newFence() string {
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	var b [4]byte
	_, _ = rand.Read(b[:]) // never fails
	for i := range b {
		b[i] = alphabet[b[i]&63]
	}
	return string(b[:])
}

func ms(d time.Duration) int64 { return d.Milliseconds() }
