package tracker

import (
	"context"

	"github.com/lubdub-io/lubdub/tracker/stats"
	"github.com/lubdub-io/lubdub/tracker/store"
)

// Examination is what a store is found to be by who has not begun to use it, and how that one's settings fit those that run there.
type Examination struct {
	store.Examination
	Running   int      // replicas that do
	Differing []string // settings that are not the same on these and here
}

// Examine looks at the store that the options name, as Open would use it, and changes nothing there. What cannot be reached at all
// is an error.
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
