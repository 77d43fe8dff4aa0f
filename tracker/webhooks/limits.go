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

// How many webhooks there may be: each event is compared with all of its workspace's, and each process that sweeps knows all. No
// tenant may have more than are left for the others.
const (
	MaxOfScope  = 100
	MaxOfTenant = 250
	MaxOfAll    = 1000
)

// creations are those under way in this process, by what the names of their webhooks begin with. They count as if they were stored:
// otherwise as many could pass the limits as are sent at once.
type creations struct {
	mu    sync.Mutex
	under map[string]int
}

// begin notes a creation, and returns how many are under way by prefix, this one included.
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

// reserve refuses one more webhook than there may be. Until done is called other creations in this process count this one. Several
// processes may each let one too many pass. What configuration lists does not count as the tenant's doing.
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

// count returns how many webhooks there are whose names begin so.
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
