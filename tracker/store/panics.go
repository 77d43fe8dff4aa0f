package store

import (
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"

	"github.com/lubdub-io/lubdub/tracker/model"
)

// breakdown is the end of a tracker's work: something that runs beside its callers, a lane or a sweeper, has panicked, without
// which it cannot go on, or a newer release has made the store unreadable to this one. The tracker does nothing more then,
// whoever waits in it is answered 503, and Broken is closed.
type breakdown struct {
	once sync.Once
	ch   chan struct{} // closed when it has happened
	err  error         // why; set before that
	told string        // what callers are told; the same
}

func newBreakdown() *breakdown { return &breakdown{ch: make(chan struct{})} }

// Broken is closed when a bug, or a newer release, has ended the tracker's work: the process should end. BrokenBy tells which.
func (s *Store) Broken() <-chan struct{} { return s.broken.ch }

// BrokenBy returns why Broken was closed, nil when it was not.
func (s *Store) BrokenBy() error {
	if !s.isBroken() {
		return nil
	}
	return s.broken.err
}

func (s *Store) isBroken() bool {
	select {
	case <-s.broken.ch:
		return true
	default:
		return false
	}
}

// Beside runs what no caller waits for. Close waits for it.
func (s *Store) Beside(what string, do func()) { s.background.Go(s.Guard(what, do)) }

// Guard returns do wrapped such that its panic breaks the tracker, and nothing else.
func (s *Store) Guard(what string, do func()) func() {
	return func() {
		defer s.Contain(what)
		do()
	}
}

// Contain is deferred where something runs beside the callers: its panic breaks the tracker.
func (s *Store) Contain(what string) {
	if p := recover(); p != nil {
		s.BreakDown(what, p)
	}
}

// BreakDown ends the tracker's work after a panic, which is told with its place and stack.
func (s *Store) BreakDown(what string, p any) {
	s.opts.Logger.Error("a bug of Lubdub: this process cannot go on; please report it",
		"where", what, slog.Any("panic", p), "stack", string(debug.Stack()))
	s.giveUp(fmt.Errorf("panic in %s: %v (a bug of Lubdub; the log has the stack)", what, p),
		"this replica has hit a bug and is shutting down; the request may or may not have been applied. Retry it on another replica")
}

// giveUp ends the tracker's work, for the first reason there is.
func (s *Store) giveUp(err error, told string) {
	s.broken.once.Do(func() {
		s.broken.err, s.broken.told = err, told
		close(s.broken.ch)
	})
}

// Bug is the error of what waits in a tracker that broke down.
func (s *Store) Bug() *model.Error {
	return &model.Error{Code: model.Unavailable, RetryAfter: time.Second, Cause: s.broken.err, Message: s.broken.told}
}
