package sweep

import (
	"context"
	"sync"
	"time"

	"github.com/lubdub-io/lubdub/tracker/events"
	"github.com/lubdub-io/lubdub/tracker/store"
)

// trims drops events that are past their retention, in the background. Nothing waits for that, so only the sweeper with rank 0 for
// a shard does it.
type trims struct {
	store  *store.Store
	events *events.Service
	leads  *leads
}

// The pause after a trim of a node: while there is more to drop, and otherwise, jittered.
const (
	trimPause    = 50 * time.Millisecond
	trimInterval = time.Second
)

func (t *trims) round(ctx context.Context, n *store.Node) (pause time.Duration, err error) {
	more := false
	if mine := t.leads.among(t.store.Settled(n)); len(mine) > 0 {
		more, err = t.events.Trim(ctx, n, mine)
	}
	if more && err == nil {
		return trimPause, nil
	}
	return store.Jittered(trimInterval), err
}

// runOnce drops everything past its retention in some shards.
func (t *trims) runOnce(ctx context.Context, n *store.Node, shards []int) error {
	for {
		more, err := t.events.Trim(ctx, n, shards)
		if err != nil || !more || ctx.Err() != nil || t.store.IsLate(ctx, nil) {
			return err
		}
	}
}

// leads are the shards for which a sweeper has rank 0, as of its last rounds. mu protects it.
type leads struct {
	mu   sync.Mutex
	mine []bool // by shard
}

func (l *leads) set(shard int, mine bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mine[shard] = mine
}

func (l *leads) among(shards []int) (mine []int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, shard := range shards {
		if l.mine[shard] {
			mine = append(mine, shard)
		}
	}
	return mine
}
