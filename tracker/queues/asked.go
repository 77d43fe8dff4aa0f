package queues

import (
	"context"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/lubdub-io/lubdub/tracker/schema"
	"github.com/lubdub-io/lubdub/tracker/store"
)

// askedLabels maps hashes, as they stand in classes, to the labels that they stand for.
type askedLabels map[string]map[string]string

// of returns the labels that a class asks for; false: they are not known, since the task that could tell is gone.
func (a askedLabels) of(k schema.Class) (map[string]string, bool) {
	if k.Labels == "" {
		return nil, true
	}
	labels, known := a[k.Labels]
	return labels, known
}

// What a hash stands for never changes, so it is read from a task once, and remembered while there is room: very large ones only
// for as long as they are needed.
const (
	maxAskedLabels     = 10_000 // sets that are remembered
	maxRememberedBytes = 1024   // of each, as JSON
)

func newAskedCache() *lru.Cache[string, map[string]string] {
	cache, _ := lru.New[string, map[string]string](maxAskedLabels) // fails for a size of 0 only
	return cache
}

// labelsOf finds what the classes of entries ask for, everything that is not remembered in one go.
func (s *Service) labelsOf(ctx context.Context, entries []*schema.ReadyEntry) askedLabels {
	found := askedLabels{}
	var missing []*schema.ReadyEntry
	asked := map[string]bool{}
	for _, e := range entries {
		hash := e.Class.Labels
		if hash == "" || asked[hash] {
			continue
		}
		asked[hash] = true
		if labels, ok := s.asked.Get(hash); ok {
			found[hash] = labels
			continue
		}
		missing = append(missing, e)
	}
	groups := byShard(missing, askedAtOnce)
	calls := store.CallEach(groups, s.askedLabelsCall)
	s.store.DoAll(ctx, "claim", calls)
	for i, c := range calls {
		if c.Err != nil {
			continue
		}
		for j, text := range readAskedLabels(c.Reply) {
			var labels map[string]string
			hash := groups[i][j].Class.Labels
			if schema.Unmarshal(text, &labels); schema.LabelsHash(labels) != hash {
				continue
			}
			found[hash] = labels
			if len(text) <= maxRememberedBytes {
				s.asked.Add(hash, labels)
			}
		}
	}
	return found
}

func byShard(entries []*schema.ReadyEntry, atMost int) [][]*schema.ReadyEntry {
	return schema.ByShard(entries, atMost, func(e *schema.ReadyEntry) int { return e.Shard })
}
