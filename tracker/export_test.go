package tracker

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/redis/go-redis/v9"
)

// ShardOf tells where a task lives.
func (t *Tracker) ShardOf(scope Scope, id string) int { return t.store.shardOf(scope, id) }

// HoldTime does what KeepTime does in each slot for shards whose beats are refused, and waits for it.
func (t *Tracker) HoldTime() {
	t.holdTime()
	t.background.Wait()
}

// OnClock has the replica judge by another clock than its process's whether it may be cut off from its clients.
func (t *Tracker) OnClock(now func() time.Duration) {
	t.keeper.cutOff.now = now
	t.keeper.cutOff.started.Store(0)
}

// BalancersKnowNothing is as if the replica had just started.
func (t *Tracker) BalancersKnowNothing() { t.keeper.cutOff.begins() }

// Listen does what KeepTime does in each slot to notice that clients stay away.
func (t *Tracker) Listen() { t.keeper.cutOff.listen() }

// LookForEviction looks whether Redis evicts, if it is time to.
func (t *Tracker) LookForEviction(now time.Time) { t.lookForEviction(context.Background(), now) }

// MarkOf is the shard in which the flushes of durable transitions write that go to the node of this one.
func (t *Tracker) MarkOf(shard int) int { return int(t.store.node(shard).mark.shard.Load()) }

// EndWithoutRecovery ends a worker as a process would that dies right after the verdict.
func (t *Tracker) EndWithoutRecovery(scope Scope, id string) error {
	r, err := t.findWorker("test", scope, id)
	if err != nil {
		return err
	}
	_, err = t.store.do("test", t.statusCall(r, "retire", statusChange{end: WorkerForced, loss: true}))
	return err
}

// FenceEverywhere sets a worker's fence in every shard, as the first step of its recovery does.
func (t *Tracker) FenceEverywhere(scope Scope, id string) error {
	for shard, k := range t.store.keys {
		if _, err := t.store.do("test", newCall(shard, t.store.scripts.Get("fence"), []string{k.fences, k.held}, id, ms(fenceLife), 0, "1", string(WorkerForced))); err != nil {
			return err
		}
	}
	return nil
}

// WaitingClaims counts the claims of this tracker that wait and have been told that there is nothing.
func (t *Tracker) WaitingClaims() (n int) {
	t.rooms.mu.Lock()
	defer t.rooms.mu.Unlock()
	for _, m := range t.rooms.byName {
		m.mu.Lock()
		for _, w := range m.waiters {
			if !w.fresh && w.offer == nil {
				n++
			}
		}
		m.mu.Unlock()
	}
	return n
}

// Looks counts the looks at what is ready in a shard.
func (t *Tracker) Looks() int {
	return int(testutil.ToFloat64(t.metrics.claims.looks))
}

// Holding gives the entry in the held set of an attempt that was claimed under no id and has a run of its own.
func (t *Tracker) Holding(a *Attempt) string { return a.WorkerID + "/" + a.member + "/0//" }

// CreatePlacedOn creates a placed task for a worker that was selected a while ago.
func (t *Tracker) CreatePlacedOn(_ context.Context, scope Scope, id, worker string) {
	t.create([]*creation{{
		NewTask: NewTask{Scope: scope, TaskID: id, Queue: "default", Type: "send_email", Placement: "random", WorkerID: worker, HeartbeatInterval: time.Second},
		fence:   newFence(),
	}})
}

// DieAfter lets so many calls reach Redis and no more, as when the process is killed.
func (t *Tracker) DieAfter(calls int) { t.store.single.AddHook(&deadline{left: calls}) }

type deadline struct {
	mu   sync.Mutex
	left int
}

var errDead = errors.New("the process is dead")

func (d *deadline) DialHook(next redis.DialHook) redis.DialHook { return next }

func (d *deadline) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }

func (d *deadline) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		d.mu.Lock()
		n := min(d.left, len(cmds))
		d.left -= n
		d.mu.Unlock()
		for _, cmd := range cmds[n:] {
			cmd.SetErr(errDead)
		}
		if n == 0 {
			return errDead
		}
		return next(ctx, cmds[:n])
	}
}

// After calls f each time that a script has run and before what follows it runs.
func (t *Tracker) After(script string, f func()) {
	t.store.single.AddHook(&after{sha: t.store.scripts.Get(script).SHA, f: f})
}

type after struct {
	sha string
	f   func()
}

func (a *after) DialHook(next redis.DialHook) redis.DialHook { return next }

func (a *after) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }

func (a *after) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		err := next(ctx, cmds)
		if slices.ContainsFunc(cmds, func(cmd redis.Cmder) bool {
			return shaOf(cmd) == a.sha && cmd.Err() == nil
		}) {
			a.f()
		}
		return err
	}
}

// ReconcileAShare takes steps as a running reconciler does, and tells how many entries each shard showed.
func (s *Sweeper) ReconcileAShare(steps int) ([]int, error) {
	seen := make([]int, s.t.store.shards())
	for shard := range seen {
		for range steps {
			n, _, err := s.reconciler.step(shard, true)
			if err != nil {
				return nil, err
			}
			seen[shard] += n
		}
	}
	return seen, nil
}

// RecordPipelines gives a function that tells the names of the commands of each pipeline that was run since.
func (t *Tracker) RecordPipelines() func() [][]string {
	r := &recorder{}
	t.store.single.AddHook(r)
	return func() [][]string {
		r.mu.Lock()
		defer r.mu.Unlock()
		return r.seen
	}
}

type recorder struct {
	mu   sync.Mutex
	seen [][]string
}

func (r *recorder) DialHook(next redis.DialHook) redis.DialHook { return next }

func (r *recorder) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }

func (r *recorder) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		var names []string
		for _, c := range cmds {
			names = append(names, c.Name())
		}
		r.mu.Lock()
		r.seen = append(r.seen, names)
		r.mu.Unlock()
		return next(ctx, cmds)
	}
}

// InventoriesTogether hears several beats of a worker, all with one inventory, before the inventory of any of them is
// looked at, in that order of their positions.
func (t *Tracker) InventoriesTogether(scope Scope, id string, b WorkerBeat, order ...int) error {
	heard := make([]*WorkerHeard, len(order))
	for i := range heard {
		var err error
		if heard[i], err = t.hearWorker(scope, id, b); err != nil {
			return err
		}
	}
	for _, i := range order {
		if err := t.takeInventory(heard[i], b.Inventory); err != nil {
			return err
		}
	}
	return nil
}

// TellLost has a worker told that attempts are lost, and tells of how many.
func TellLost(lists ...[]OwnedAttempt) int {
	h := &WorkerHeard{}
	for _, list := range lists {
		for _, n := range list {
			h.lose(TaskNotice{TaskID: n.TaskID, Attempt: n.Number})
		}
	}
	return len(h.Lost)
}

// CountTenant counts a tenant's live tasks and the bytes that its tasks take.
func (t *Tracker) CountTenant(tenant string) ([]int64, error) { return t.countTasks(tenant) }

// ReserveClaim reserves room for a claim that is under way; call the result when it is over.
func (t *Tracker) ReserveClaim(scope Scope, worker string, n int) (settle func(), err error) {
	g, err := t.reserveClaim(scope, worker, n, true)
	return func() { t.settleClaim(g, 0) }, err
}

// Nudged gives a channel that is told when the claims of a worker are.
func (t *Tracker) Nudged(scope Scope, worker string) (told <-chan struct{}, leave func()) {
	c := &claim{ClaimRequest: ClaimRequest{Scope: scope, WorkerID: worker}, t: t}
	leave = t.nudges.join(c)
	heard := make(chan struct{})
	go func() {
		<-c.nudge
		t.nudges.mu.Lock() // until the others have been told
		defer t.nudges.mu.Unlock()
		close(heard)
	}()
	return heard, leave
}

// HoldOffer has a claim be offered tasks that it neither takes nor leaves until `leave` is called.
func (t *Tracker) HoldOffer(r ClaimRequest) (offered int, leave func(), err error) {
	c := &claim{ClaimRequest: r, t: t}
	if err := c.reserve(true); err != nil {
		return 0, nil, err
	}
	m := t.rooms.of(t, r.Scope, r.Queue)
	w := m.join(c)
	o := <-w.offers
	return len(o.entries), func() { m.leave(w); c.giveBack() }, o.err
}

// OnlyWhenTold has full claims look for a free place only when they are told.
func (t *Tracker) OnlyWhenTold() { t.fullRetry = time.Hour }

// MaxMissed is how many attempts one inventory can miss.
const MaxMissed = maxMissed

// FailCalls lets the calls of a script fail for which `fails` says so by their number, from 0 on: before Redis has
// seen them or, lost being true, after it has run them.
func (t *Tracker) FailCalls(script string, lost bool, fails func(n int) bool) {
	t.store.single.AddHook(&failing{sha: t.store.scripts.Get(script).SHA, lost: lost, fails: fails})
}

type failing struct {
	sha   string
	lost  bool
	fails func(int) bool
	mu    sync.Mutex
	n     int
}

func (f *failing) DialHook(next redis.DialHook) redis.DialHook { return next }

func (f *failing) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }

func (f *failing) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		var failed, passed []redis.Cmder
		for _, cmd := range cmds {
			if shaOf(cmd) == f.sha && f.next() {
				failed = append(failed, cmd)
			} else {
				passed = append(passed, cmd)
			}
		}
		if f.lost {
			passed = cmds
		}
		err := errDead
		if len(passed) > 0 {
			err = next(ctx, passed)
		}
		for _, cmd := range failed {
			cmd.SetErr(errDead)
		}
		return err
	}
}

func (f *failing) next() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.n++
	return f.fails(f.n - 1)
}

// RecoverUntil has a sweeper go on with a worker's recovery for as long as the context lives.
func (s *Sweeper) RecoverUntil(ctx context.Context, scope Scope, id string) (taken int, err error) {
	s.life = ctx
	r, _ := s.t.workerRef(scope, id)
	_, taken, err = s.recoverAll([]*workerRef{r})
	return taken, err
}

// AtWork has a sweeper believe that it is at a recovery.
func (s *Sweeper) AtWork(id string) { s.begin(&workerRef{id: id}) }

// Freeze puts a shard on a node of its own, and has the calls of a script that go there wait until the channel closes.
func (t *Tracker) Freeze(shard int, script string, until <-chan struct{}) {
	o := *t.store.single.Options()
	o.Addr = strings.Replace(o.Addr, "127.0.0.1", "[::ffff:127.0.0.1]", 1)
	client := redis.NewClient(&o)
	client.AddHook(&frozen{sha: t.store.scripts.Get(script).SHA, until: until})
	t.store.mu.Lock()
	defer t.store.mu.Unlock()
	byShard := slices.Clone(*t.store.byShard.Load())
	byShard[shard] = t.store.nodeOf(client)
	t.store.byShard.Store(&byShard)
}

type frozen struct {
	sha   string
	until <-chan struct{}
}

func (f *frozen) DialHook(next redis.DialHook) redis.DialHook { return next }

func (f *frozen) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }

func (f *frozen) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		if slices.ContainsFunc(cmds, func(cmd redis.Cmder) bool { return len(cmd.Args()) > 1 && cmd.Args()[1] == f.sha }) {
			<-f.until
		}
		return next(ctx, cmds)
	}
}

// HomeOf is the shard of a worker.
func (t *Tracker) HomeOf(id string) int {
	shard, _ := t.store.workerShard(id)
	return shard
}

// TellWhenFree asks what a claim of a full worker asks for.
func (t *Tracker) TellWhenFree(worker string) { t.tellWhenFree(worker) }

// FullClaims counts the shards that are asked to say when an attempt of a worker ends.
func (t *Tracker) FullClaims(worker string) (n int) {
	for shard := range t.store.keys {
		r, err := t.store.do("test", newCall(shard, t.store.scripts.Get("held"), []string{t.store.keys[shard].held}, "~"+worker, "", 1))
		if err == nil {
			n += len(r)
		}
	}
	return n
}

// WorkerKey is where a worker's record lies.
func (t *Tracker) WorkerKey(scope Scope, id string) string {
	shard, _ := t.store.workerShard(id)
	return t.store.keys[shard].worker(taskName(scope, id))
}

// TaskKey is where a task's record lies.
func (t *Tracker) TaskKey(scope Scope, id string) string {
	return t.store.keys[t.store.shardOf(scope, id)].task(taskName(scope, id))
}

// IdempotencyKey is where an idempotency key lies.
func (t *Tracker) IdempotencyKey(scope Scope, key string) string {
	return t.store.keys[t.store.shardOf(scope, key)].idempotency(scope, key)
}

// ClaimStep does a step of a claim's record as another request does, which may take tasks for so long.
func (t *Tracker) ClaimStep(scope Scope, worker, claimID, request, what string, turn time.Duration) error {
	shard, key := t.claimKey(scope, worker, claimID)
	_, err := t.store.do("test", newCall(shard, t.store.scripts.Get("claimed"), []string{key}, request, ms(claimLife), what, ms(turn)))
	return err
}

func (t *Tracker) claimKey(scope Scope, worker, claimID string) (shard int, key string) {
	sum := sha256.Sum256([]byte(claimID))
	shard = t.store.shardOf(scope, worker)
	return shard, t.store.keys[shard].claim(scope, worker, base64.RawURLEncoding.EncodeToString(sum[:15]))
}

// ClaimKey is the key of a claim's record.
func (t *Tracker) ClaimKey(scope Scope, worker, claimID string) string {
	_, key := t.claimKey(scope, worker, claimID)
	return key
}

// BreakLooks has every look at a queue panic.
func (t *Tracker) BreakLooks() { t.metrics.claims.looks = nil }
