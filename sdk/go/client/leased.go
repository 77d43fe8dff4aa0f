package client

import "context"

// Within makes ctx check a strict lease whenever its state is read, so that no work begins after the host slept before that is noticed. It
// is for package worker; the context that Track returns does so already.
func (a *Attempt) Within(ctx context.Context) context.Context {
	if a.lease != Strict {
		return ctx
	}
	return leased{ctx, held{a}}
}

// leased is a context derived from an attempt's.
type leased struct {
	context.Context
	attempt held
}

func (l leased) Done() <-chan struct{} {
	l.look()
	return l.Context.Done()
}

func (l leased) Err() error {
	l.look()
	return l.Context.Err()
}

func (l leased) look() { l.attempt.Look(l.attempt.client.set.clock.Now()) }
