package tracker

import (
	"slices"

	lru "github.com/hashicorp/golang-lru/v2"
)

// askedLabels tells which labels hashes stand for, as they stand in classes.
type askedLabels map[string]map[string]string

// of gives the labels that a class asks for; false: that is not known, since the task that could tell is gone.
func (a askedLabels) of(k class) (map[string]string, bool) {
	if k.labels == "" {
		return nil, true
	}
	labels, known := a[k.labels]
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
func (t *Tracker) labelsOf(entries []*readyEntry) askedLabels {
	found := askedLabels{}
	missing := map[int][]*readyEntry{} // by shard
	asked := map[string]bool{}
	for _, e := range entries {
		hash := e.class.labels
		if hash == "" || asked[hash] {
			continue
		}
		asked[hash] = true
		if labels, ok := t.asked.Get(hash); ok {
			found[hash] = labels
			continue
		}
		missing[e.shard] = append(missing[e.shard], e)
	}
	var calls []*call
	var groups [][]*readyEntry
	for shard, of := range missing {
		for group := range slices.Chunk(of, askedAtOnce) {
			keys := make([]string, len(group))
			for i, e := range group {
				keys[i] = t.store.keys[shard].doc(taskName(e.ref.scope, e.ref.id))
			}
			calls = append(calls, newCall(shard, t.store.scripts.Get("asked_labels"), keys))
			groups = append(groups, group)
		}
	}
	t.store.doAll("claim", calls)
	for i, c := range calls {
		for j, e := range groups[i] {
			var labels map[string]string
			text := c.reply.str(j)
			if unmarshal(text, &labels); c.err != nil || labelsHash(labels) != e.class.labels {
				continue
			}
			found[e.class.labels] = labels
			if len(text) <= maxRememberedBytes {
				t.asked.Add(e.class.labels, labels)
			}
		}
	}
	return found
}
