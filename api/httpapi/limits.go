package httpapi

import (
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/lubdub-io/lubdub/internal/shares"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

// Admission bounds how many requests of the control plane are under way at a time: creations, lists, claims and the
// like, for each token and tenant too. When all places are taken a request is refused before its token is verified, for little
// more than an empty answer costs. Heartbeats and the other callbacks of workers are not counted: in an overload everything else
// gives way to them.
type Admission struct {
	Places  *shares.Pool
	refused func()
}

// full returns the refusal when there is no place for anybody.
func (a *Admission) full() *Refusal {
	if a.Places.Used() < a.Places.Limit() {
		return nil
	}
	return a.refuse(shares.Total)
}

// Enter lets one request in, or returns the refusal when its token or its tenant has its share. Whoever was let in must leave.
// Clients without a valid token never hold a place: nothing that they ask for waits.
func (a *Admission) Enter(who *Principal) *Refusal {
	if level := a.Places.Take(who.Holder(), 1); level != shares.Granted {
		return a.refuse(level)
	}
	return nil
}

// Leave gives back the place that Enter took.
func (a *Admission) Leave(who *Principal) { a.Places.Give(who.Holder(), 1) }

func (a *Admission) refuse(level shares.Level) *Refusal {
	a.refused()
	return OverShare(level, a.Places, "requests of the control plane", "a sixteenth of max-connections")
}

// OverShare refuses what a pool has not granted: 503 when all of it is in use, 429 when only a share is.
func OverShare(level shares.Level, p *shares.Pool, what, setting string) *Refusal {
	const remedy = "wait as Retry-After says, then retry, or add replicas"
	if p.Used() < p.Limit() && (level == shares.Token || level == shares.Tenant) {
		r := NewRefusal(fasthttp.StatusTooManyRequests, v1.CodeOverloaded, fmt.Sprintf(
			"The %s has its share of the %d %s that this replica serves at a time (%s); %s", level, p.Limit(), what, setting, remedy))
		r.RetryAfter = DefaultRetryAfter
		return r
	}
	return Overloaded(fmt.Sprintf("This replica serves %d %s at a time, which is its limit (%s); %s", p.Limit(), what, setting, remedy))
}

// Yields reports whether a route yields to heartbeats. A claim decides for itself: one that waits for work takes no time.
func (r *Route) Yields() bool {
	return r.Access == ForControl || r.Access == ForWorker && r.Beats == "" && !r.Waits
}

// ShortWait is how short a claim's wait must be for the claim to count as a burden.
const ShortWait = time.Second

// tenantLimit gives each tenant a token bucket for one kind of request, so that one tenant's flood leaves the others'
// share alone. A bucket holds what a second refills. Taking is one atomic step on the tenant's own bucket, to which a
// remembered task token points: the path of a beat takes no lock, shares no memory between tenants and allocates
// nothing. A nil tenantLimit lets everything through.
type tenantLimit struct {
	setting string // that it came from, for the refusal
	what    string
	rate    int64
	every   int64     // ns in which a bucket refills by one
	since   time.Time // what buckets count from

	buckets sync.Map // tenant → *bucket
	count   atomic.Int64
	swept   atomic.Int64
	refused func()
}

// bucket is full at the moment full, in ns since tenantLimit.since; what is taken moves that moment on.
type bucket struct {
	full atomic.Int64
	_    [120]byte // so that tenants do not wait for each other's cache line
}

// retired marks a bucket that is not its tenant's any more.
const retired = math.MinInt64

// burst is how far ahead of its refill a tenant may take.
const burst = int64(time.Second)

// maxIdleBuckets is how many tenants are remembered before those whose bucket is full are forgotten, which changes
// nothing for them.
const maxIdleBuckets = 1 << 16

func newTenantLimit(setting, what string, perSecond int, since time.Time, refused func()) *tenantLimit {
	if perSecond == 0 {
		return nil
	}
	return &tenantLimit{
		setting: setting, what: what, rate: int64(perSecond), every: max(1, int64(time.Second)/int64(perSecond)), since: since, refused: refused,
	}
}

// take takes one from the tenant's bucket, or returns the refusal when it is empty. `at` may point to the bucket where it was found
// before; nil: it is looked for.
func (l *tenantLimit) take(tenant string, at *atomic.Pointer[bucket], now time.Time) *Refusal {
	return l.takeOf(tenant, at, now, 1, burst)
}

// owe takes n more for a request that was let in: what is not there is owed, and deducted from the next ones. So a request that
// is worth more than a second's share is neither free nor refused for ever.
func (l *tenantLimit) owe(tenant string, n int, now time.Time) {
	l.takeOf(tenant, nil, now, int64(n), math.MaxInt64/2)
}

// takeOf takes n, if that leaves the bucket full at most `ahead` from now.
func (l *tenantLimit) takeOf(tenant string, at *atomic.Pointer[bucket], now time.Time, n, ahead int64) *Refusal {
	if l == nil || n == 0 {
		return nil
	}
	ns := int64(now.Sub(l.since))
	var b *bucket
	if at != nil {
		b = at.Load()
	}
	for {
		if b == nil {
			b = l.bucketOf(tenant, ns)
			if at != nil {
				at.Store(b)
			}
		}
		full := b.full.Load()
		if full == retired {
			b = nil
			continue
		}
		next := max(full, ns) + n*l.every
		if next-ns > ahead {
			return l.refusal(time.Duration(next - ns - ahead))
		}
		if b.full.CompareAndSwap(full, next) {
			return nil
		}
	}
}

func (l *tenantLimit) bucketOf(tenant string, ns int64) *bucket {
	if b, ok := l.buckets.Load(tenant); ok {
		return b.(*bucket)
	}
	l.forget(ns)
	b := new(bucket)
	b.full.Store(ns)
	kept, there := l.buckets.LoadOrStore(tenant, b)
	if !there {
		l.count.Add(1)
	}
	return kept.(*bucket)
}

// forget drops full buckets when there are many, at most once a second.
func (l *tenantLimit) forget(ns int64) {
	swept := l.swept.Load()
	if l.count.Load() < maxIdleBuckets || ns-swept < int64(time.Second) || !l.swept.CompareAndSwap(swept, ns) {
		return
	}
	l.buckets.Range(func(tenant, v any) bool {
		b := v.(*bucket)
		if full := b.full.Load(); full <= ns && b.full.CompareAndSwap(full, retired) {
			l.buckets.Delete(tenant)
			l.count.Add(-1)
		}
		return true
	})
}

func (l *tenantLimit) refusal(wait time.Duration) *Refusal {
	l.refused()
	r := NewRefusal(fasthttp.StatusTooManyRequests, v1.CodeOverloaded, fmt.Sprintf(
		"The tenant sends more than the %d %s a second that this replica takes of each (%s); wait as Retry-After says, then retry, or send less",
		l.rate, l.what, l.setting))
	r.RetryAfter = wait
	return r
}

// TakeBeat takes one of the tenant's heartbeats, or returns the refusal when it has sent too many.
func (a *API) TakeBeat(who *Principal, tenant string, now time.Time) *Refusal {
	return a.tenantBeats.take(tenant, &who.bucket, now)
}

// TakeCall takes one of the tenant's calls, or returns the refusal when it has made too many.
func (req *Request) TakeCall(tenant string) *Refusal {
	return req.API.tenantCalls.take(tenant, nil, req.Local())
}

// OweCalls counts n more calls of the tenant.
func (a *API) OweCalls(tenant string, n int, now time.Time) { a.tenantCalls.owe(tenant, n, now) }

// OweBeats counts n more heartbeats of the tenant.
func (a *API) OweBeats(tenant string, n int, now time.Time) { a.tenantBeats.owe(tenant, n, now) }
