package webhooks

import (
	"context"
	"sync"
	"time"

	"github.com/lubdub-io/lubdub/tracker/events"
	"github.com/lubdub-io/lubdub/tracker/model"
)

// target is a webhook in the form in which collectors match events with it.
type target struct {
	hookRef
	filter  events.Filter
	suffix  string
	sinceMs int64
	most    int64 // limit of the bytes of its deliveries
}

// known caches all enabled webhooks of the deployment.
type known struct {
	mu       sync.Mutex
	loaded   time.Time
	versions map[int]string // by shard: the change that was seen there before loading
	byScope  map[model.Scope][]*target
	total    int       // includes disabled ones
	none     time.Time // when there was none

	loadedAgain func(on map[string]bool) // called with the names of the enabled ones after each load
}

// knownFor is how long the cache is used when no change is seen. Then a change that did not reach every shard is noticed.
const knownFor = 5 * time.Second

// noneFor is how long the deployment is assumed to have no webhooks: the creation of the first one notifies every shard.
const noneFor = time.Minute

// count returns the number of webhooks, disabled ones included.
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

// targets returns all webhooks in a version no older than some looks have seen. Do not change them.
func (k *known) targets(
	ctx context.Context, s *Service, peeks map[int]peekReply,
) (byScope map[model.Scope][]*target, total int, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	current := k.byScope != nil && time.Since(k.loaded) < knownFor
	for shard, l := range peeks {
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
	for shard, l := range peeks {
		k.versions[shard] = l.version
	}
	return k.byScope, k.total, nil
}
