//go:build long

package main

import (
	"net/http"
	"sync"
)

// gate holds the answers to resized frames from a number on, so that the test decides how far the clips are.
type gate struct {
	mu      sync.Mutex
	limit   int
	changed chan struct{} // closed when limit is raised
}

func newGate(limit int) *gate { return &gate{limit: limit, changed: make(chan struct{})} }

// raise lets the frames before a number pass.
func (g *gate) raise(limit int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.limit = limit
	close(g.changed)
	g.changed = make(chan struct{})
}

// stored returns when the frame may pass, or its client has gone.
func (g *gate) stored(r *http.Request, path string) {
	number, ok := resizedFrame(path)
	if !ok {
		return
	}
	for {
		g.mu.Lock()
		limit, changed := g.limit, g.changed
		g.mu.Unlock()
		if number < limit {
			return
		}
		select {
		case <-changed:
		case <-r.Context().Done():
			return
		}
	}
}
