// Package worker is a process that claims tasks from a queue of Lubdub and does them: it registers, beats, claims, hands the
// tasks to their handlers, tells how they ended, and leaves in good order when it is told to stop. It needs the standard
// library only.
//
//	w, err := worker.New(nil, "default") // LUBDUB_URL and LUBDUB_TOKEN say where
//	w.Handle("send_email", func(ctx context.Context, t *worker.Task) (any, error) { … })
//	err = w.RunUntilSignal() // nil after a clean stop
//
// A handler's context ends when its task is cancelled, lost, or timed out, or when the worker stops; context.Cause says why, with
// the causes of package client and those of this one.
package worker
