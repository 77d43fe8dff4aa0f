package reconcile

import "context"

// WalkSome takes this many steps in each shard, as Run does, and returns how many entries each shard had.
func (r *Reconciler) WalkSome(steps int) ([]int, error) {
	seen := make([]int, len(r.shard))
	for shard := range seen {
		for range steps {
			n, _, err := r.step(context.Background(), shard, true)
			if err != nil {
				return nil, err
			}
			seen[shard] += n
		}
	}
	return seen, nil
}
