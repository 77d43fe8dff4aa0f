package store

import (
	"context"
	"sync"

	"github.com/lubdub-io/lubdub/lua"
)

// wakes receives, with one subscription for the whole replica, what scripts publish on the wake channel of their database. It starts when
// the first request waits, since a replica without such requests needs none.
type wakes struct {
	once   sync.Once
	cancel context.CancelFunc
	done   sync.WaitGroup
	mu     sync.Mutex
	closed bool
	users  []wakeUser
}

// wakeUser receives every message, and ignores those that are for others.
type wakeUser struct {
	all func()               // messages may have been missed
	one func(message string) // see lua/lib/wake.lua
}

// OnWake registers a user before the first ListenForWakes.
func (s *Store) OnWake(all func(), one func(message string)) {
	s.wakes.users = append(s.wakes.users, wakeUser{all, one})
}

// ListenForWakes starts the subscription unless it has been started. OnWake's functions wake all
// requests once it is established, so a request that joins them later must look first.
func (s *Store) ListenForWakes() {
	w := &s.wakes
	w.once.Do(func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.closed {
			return
		}
		ctx, cancel := context.WithCancel(context.Background())
		w.cancel = cancel
		w.done.Go(s.Guard("receiving wake-ups", func() { s.receiveWakes(ctx) }))
	})
}

func (s *Store) receiveWakes(ctx context.Context) {
	s.subscribe(ctx, lua.WakeChannel(s.Database()), func() {
		for _, u := range s.wakes.users {
			u.all()
		}
	}, func(message string) {
		for _, u := range s.wakes.users {
			u.one(message)
		}
	})
}

func (w *wakes) close() {
	w.mu.Lock()
	w.closed = true
	cancel := w.cancel
	w.mu.Unlock()
	if cancel != nil {
		cancel()
	}
	w.done.Wait()
}
