package webhooks

import (
	"context"
	"sync"
	"time"

	"github.com/lubdub-io/lubdub/tracker/events"
	"github.com/lubdub-io/lubdub/tracker/model"
)

// target is a webhook as collectors hold events against it.
type target struct {
	hookRef
	filter  events.Filter
	suffix  string
	sinceMs int64
	most    int64 // bytes that its deliveries may take
}

// known are all webhooks of the deployment that are on, as they were read last.
type known struct {
	mu       sync.Mutex
	loaded   time.Time
	versions map[int]string // by shard: which change was seen there before they were read
	byScope  map[model.Scope][]*target
	total    int       // those that are off too
	none     time.Time // when there were none

	loadedAgain func(on map[string]bool) // gets the names of those that are on each time they were read
}

// knownFor is how long they are used though no change was seen: one whose news did not reach every shard is seen then.
const knownFor = 5 * time.Second

// noneFor is how long it is taken for granted that there are none: who makes the first one tells every shard.
const noneFor = time.Minute

// count returns how many there are, those that are off too.
func (k *known) count(ctx context.Context, s *Service) (int, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if time.Since(k.none) < noneFor {
		return 0, nil
	}
	total, err := s.count(ctx, "webhooks", "")
	if err == nil && total == 0 {
		k.none = time.Now()
	}
	return total, err
}

// targets returns all webhooks as of no earlier than what some looks have seen. They are not to be changed.
func (k *known) targets(ctx context.Context, s *Service, looks map[int]look) (byScope map[model.Scope][]*target, total int, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	current := k.byScope != nil && time.Since(k.loaded) < knownFor
	for shard, l := range looks {
		if seen, ok := k.versions[shard]; !ok || seen != l.version {
			current = false
		}
	}
	if current {
		return k.byScope, k.total, nil
	}
	all, err := s.all(ctx, "")
	if err != nil {
		return nil, 0, err
	}
	shares := s.shares(all)
	if err := s.trim(ctx, all, shares); err != nil {
		return nil, 0, err
	}
	k.byScope, k.total, k.loaded = map[model.Scope][]*target{}, len(all), time.Now()
	on := map[string]bool{}
	for _, w := range all {
		if !w.Settings.Enabled {
			continue
		}
		r := s.ref(w.Scope, w.ID)
		on[r.name] = true
		k.byScope[w.Scope] = append(k.byScope[w.Scope], &target{r, w.Settings.Filter, suffixOf(r.name), w.since.UnixMilli(),
			shares[w.Scope.Tenant]})
	}
	k.loadedAgain(on)
	if k.versions == nil {
		k.versions = map[int]string{}
	}
	for shard, l := range looks {
		k.versions[shard] = l.version
	}
	return k.byScope, k.total, nil
}
