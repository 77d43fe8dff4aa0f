package store

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/lubdub-io/lubdub/lua"
	"github.com/lubdub-io/lubdub/tracker/schema"
)

// Open connects to Redis, checks that it is fit to hold tasks, and learns into how many shards it is cut. Begin before
// anything else is asked of it, and Close it.
func Open(ctx context.Context, o Options) (*Store, error) {
	s := &Store{opts: o, broken: newBreakdown(), Scripts: o.Scripts, nodes: map[string]*Node{}, metrics: newMetrics(o.Registerer)}
	if err := s.connect(); err != nil {
		return nil, err
	}
	if err := s.learn(ctx); err != nil {
		_ = s.Close()
		return nil, err
	}
	return s, nil
}

func (s *Store) learn(ctx context.Context) error {
	if err := s.check(ctx); err != nil {
		return err
	}
	shards, founded, err := s.settleShards(ctx)
	if err != nil {
		return err
	}
	for i := range shards {
		s.Keys = append(s.Keys, schema.NewShardKeys(i))
	}
	s.founded, s.unsettled = founded, make([]atomic.Int64, shards)
	s.Scripts = s.Scripts.For(lua.Deployment{Database: s.Database(), EventsPerShard: s.opts.EventsPerShard})
	s.scripts = newScripts(s.Scripts)
	return nil
}

// OnMap has f be told of each new map of shards before it is used, one at a time. Say so before Begin.
func (s *Store) OnMap(f func(byShard []*Node)) { s.onMap = f }

// Begin draws the map of shards, brings an older stored format forward, and begins to watch the servers.
func (s *Store) Begin(ctx context.Context) error {
	if err := s.drawMap(ctx); err != nil {
		return err
	}
	if err := s.settleSchema(ctx, schemaSteps); err != nil {
		return err
	}
	s.eviction.at, s.eviction.byMap = time.Now(), s.byShard.Load()
	life, stop := context.WithCancel(context.Background())
	s.stop = stop
	s.watching.Go(s.Guard("watching for eviction", func() { s.watchEviction(life) }))
	s.watching.Go(s.Guard("watching the version of the stored format", func() { s.watchSchema(life) }))
	return nil
}
