package tracker

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/redis/go-redis/v9"
)

// ShardOf tells where a task lives.
func (t *Tracker) ShardOf(scope Scope, id string) int { return t.store.shardOf(scope, id) }

// EndWithoutRecovery ends a worker as a process would that dies right after the verdict.
func (t *Tracker) EndWithoutRecovery(scope Scope, id string) error {
	r, err := t.findWorker("test", scope, id)
	if err != nil {
		return err
	}
	_, err = t.store.do("test", t.statusCall(r, "retire", string(WorkerForced), "", "", true))
	return err
}

// FenceEverywhere sets a worker's fence in every shard, as the first step of its recovery does.
func (t *Tracker) FenceEverywhere(scope Scope, id string) error {
	for shard, k := range t.store.keys {
		if _, err := t.store.do("test", newCall(shard, t.store.scripts.Get("fence"), []string{k.fences, k.held}, id, ms(fenceLife), 0, "1")); err != nil {
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
