package tracker

import (
	"fmt"
	"math"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

const (
	lightBytes       = 1024 // that every task counts as at least; LIGHT in lua/lib/task.lua
	workspacesAtOnce = 100  // that one script counts
)

// quotas are what tenants are held to; nil: nothing.
type quotas struct{ tasks, workers *quota }

func (t *Tracker) setQuotas() {
	t.quotas.tasks = newQuota(
		limit{t.opts.TenantTasks, tooMany("create", time.Second,
			"the tenant has %d tasks that are not finished, or nearly so, which is as many as it may (tenant-live-tasks); create more when some have finished, cancel some, or have the limit raised"), t.metrics.overQuota("live_tasks")},
		limit{t.opts.TenantBytes, tooMany("create", time.Minute,
			"the tenant's tasks, those that have finished included, take %d bytes or nearly so, which is as many as they may (tenant-stored-bytes); send references in place of large payloads, keep finished tasks for less long (finished-retention), or have the limit raised"), t.metrics.overQuota("stored_bytes")})
	t.quotas.workers = newQuota(limit{t.opts.TenantWorkers, tooMany("register", 10*time.Second,
		"the tenant has %d workers that are not OFFLINE, which is as many as it may (tenant-workers); deregister those that are not needed, let fewer of a larger maxConcurrent do the work, or have the limit raised"), t.metrics.overQuota("workers")})
}

func tooMany(op string, retryAfter time.Duration, format string) func(most int64) *Error {
	return func(most int64) *Error {
		return &Error{Code: Overloaded, TooMany: true, Op: op, RetryAfter: retryAfter, Message: fmt.Sprintf(format, most)}
	}
}

func (m *metrics) overQuota(of string) prometheus.Counter { return m.quota.WithLabelValues(of) }

// countTasks counts a tenant's live tasks and what all its tasks take.
func (t *Tracker) countTasks(tenant string) ([]int64, error) {
	counted := make([]int64, 2)
	var err error
	if t.opts.TenantTasks > 0 {
		if counted[0], err = t.countLive(tenant, letters(Queued, Dispatched, Running), func(k *shardKeys) string { return k.ix }); err != nil {
			return nil, err
		}
	}
	if t.opts.TenantBytes > 0 {
		counted[1], err = t.countBytes(tenant)
	}
	return counted, err
}

// countTenantWorkers counts a tenant's workers that are not OFFLINE.
func (t *Tracker) countTenantWorkers(tenant string) ([]int64, error) {
	n, err := t.countLive(tenant, statusCode(Online, Draining), func(k *shardKeys) string { return k.workers })
	return []int64{n}, err
}

func (t *Tracker) countLive(tenant, states string, index func(*shardKeys) string) (total int64, err error) {
	after := map[int]string{}
	for shard := range t.store.keys {
		after[shard] = ""
	}
	for len(after) > 0 {
		calls := make([]*call, 0, len(after))
		for shard, from := range after {
			calls = append(calls, newCall(shard, t.store.scripts.Get("tenant_live"), []string{index(t.store.keys[shard])}, tenant, states, from, workspacesAtOnce))
		}
		t.store.doAll("quota", calls)
		clear(after)
		for _, c := range calls {
			if c.err != nil {
				return 0, c.err
			}
			if total += c.reply.int(0); c.reply.str(1) != "" {
				after[c.shard] = c.reply.str(1)
			}
		}
	}
	return total, nil
}

func (t *Tracker) countBytes(tenant string) (total int64, err error) {
	calls := make([]*call, t.store.shards())
	for shard, k := range t.store.keys {
		calls[shard] = newCall(shard, t.store.scripts.Get("tenant_sizes"), []string{k.ix}, tenant)
	}
	t.store.doAll("quota", calls)
	for _, c := range calls {
		if c.err != nil {
			return 0, c.err
		}
		total += lightBytes * c.reply.int(0)
		for i := 1; i+1 < len(c.reply); i += 2 {
			total += c.reply.int(i+1) * bytesOfSize(c.reply.str(i))
		}
	}
	return total, nil
}

// bytesOfSize is the middle of a class of sizes, of which four make a doubling: it is at most 10 % off.
func bytesOfSize(class string) int64 {
	if class == "" {
		return 0
	}
	return int64(lightBytes * math.Exp2((float64(class[0]-'A')+0.5)/4))
}

// bytes is what a creation will take, as countBytes counts it.
func (c *creation) bytes() int64 {
	n := int64(0)
	for i, d := 1, c.document(); i < len(d); i += 2 {
		n += int64(len(d[i].(string)))
	}
	if n <= lightBytes {
		n = 0
	}
	return lightBytes + n
}

// admitBatch holds the creations of a batch to their tenants' quotas. One that is too much is refused, unless its key
// is known: a repeat gets the first answer. Call the result when what was admitted stands in the store.
func (t *Tracker) admitBatch(batch []*creation) (settle func()) {
	if t.quotas.tasks == nil {
		return func() {}
	}
	taken := make([]*usage, len(batch))
	for i, c := range batch {
		if c.err != nil || c.late != nil {
			continue // creates nothing
		}
		u, err := t.quotas.tasks.take(t.countTasks, c.Scope.Tenant, 1, c.bytes())
		switch {
		case err == nil:
			taken[i] = u
		case c.IdempotencyKey != "" && CodeOf(err) == Overloaded:
			c.late = err
		default:
			c.err = err
		}
	}
	return func() {
		for i, c := range batch {
			taken[i].settle(1, c.bytes())
		}
	}
}

// admitWorker holds a registration to its tenant's quota. One that takes the place of another worker is no more than
// before.
func (t *Tracker) admitWorker(n *NewWorker, id string) (*usage, error) {
	u, refusal := t.quotas.workers.take(t.countTenantWorkers, n.Scope.Tenant, 1)
	if refusal == nil {
		return u, nil
	}
	if holder, err := t.holderOf(n, id); err != nil || holder != "" {
		return nil, err
	}
	return nil, refusal
}
