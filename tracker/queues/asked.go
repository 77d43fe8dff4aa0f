package queues

import (
	"context"
	"slices"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/lubdub-io/lubdub/tracker/schema"
	"github.com/lubdub-io/lubdub/tracker/store"
)

// askedLabels tells which labels hashes stand for, as they stand in classes.
type askedLabels map[string]map[string]string

// of gives the labels that a class asks for; false: that is not known, since the task that could tell is gone.
func (a askedLabels) of(k schema.Class) (map[string]string, bool) {
	if k.Labels == "" {
		return nil, true
	}
	labels, known := a[k.Labels]
	return labels, known
}

// What a hash stands for never changes, so it is read from a task once, and remembered while there is room: of very
// large ones only what they are needed for now.
const (
	maxAskedLabels     = 10_000 // sets that are remembered
	maxRememberedBytes = 1024   // of each, as JSON
	askedAtOnce        = 25     // that one script reads: the largest sets are near 100 KB
)

func newAskedCache() *lru.Cache[string, map[string]string] {
	cache, _ := lru.New[string, map[string]string](maxAskedLabels) // fails for a size of 0 only
	return cache
}

// labelsOf finds what the classes of entries ask for, all that is not remembered in one go.
func (s *Service) labelsOf(ctx context.Context, entries []*schema.ReadyEntry) askedLabels {
	found := askedLabels{}
	missing := map[int][]*schema.ReadyEntry{} // by shard
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
		missing[e.Shard] = append(missing[e.Shard], e)
	}
	var calls []*store.Call
	var groups [][]*schema.ReadyEntry
	for shard, of := range missing {
		for group := range slices.Chunk(of, askedAtOnce) {
			keys := make([]string, len(group))
			for i, e := range group {
				keys[i] = s.store.Keys[shard].Doc(schema.TaskName(e.Ref.Scope, e.Ref.ID))
			}
			calls = append(calls, store.NewCall(shard, s.store.Scripts.Get("asked_labels"), keys))
			groups = append(groups, group)
		}
	}
	s.store.DoAll(ctx, "claim", calls)
	for i, c := range calls {
		for j, e := range groups[i] {
			var labels map[string]string
			text := c.Reply.Str(j)
			if schema.Unmarshal(text, &labels); c.Err != nil || schema.LabelsHash(labels) != e.Class.Labels {
				continue
			}
			found[e.Class.Labels] = labels
			if len(text) <= maxRememberedBytes {
				s.asked.Add(e.Class.Labels, labels)
			}
		}
	}
	return found
}
