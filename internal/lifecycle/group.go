package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"sync"
)

// Group runs services concurrently. The first that ends before it was stopped, with an error or without, ends the group's context, so
// that the whole process stops instead of continuing without it.
type Group struct {
	ctx  context.Context
	fail context.CancelCauseFunc
	wg   sync.WaitGroup
}

// NewGroup creates a group whose context also ends with ctx.
func NewGroup(ctx context.Context) *Group {
	g := &Group{}
	g.ctx, g.fail = context.WithCancelCause(ctx)
	return g
}

// Done is closed when the process should stop: a service ended, or the group's parent context.
func (g *Group) Done() <-chan struct{} { return g.ctx.Done() }

// Err returns why a service ended the group's context, or nil if none did.
func (g *Group) Err() error {
	if cause := context.Cause(g.ctx); errors.As(cause, new(*serviceError)) {
		return cause
	}
	return nil
}

// Stop ends a service and waits until it has returned; it fails if limit ends first. It may be called again.
type Stop func(limit context.Context) error

// Start runs a service. Its context ends when the returned stop function is called, and not with the group's context: services are stopped
// one after the other.
func (g *Group) Start(name string, run func(context.Context) error) Stop {
	ctx, cancel := context.WithCancel(context.WithoutCancel(g.ctx))
	ended := make(chan struct{})
	g.wg.Go(func() {
		defer close(ended)
		err := run(ctx)
		if ctx.Err() != nil && (err == nil || errors.Is(err, context.Canceled)) {
			return
		}
		if err == nil {
			err = errors.New("it ended unexpectedly")
		}
		g.fail(&serviceError{name, err})
	})
	return func(limit context.Context) error {
		cancel()
		select {
		case <-ended:
			return nil
		case <-limit.Done():
		}
		select {
		case <-ended: // in time after all
			return nil
		default:
			return fmt.Errorf("the %s had not ended", name)
		}
	}
}

type serviceError struct {
	name  string
	cause error
}

func (e *serviceError) Error() string { return fmt.Sprintf("%s: %v", e.name, e.cause) }
func (e *serviceError) Unwrap() error { return e.cause }
