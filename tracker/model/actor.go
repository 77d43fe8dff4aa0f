package model

import "context"

type actorKey struct{}

// WithActor returns a context with the actor of an operation: the subject of a control token, a worker, a sweeper. Its events contain it.
// Empty: unknown.
func WithActor(ctx context.Context, by string) context.Context {
	return context.WithValue(ctx, actorKey{}, by)
}

// ActorOf returns the actor that WithActor has set; empty: unknown.
func ActorOf(ctx context.Context) string {
	by, _ := ctx.Value(actorKey{}).(string)
	return by
}
