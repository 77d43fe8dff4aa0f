package tracker

import (
	"context"

	"github.com/lubdub-io/lubdub/tracker/stats"
	"github.com/lubdub-io/lubdub/tracker/store"
)

// Examination is the state of a store before Lubdub uses it, and how these settings differ from those of running replicas.
type Examination struct {
	store.Examination
	Running   int      // number of running replicas
	Differing []string // settings that differ between these and here
}

// Examine connects to the store in the options as Open would, and changes nothing there. It returns an error when Redis cannot be reached
// at all.
func Examine(ctx context.Context, o Options) (*Examination, error) {
	if err := o.setDefaults(); err != nil {
		return nil, err
	}
	is, err := store.Examine(ctx, o.ofStore())
	if err != nil {
		return nil, err
	}
	e := &Examination{Examination: *is}
	e.Running, e.Differing = stats.Compare(o.Replica, is.Replicas)
	return e, nil
}
