package webhooks

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/schema"
	"github.com/lubdub-io/lubdub/tracker/store"
)

// These limit the number of webhooks: each event is compared with all of its workspace's, and each sweeper process knows all. No tenant
// may have more than are left for the others.
const (
	MaxOfScope  = 100
	MaxOfTenant = 250
	MaxOfAll    = 1000
)

// creations are those in progress in this process, by prefix of their webhooks' names. They count as if they were stored: otherwise any
// number of concurrent ones could pass the limits.
type creations struct {
	mu    sync.Mutex
	under map[string]int
}

// begin records a creation, and returns how many are in progress by prefix, including this one.
func (c *creations) begin(prefixes ...string) (under map[string]int, done func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, prefix := range prefixes {
		c.under[prefix]++
	}
	return maps.Clone(c.under), func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		for _, prefix := range prefixes {
			if c.under[prefix]--; c.under[prefix] == 0 {
				delete(c.under, prefix)
			}
		}
	}
}

// reserve returns an error when one more webhook would exceed a limit. Until `done` is called, other creations in this process count this
// one. Several processes may each let one too many pass. Webhooks of the configuration do not count for the tenant's limit.
func (s *Service) reserve(ctx context.Context, scope model.Scope, managed bool) (done func(), err error) {
	ofScope, ofTenant := scope.String()+"/", scope.Tenant+"/"
	under, end := s.creations.begin(ofScope, ofTenant, "")
	defer func() {
		if err != nil {
			end()
		}
	}()
	left := MaxOfAll
	for _, limit := range []struct {
		prefix, where string
		most          int
	}{{"", "the deployment", MaxOfAll}, {ofTenant, "this tenant", MaxOfTenant}, {ofScope, "this workspace", MaxOfScope}} {
		if managed && limit.prefix == ofTenant {
			continue
		}
		total, err := s.count(ctx, "createWebhook", limit.prefix)
		if err != nil {
			return nil, err
		}
		if total+under[limit.prefix] > limit.most || limit.prefix == ofTenant && total+under[ofTenant] > left {
			return nil, &model.Error{Code: model.Overloaded, TooMany: true, Op: "createWebhook", RetryAfter: time.Minute, Message: fmt.Sprintf(
				"%s has %d webhooks, which is the most that it may have now; delete one that is not used any more", limit.where, total)}
		}
		if limit.prefix == "" {
			left = MaxOfAll - total
		}
	}
	return end, nil
}

// count returns how many webhooks have names with this prefix.
func (s *Service) count(ctx context.Context, op, prefix string) (total int, err error) {
	calls, err := s.store.EachShard(ctx, op, func(shard int, _ *schema.ShardKeys) *store.Call {
		return s.listCall(shard, prefix, "", 1)
	})
	if err != nil {
		return 0, err
	}
	for _, c := range calls {
		total += readList(c.Reply).total
	}
	return total, nil
}
