package quotas

import (
	"context"
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/lubdub-io/lubdub/tracker/model"
)

// A quota limits what one tenant may have. Its usage is counted from the store at most once a second, so that no counter can drift, plus
// what this replica has admitted since: one replica never admits too much, and several together exceed the limit at most by what the
// others admit until this one counts again.

const (
	quotaFresh   = time.Second            // how long a count is valid
	quotaRecount = 250 * time.Millisecond // how long it is valid before a refusal
	quotaTenants = 10_000                 // how many are cached
	quotaEffort  = 20                     // a slow count is valid for this many times its duration,
	quotaLongest = 10 * time.Second       // but no longer than this
)

// limit is one thing that a quota limits.
type limit struct {
	most    int64 // 0: no limit
	refusal func(most int64) *model.Error
	refused prometheus.Counter
}

type quota struct {
	limits []limit

	mu sync.Mutex                 // so that a tenant has a single usage
	of *lru.Cache[string, *Usage] // by tenant
}

// counter counts a tenant's usage for each limit of a quota.
type counter func(ctx context.Context, tenant string) ([]int64, error)

// newQuota returns a quota, nil if nothing is limited.
func newQuota(limits ...limit) *quota {
	cache, _ := lru.New[string, *Usage](quotaTenants) // fails only for size 0
	for _, l := range limits {
		if l.most > 0 {
			return &quota{limits: limits, of: cache}
		}
	}
	return nil
}

// Usage is a tenant's usage as this replica knows it.
type Usage struct {
	mu       sync.Mutex // guards all fields
	counted  []int64    // at the last count; nil: never
	admitted []int64    // by this replica in total
	settled  []int64    // of these, what is stored or never will be
	base     []int64    // of these, what was settled when the last count began
	at       time.Time
	took     time.Duration
	counting chan struct{} // closed when the running count ends
	err      error         // of the last count
}

// take admits amounts for a tenant, or returns the error of the limit that they exceed. Settle what it admitted once it is stored or
// never will be.
func (q *quota) take(ctx context.Context, count counter, tenant string, amounts ...int64) (*Usage, error) {
	if q == nil {
		return nil, nil
	}
	u := q.usage(tenant)
	for _, age := range []time.Duration{quotaFresh, quotaRecount} {
		if err := q.refresh(ctx, u, count, tenant, age); err != nil {
			return nil, err
		}
		if over := q.admit(u, amounts); over == nil {
			return u, nil
		} else if age == quotaRecount {
			over.refused.Inc()
			return nil, over.refusal(over.most)
		}
	}
	return nil, nil
}

func (q *quota) usage(tenant string) *Usage {
	q.mu.Lock()
	defer q.mu.Unlock()
	u, ok := q.of.Get(tenant)
	if !ok {
		n := len(q.limits)
		u = &Usage{admitted: make([]int64, n), settled: make([]int64, n), base: make([]int64, n)}
		q.of.Add(tenant, u)
	}
	return u
}

// admit returns the limit that the amounts exceed, or nil after it has admitted them.
func (q *quota) admit(u *Usage, amounts []int64) *limit {
	u.mu.Lock()
	defer u.mu.Unlock()
	for i := range q.limits {
		l := &q.limits[i]
		if l.most > 0 && u.counted[i]+u.admitted[i]-u.base[i]+amounts[i] > l.most {
			return l
		}
	}
	for i, n := range amounts {
		u.admitted[i] += n
	}
	return nil
}

// Settle records that admitted amounts are stored or never will be. A nil Usage has no limit.
func (u *Usage) Settle(amounts ...int64) {
	if u == nil {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	for i, n := range amounts {
		u.settled[i] += n
	}
}

// refresh counts a tenant's usage if the last count is older than `age`. One caller counts; others continue with the last count, or wait
// if there is none or a refusal depends on it.
func (q *quota) refresh(ctx context.Context, u *Usage, count counter, tenant string, age time.Duration) error {
	u.mu.Lock()
	if u.counted != nil && time.Since(u.at) < max(age, min(quotaEffort*u.took, quotaLongest)) {
		u.mu.Unlock()
		return nil
	}
	if running := u.counting; running != nil {
		known := u.counted != nil
		u.mu.Unlock()
		if known && age == quotaFresh {
			return nil
		}
		<-running
		u.mu.Lock()
		defer u.mu.Unlock()
		return u.err
	}
	done := make(chan struct{})
	u.counting = done
	base := append([]int64(nil), u.settled...)
	u.mu.Unlock()
	began := time.Now()
	counted, err := count(ctx, tenant)
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.err = err; err == nil {
		u.counted, u.base, u.at, u.took = counted, base, time.Now(), time.Since(began)
	}
	u.counting = nil
	close(done)
	return err
}
