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

// Admission limits how many requests of the control plane are under way at a time (creations, lists, claims and the like), in total and
// for each token and tenant. When the limit is reached a request is refused before its token is verified, at little more than the
// cost of an empty answer. Heartbeats and other callbacks of workers are not counted: in an overload they have priority.
type Admission struct {
	Places  *shares.Pool
	refused func()
}

// enterControl admits a request whose route yields to heartbeats, until leaveControl.
func (req *Request) enterControl() *Refusal {
	r := req.API.Control.Enter(req.Caller)
	req.inControl = r == nil
	return r
}

func (req *Request) leaveControl() {
	if req.inControl {
		req.API.Control.Leave(req.Caller)
	}
	req.inControl = false
}

// EnterWait admits a request that is about to wait for n things, or returns the refusal. It uses no CPU meanwhile, so it gives back its
// place among the requests of the control plane. An admitted request must call leave.
func (req *Request) EnterWait(p *shares.Pool, n int, what, setting string, refused func()) (leave func(), r *Refusal) {
	who := req.Caller.Holder()
	if level := p.Take(who, int64(n)); level != shares.Granted {
		refused()
		return nil, OverShare(level, p, what, setting)
	}
	req.leaveControl()
	return func() { p.Release(who, int64(n)) }, nil
}

// full returns the refusal if the total limit is reached.
func (a *Admission) full() *Refusal {
	if a.Places.Used() < a.Places.Limit() {
		return nil
	}
	return a.refuse(shares.Total)
}

// Enter admits one request, or returns the refusal if its token or its tenant has used its share. An admitted request must call Leave.
// Clients without a valid token never take a place, because their requests do not wait.
func (a *Admission) Enter(who *Principal) *Refusal {
	if level := a.Places.Take(who.Holder(), 1); level != shares.Granted {
		return a.refuse(level)
	}
	return nil
}

// Leave undoes Enter.
func (a *Admission) Leave(who *Principal) { a.Places.Release(who.Holder(), 1) }

func (a *Admission) refuse(level shares.Level) *Refusal {
	a.refused()
	return OverShare(level, a.Places, "requests of the control plane", "a sixteenth of max-connections")
}

// OverShare is the refusal for a pool: 503 if all of it is in use, 429 if only a share is.
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

// Yields reports whether a route yields to heartbeats. A claim decides for itself, because one that waits for work uses no CPU.
func (r *Route) Yields() bool {
	return r.Access == ForControl || r.Access == ForWorker && r.Beats == "" && !r.Waits
}

// ShortWait is the wait below which a claim counts as load.
const ShortWait = time.Second

// tenantLimit gives each tenant a token bucket for one kind of request, so that a flood from one tenant does not affect the others. A
// bucket holds one second's refill. Taking is one atomic step on the tenant's own bucket, to which a cached task token points:
// the path of a heartbeat takes no lock, shares no memory between tenants and allocates nothing. A nil tenantLimit has no limit.
type tenantLimit struct {
	setting string // the setting's name, for the refusal
	what    string
	rate    int64
	every   int64     // ns in which a bucket refills by one
	since   time.Time // the origin of the buckets' times

	buckets sync.Map // tenant → *bucket
	count   atomic.Int64
	swept   atomic.Int64
	refused func()
}

// bucket is full at the time full, in ns since tenantLimit.since; taking moves that time forward.
type bucket struct {
	full atomic.Int64
	_    [120]byte // so that tenants do not share a cache line
}

// retired marks a bucket that was removed from its tenant.
const retired = math.MinInt64

// burst is how far ahead of its refill a tenant may take.
const burst = int64(time.Second)

// maxIdleBuckets is how many tenants are kept before those with a full bucket are dropped, which does not change their limit.
const maxIdleBuckets = 1 << 16

func newTenantLimit(setting, what string, perSecond int, since time.Time, refused func()) *tenantLimit {
	if perSecond == 0 {
		return nil
	}
	return &tenantLimit{
		setting: setting, what: what, rate: int64(perSecond), every: max(1, int64(time.Second)/int64(perSecond)), since: since, refused: refused,
	}
}

// take takes one from the tenant's bucket, or returns the refusal if it is empty. `at` may cache the bucket; if nil, it is looked up.
func (l *tenantLimit) take(tenant string, at *atomic.Pointer[bucket], now time.Time) *Refusal {
	return l.takeOf(tenant, at, now, 1, burst)
}

// charge takes n more for an admitted request; if the bucket has less, the rest is deducted from the next requests. So a request that
// costs more than a second's share is neither free nor always refused.
func (l *tenantLimit) charge(tenant string, n int, now time.Time) {
	l.takeOf(tenant, nil, now, int64(n), math.MaxInt64/2)
}

// takeOf takes n if that leaves the bucket full at most `ahead` from now.
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
	stored, there := l.buckets.LoadOrStore(tenant, b)
	if !there {
		l.count.Add(1)
	}
	return stored.(*bucket)
}

// forget drops full buckets if there are many, at most once a second.
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

// TakeBeat takes one of the tenant's heartbeats, or returns the refusal if the tenant has used up its rate.
func (a *API) TakeBeat(who *Principal, tenant string, now time.Time) *Refusal {
	return a.tenantBeats.take(tenant, &who.bucket, now)
}

// TakeCall takes one of the tenant's calls, or returns the refusal if the tenant has used up its rate.
func (req *Request) TakeCall(tenant string) *Refusal {
	return req.API.tenantCalls.take(tenant, nil, req.Local())
}

// ChargeCalls counts n more calls of the tenant.
func (a *API) ChargeCalls(tenant string, n int, now time.Time) { a.tenantCalls.charge(tenant, n, now) }

// ChargeBeats counts n more heartbeats of the tenant: a request's entries beyond the first, and each KiB of details.
func (a *API) ChargeBeats(tenant string, n int, now time.Time) { a.tenantBeats.charge(tenant, n, now) }
