package worker

import (
	"context"
	"errors"
	"fmt"
)

// handlers are the handlers of a worker. They do not change once it runs.
type handlers struct {
	byType   map[string]Handler
	fallback Handler // for tasks without a type; nil: none
	wraps    []Middleware
	wrong    []error // errors in the calls that added handlers
}

func (h *handlers) add(taskType string, one Handler) {
	switch {
	case one == nil:
		h.wrong = append(h.wrong, fmt.Errorf("worker: the handler of %q is nil", taskType))
		one = func(context.Context, *Task) (any, error) { return nil, nil } // which will not run
	case taskType == "":
		h.wrong = append(h.wrong, errors.New("worker: a handler has no type; name it, or use HandleDefault for tasks without one"))
	case h.byType[taskType] != nil:
		h.wrong = append(h.wrong, fmt.Errorf("worker: there are two handlers for %q; keep one", taskType))
	}
	h.byType[taskType] = one
}

func (h *handlers) addFallback(one Handler) {
	switch {
	case one == nil:
		h.wrong = append(h.wrong, errors.New("worker: the default handler is nil"))
	case h.fallback != nil:
		h.wrong = append(h.wrong, errors.New("worker: there are two default handlers; keep one"))
	}
	h.fallback = one
}

// check returns what is wrong with the handlers of a worker that claims these types.
func (h *handlers) check(types []string) error {
	wrong := h.wrong
	if len(h.byType) == 0 && h.fallback == nil {
		wrong = append(wrong, errors.New("worker: there is no handler; call Handle before Run"))
	} else if len(h.byType) == 0 {
		wrong = append(wrong, errors.New("worker: a worker registers for at least one type; add a handler with Handle to the default one"))
	}
	for _, t := range types {
		if h.byType[t] == nil {
			wrong = append(wrong, fmt.Errorf("worker: tasks of type %q would be claimed and have no handler; add it, or leave the type out", t))
		}
	}
	return errors.Join(wrong...)
}
