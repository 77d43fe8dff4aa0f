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
	once    sync.Once
	ch      chan struct{} // closed when it has happened
	err     error         // why; set before that
	message string        // of the error that callers get; the same

	background sync.WaitGroup // what runs beside the callers
	log        *slog.Logger
}

func newBreakdown(log *slog.Logger) *breakdown { return &breakdown{ch: make(chan struct{}), log: log} }

// Broken is closed when a bug, or a newer release, has ended the tracker's work: the process should end. BrokenBy tells which.
func (b *breakdown) Broken() <-chan struct{} { return b.ch }

// BrokenBy returns why Broken was closed, nil when it was not.
func (b *breakdown) BrokenBy() error {
	if !b.isBroken() {
		return nil
	}
	return b.err
}

func (b *breakdown) isBroken() bool {
	select {
	case <-b.ch:
		return true
	default:
		return false
	}
}

// AwaitBackground returns when nothing runs beside the callers any more, for tests.
func (b *breakdown) AwaitBackground() { b.background.Wait() }

// Beside runs what no caller waits for. Close waits for it.
func (b *breakdown) Beside(what string, do func()) { b.background.Go(b.Guard(what, do)) }

// Guard returns do wrapped such that its panic breaks the tracker, and nothing else.
func (b *breakdown) Guard(what string, do func()) func() {
	return func() {
		defer b.Contain(what)
		do()
	}
}

// Contain is deferred where something runs beside the callers: its panic breaks the tracker.
func (b *breakdown) Contain(what string) {
	if p := recover(); p != nil {
		b.BreakDown(what, p)
	}
}

// BreakDown ends the tracker's work after a panic, which is told with its place and stack.
func (b *breakdown) BreakDown(what string, p any) {
	b.log.Error("a bug of Lubdub: this process cannot go on; please report it",
		"where", what, slog.Any("panic", p), "stack", string(debug.Stack()))
	b.giveUp(fmt.Errorf("panic in %s: %v (a bug of Lubdub; the log has the stack)", what, p),
		"this replica has hit a bug and is shutting down; the request may or may not have been applied. Retry it on another replica")
}

// giveUp ends the tracker's work, for the first reason there is.
func (b *breakdown) giveUp(err error, message string) {
	b.once.Do(func() {
		b.err, b.message = err, message
		close(b.ch)
	})
}

// Bug is the error of what waits in a tracker that broke down.
func (b *breakdown) Bug() *model.Error {
	return &model.Error{Code: model.Unavailable, RetryAfter: time.Second, Cause: b.err, Message: b.message}
}
