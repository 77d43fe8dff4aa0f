package tracker

import (
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"
)

// breakdown is what becomes of a tracker in which something panics that runs beside its callers, a lane or a sweeper: it
// cannot go on without it. So it is when a newer release has made the store unreadable to this one. It does nothing any more,
// whoever waits in it is answered 503, and Broken tells.
type breakdown struct {
	once sync.Once
	ch   chan struct{} // closed when it has happened
	err  error         // why; set before that
	told string        // what callers are told; the same
}

func newBreakdown() *breakdown { return &breakdown{ch: make(chan struct{})} }

// Broken is closed when a bug, or a newer release, has ended the tracker's work: the process should end. BrokenBy tells which.
func (t *Tracker) Broken() <-chan struct{} { return t.store.broken.ch }

// BrokenBy tells why Broken was closed, nil when it was not.
func (t *Tracker) BrokenBy() error {
	if !t.store.isBroken() {
		return nil
	}
	return t.store.broken.err
}

func (s *store) isBroken() bool {
	select {
	case <-s.broken.ch:
		return true
	default:
		return false
	}
}

// guard gives what runs beside the callers such that its panic breaks the tracker, and nothing else.
func (s *store) guard(what string, do func()) func() {
	return func() {
		defer s.contain(what)
		do()
	}
}

// contain is to be deferred.
func (s *store) contain(what string) {
	if p := recover(); p != nil {
		s.breakDown(what, p)
	}
}

func (s *store) breakDown(what string, p any) {
	s.opts.Logger.Error("a bug of Lubdub: this process cannot go on; please report it", "where", what, slog.Any("panic", p), "stack", string(debug.Stack()))
	s.giveUp(fmt.Errorf("panic in %s: %v (a bug of Lubdub; the log has the stack)", what, p),
		"this replica has run into a bug and ends; nothing is known to be wrong with the task: send it again, to another one")
}

// giveUp ends the tracker's work, for the first reason there is.
func (s *store) giveUp(err error, told string) {
	s.broken.once.Do(func() {
		s.broken.err, s.broken.told = err, told
		close(s.broken.ch)
	})
}

// bug is the fate of what waits in a tracker that broke down.
func (s *store) bug() *Error {
	return &Error{Code: Unavailable, RetryAfter: time.Second, Cause: s.broken.err, Message: s.broken.told}
}
