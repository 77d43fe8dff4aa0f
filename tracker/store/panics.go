package store

import (
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"

	"github.com/lubdub-io/lubdub/tracker/model"
)

// breakdown is the end of a tracker's work after a panic in a background goroutine, such as a lane or a sweeper, or after a newer release
// has made the store unreadable to this one. The tracker then does nothing more, waiting callers get 503, and Broken is closed.
type breakdown struct {
	once    sync.Once
	ch      chan struct{} // closed after a breakdown
	err     error         // why; set before that
	message string        // of the error that callers get; set before that

	background sync.WaitGroup // background goroutines
	log        *slog.Logger
}

func newBreakdown(log *slog.Logger) *breakdown { return &breakdown{ch: make(chan struct{}), log: log} }

// Broken is closed when a bug, or a newer release, has ended the tracker's work: the process should exit. BrokenBy returns which.
func (b *breakdown) Broken() <-chan struct{} { return b.ch }

// BrokenBy returns why Broken was closed, or nil when it was not.
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

// AwaitBackground waits until no background work runs, for tests.
func (b *breakdown) AwaitBackground() { b.background.Wait() }

// Runs `do` in the background. Close waits for it.
func (b *breakdown) Go(what string, do func()) { b.background.Go(b.Guard(what, do)) }

// Guard returns a function that runs `do` and contains its panic.
func (b *breakdown) Guard(what string, do func()) func() {
	return func() {
		defer b.Contain(what)
		do()
	}
}

// Contain is deferred in background work: its panic breaks the tracker down instead of ending the process.
func (b *breakdown) Contain(what string) {
	if p := recover(); p != nil {
		b.BreakDown(what, p)
	}
}

// BreakDown ends the tracker's work after a panic, and logs its place and stack.
func (b *breakdown) BreakDown(what string, p any) {
	b.log.Error("a bug in Lubdub: this process cannot continue; please report it",
		"where", what, slog.Any("panic", p), "stack", string(debug.Stack()))
	b.giveUp(fmt.Errorf("panic in %s: %v (a bug in Lubdub; the log has the stack)", what, p),
		"this replica has hit a bug and is shutting down; the request may or may not have been applied. Retry it on another replica")
}

// giveUp ends the tracker's work. Only the first reason is kept.
func (b *breakdown) giveUp(err error, message string) {
	b.once.Do(func() {
		b.err, b.message = err, message
		close(b.ch)
	})
}

// Bug returns the error of calls to a tracker that broke down.
func (b *breakdown) Bug() *model.Error {
	return &model.Error{Code: model.Unavailable, RetryAfter: time.Second, Cause: b.err, Message: b.message}
}
