package quotas

import (
	"context"
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/lubdub-io/lubdub/tracker/model"
)

// A quota bounds what one tenant may have. What it has is counted from the store at most once a second, so that no
// counter can drift, and what this replica has admitted since is added: of itself a replica never admits too much;
// several together by at most what the others admit until this one counts again.

const (
	quotaFresh   = time.Second            // how long a count is good for
	quotaRecount = 250 * time.Millisecond // and before it refuses
	quotaTenants = 10_000                 // that are remembered
	quotaEffort  = 20                     // a count that took long is good for so many times as long,
	quotaLongest = 10 * time.Second       // but for no longer than this
)

// limit is one thing that a quota bounds.
type limit struct {
	most    int64 // 0: no bound
	refusal func(most int64) *model.Error
	refused prometheus.Counter
}

type quota struct {
	limits []limit

	mu sync.Mutex                 // so that a tenant has one usage
	of *lru.Cache[string, *Usage] // by tenant
}

// counter counts what a tenant has of each that a quota bounds.
type counter func(ctx context.Context, tenant string) ([]int64, error)

// newQuota returns nil where nothing is bounded.
func newQuota(limits ...limit) *quota {
	cache, _ := lru.New[string, *Usage](quotaTenants) // fails for a size of 0 only
	for _, l := range limits {
		if l.most > 0 {
			return &quota{limits: limits, of: cache}
		}
	}
	return nil
}

// Usage is what a tenant has, as this replica knows it.
type Usage struct {
	mu       sync.Mutex // guards all that follows
	counted  []int64    // at the last count; nil: never
	admitted []int64    // by this replica, ever
	settled  []int64    // of these, what stood in the store or never will
	base     []int64    // of these, what stood in the store when the last count began
	at       time.Time
	took     time.Duration
	counting chan struct{} // closed when the count that is under way is over
	err      error         // of the last count
}

// take admits the given amounts for a tenant, or refuses them. What it admitted is to be settled once it stands in the store, or
// never will.
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

// admit returns the limit that forbids the amounts, nil when they are admitted.
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

// Settle records that what was admitted, in these amounts, stands in the store or never will. A nil Usage admitted nothing that
// is bounded.
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

// refresh counts what a tenant has if the last count is too old. One caller counts; others go on with the last count, or wait if
// there is none or it is about to refuse.
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
