package queues

import (
	"context"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/lubdub-io/lubdub/tracker/schema"
	"github.com/lubdub-io/lubdub/tracker/store"
)

// requiredLabels maps the label hashes of classes to the labels.
type requiredLabels map[string]map[string]string

// of returns the labels that a class requires; false: they are not known, since the task that has them is gone.
func (a requiredLabels) of(k schema.Class) (map[string]string, bool) {
	if k.Labels == "" {
		return nil, true
	}
	labels, known := a[k.Labels]
	return labels, known
}

// The labels that a hash identifies never change, so they are read from a task once and cached; very large ones are kept only
// while they are needed.
const (
	maxCachedLabels    = 10_000 // sets that are cached
	maxRememberedBytes = 1024   // of each set, as JSON
)

func newLabelCache() *lru.Cache[string, map[string]string] {
	cache, _ := lru.New[string, map[string]string](maxCachedLabels) // fails only for a size of 0
	return cache
}

// labelsOf returns the labels that the classes of entries require, and reads all that are not cached in one round trip.
func (s *Service) labelsOf(ctx context.Context, entries []*schema.ReadyEntry) requiredLabels {
	found := requiredLabels{}
	var missing []*schema.ReadyEntry
	seen := map[string]bool{}
	for _, e := range entries {
		hash := e.Class.Labels
		if hash == "" || seen[hash] {
			continue
		}
		seen[hash] = true
		if labels, ok := s.labelCache.Get(hash); ok {
			found[hash] = labels
			continue
		}
		missing = append(missing, e)
	}
	groups := byShard(missing, labelsAtOnce)
	calls := store.CallEach(groups, s.requiredLabelsCall)
	s.store.DoAll(ctx, "claim", calls)
	for i, c := range calls {
		if c.Err != nil {
			continue
		}
		for j, text := range readRequiredLabels(c.Reply) {
			var labels map[string]string
			hash := groups[i][j].Class.Labels
			if schema.Unmarshal(text, &labels); schema.LabelsHash(labels) != hash {
				continue
			}
			found[hash] = labels
			if len(text) <= maxRememberedBytes {
				s.labelCache.Add(hash, labels)
			}
		}
	}
	return found
}

func byShard(entries []*schema.ReadyEntry, atMost int) [][]*schema.ReadyEntry {
	return schema.ByShard(entries, atMost, func(e *schema.ReadyEntry) int { return e.Shard })
}
