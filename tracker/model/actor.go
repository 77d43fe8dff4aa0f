package model

import "context"

type actorKey struct{}

// WithActor returns a context for what somebody does: the subject of a control token, a worker, a sweeper. Events that come
// of it say so. Empty: it is not known.
func WithActor(ctx context.Context, by string) context.Context {
	return context.WithValue(ctx, actorKey{}, by)
}

// ActorOf returns who acts, as WithActor was told; empty: it is not known.
func ActorOf(ctx context.Context) string {
	by, _ := ctx.Value(actorKey{}).(string)
	return by
}
