package queues

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/schema"
)

// ScopedQueue is a queue with its scope.
type ScopedQueue struct {
	Scope model.Scope
	*Queue
}

// maxClassesLooked bounds what Deepest reads, since it runs every ten seconds.
const maxClassesLooked = 20_000

var errLookedEnough = errors.New("looked through enough")

// Deepest returns, across all scopes, the queues in which most tasks wait, the deepest first and without empty ones. If tasks wait
// in more than 20,000 classes of type, runtime, labels and pin, some classes are not read.
func (s *Service) Deepest(ctx context.Context, most int) ([]ScopedQueue, error) {
	const op = "queues"
	ctx = s.store.Within(ctx, 0)
	depths, looked := map[string]int{}, 0
	err := s.waitingClasses(ctx, op, "", func(classes []waitingClass) error {
		for _, c := range classes {
			parts := strings.SplitN(c.head.Class.Name, "/", 4)
			depths[strings.Join(parts[:3], "/")] += c.tasks
		}
		if looked += len(classes); looked > maxClassesLooked {
			return errLookedEnough
		}
		return nil
	}, func(string) {})
	if err != nil && !errors.Is(err, errLookedEnough) {
		return nil, err
	}
	names := make([]string, 0, len(depths))
	for name := range depths {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int { return cmp.Or(depths[b]-depths[a], strings.Compare(a, b)) })
	var found []ScopedQueue
	for _, name := range names[:min(most, len(names))] {
		scope, queue, ok := schema.SplitName(name)
		if !ok {
			continue
		}
		of, err := s.queues(ctx, op, scope, queue)
		if err != nil {
			return nil, err
		}
		for _, q := range of { // one, or none if its last task was just taken
			found = append(found, ScopedQueue{scope, q})
		}
	}
	return found, nil
}

// Unrunnable counts the waiting tasks without an eligible worker.
func (q *Queue) Unrunnable() (n int) {
	for _, k := range q.Kinds {
		n += k.Unrunnable
	}
	return n
}
