package store

import (
	"context"
	"maps"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// NodeWork is periodic work on each Redis node.
type NodeWork struct {
	Name   string             // for the log
	Errors prometheus.Counter // counts rounds that failed
	// Round runs once over a node. It returns the pause until the next round, and an error when the round failed.
	Round func(ctx context.Context, n *Node) (pause time.Duration, err error)
}

// RunOnEachNode repeats the work until ctx ends, and returns when no round is running. Each node has its own goroutine, so that a frozen
// node delays no other. It starts when the node gets shards, and ends when the node has none left.
func (s *Store) RunOnEachNode(ctx context.Context, w NodeWork) {
	var running sync.WaitGroup
	defer running.Wait()
	started := map[*Node]bool{}
	for {
		for n := range s.ByNode() {
			if !started[n] {
				started[n] = true
				running.Go(s.Guard(w.Name, func() { s.runOnNode(ctx, n, w) }))
			}
		}
		maps.DeleteFunc(started, func(n *Node, _ bool) bool { return n.Retired() })
		if !Pause(ctx, time.Second) { // the map of a Cluster may have changed
			return
		}
	}
}

func (s *Store) runOnNode(ctx context.Context, n *Node, w NodeWork) {
	log, node, failing := s.opts.Logger, n.client.Options().Addr, false
	for ctx.Err() == nil && !n.Retired() {
		pause, err := w.Round(ctx, n)
		switch {
		case err != nil:
			w.Errors.Inc()
			if !failing {
				log.Warn("work is paused until Redis responds", "work", w.Name, "node", node, "error", err)
			}
		case failing:
			log.Info("work resumed", "work", w.Name, "node", node)
		}
		failing = err != nil
		Pause(ctx, pause)
	}
	if failing && ctx.Err() == nil {
		log.Info("work resumed", "work", w.Name, "node", node) // on the nodes that replaced it
	}
}
