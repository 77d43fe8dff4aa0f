// Package worker implements a process that claims tasks from a queue of Lubdub and runs them: it registers, sends heartbeats, claims
// tasks, passes them to their handlers, reports their outcomes, and stops gracefully. It needs only the standard library.
//
//	w, err := worker.New(nil, "default") // LUBDUB_URL and LUBDUB_TOKEN configure the connection
//	w.Handle("send_email", func(ctx context.Context, t *worker.Task) (any, error) { … })
//	err = w.RunUntilSignal() // nil after a clean stop
//
// A handler's context ends when its task is cancelled, lost, or timed out, or when the worker stops; context.Cause returns why: a cause of
// package client or of this package.
package worker
