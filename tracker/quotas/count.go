package quotas

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/schema"
	"github.com/lubdub-io/lubdub/tracker/store"
)

const (
	LightBytes       = 1024 // the minimum that every task counts; LIGHT in lua/lib/task.lua
	workspacesAtOnce = 100  // how many one script counts
)

func (s *Service) setQuotas() {
	s.tasks = newQuota(
		limit{s.opts.TenantTasks, tooMany("create", time.Second,
			"the tenant has %d tasks that are not finished, or nearly so, which is as many as it may (tenant-live-tasks); "+
				"create more when some have finished, cancel some, or have the limit raised"), s.metrics.over("live_tasks")},
		limit{s.opts.TenantBytes, tooMany("create", time.Minute,
			"the tenant's tasks, those that have finished included, take %d bytes or nearly so, which is as many as they may "+
				"(tenant-stored-bytes); send references in place of large payloads, keep finished tasks for less long "+
				"(finished-retention), or have the limit raised"), s.metrics.over("stored_bytes")})
	s.workers = newQuota(limit{s.opts.TenantWorkers, tooMany("register", 10*time.Second,
		"the tenant has %d workers that are not OFFLINE, which is as many as it may (tenant-workers); "+
			"deregister those that are not needed, let fewer of a larger maxConcurrent do the work, or have the limit raised"),
		s.metrics.over("workers")})
}

func tooMany(op string, retryAfter time.Duration, format string) func(most int64) *model.Error {
	return func(most int64) *model.Error {
		return &model.Error{Code: model.Overloaded, TooMany: true, Op: op, RetryAfter: retryAfter, Message: fmt.Sprintf(format, most)}
	}
}

func (m *metrics) over(of string) prometheus.Counter { return m.quota.WithLabelValues(of) }

// CountTasks reads a tenant's number of live tasks, and the bytes of all its tasks.
func (s *Service) CountTasks(ctx context.Context, tenant string) ([]int64, error) {
	counted := make([]int64, 2)
	var err error
	if s.opts.TenantTasks > 0 {
		live := schema.Letters(model.Scheduled, model.Queued, model.Dispatched, model.Running)
		counted[0], err = s.countLive(ctx, tenant, live, func(k *schema.ShardKeys) string { return k.Index })
		if err != nil {
			return nil, err
		}
	}
	if s.opts.TenantBytes > 0 {
		counted[1], err = s.countBytes(ctx, tenant)
	}
	return counted, err
}

// countWorkers returns a tenant's number of workers that are not OFFLINE.
func (s *Service) countWorkers(ctx context.Context, tenant string) ([]int64, error) {
	n, err := s.countLive(ctx, tenant, model.StatusCode(model.Online, model.Draining), func(k *schema.ShardKeys) string { return k.Workers })
	return []int64{n}, err
}

func (s *Service) countLive(ctx context.Context, tenant, states string, index func(*schema.ShardKeys) string) (total int64, err error) {
	after := map[int]string{}
	for shard := range s.store.Keys {
		after[shard] = ""
	}
	for len(after) > 0 {
		calls := make([]*store.Call, 0, len(after))
		for shard, from := range after {
			calls = append(calls, s.tenantLiveCall(shard, index(s.store.Keys[shard]), tenant, states, from, workspacesAtOnce))
		}
		s.store.DoAll(ctx, "quota", calls)
		if err := store.FirstError(calls); err != nil {
			return 0, err
		}
		clear(after)
		for _, c := range calls {
			count, last := readTenantLive(c.Reply)
			if total += count; last != "" {
				after[c.Shard] = last
			}
		}
	}
	return total, nil
}

func (s *Service) countBytes(ctx context.Context, tenant string) (total int64, err error) {
	calls, err := s.store.EachShard(ctx, "quota", func(shard int, k *schema.ShardKeys) *store.Call {
		return s.tenantSizesCall(shard, k.Index, tenant)
	})
	if err != nil {
		return 0, err
	}
	for _, c := range calls {
		tasks, larger := readTenantSizes(c.Reply)
		total += LightBytes * tasks
		for _, size := range larger {
			total += size.tasks * bytesOfSize(size.class)
		}
	}
	return total, nil
}

// bytesOfSize returns the middle of a class of sizes, four of which make a doubling: it is at most 10 % off.
func bytesOfSize(class string) int64 {
	if class == "" {
		return 0
	}
	return int64(LightBytes * math.Exp2((float64(class[0]-'A')+0.5)/4))
}
