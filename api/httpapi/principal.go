package httpapi

import (
	"sync/atomic"
	"time"

	"github.com/lubdub-io/lubdub/api/internal/conn"
	"github.com/lubdub-io/lubdub/api/token"
	"github.com/lubdub-io/lubdub/internal/shares"
	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/workers"
)

// Principal is the client of a request: the claims of its token, verified once and then cached, and what requests derive from them. It is
// immutable except for bucket and fresh, and shared by all requests with the token.
type Principal struct {
	Claims  *token.Claims          // of a worker's or a control token; nil for a task token
	renewAt int64                  // of a task token: ms since the epoch, when beats begin to answer with a fresh one; 0: never
	bucket  atomic.Pointer[bucket] // of the tenant's heartbeats
	attempt model.Attempt          // of a task token
	life    time.Duration          // of a task token
	fresh   atomic.Pointer[freshToken]
}

// freshToken is a renewed task token. All beats within some time answer with the same one.
type freshToken struct {
	Text    string
	Expires time.Time
	until   int64 // ms since the epoch, after which another one is made
}

// Task returns the attempt of a task token, or nil for a worker's or a control token.
func (p *Principal) Task() *model.Attempt {
	if p.Claims != nil {
		return nil
	}
	return &p.attempt
}

// actor returns the name of the token's bearer in events and logs: the subject of a control token, or its role if it has no valid
// subject; the worker. It is "" for a task token, since the events of a task name the worker anyway.
func (p *Principal) actor() string {
	switch {
	case p == nil || p.Claims == nil:
		return ""
	case p.Claims.Kind == token.KindWorker:
		return p.Claims.Worker
	case token.ValidSubject(p.Claims.Subject):
		return p.Claims.Subject
	}
	return "role:" + string(p.Claims.Role)
}

// Stranger represents all clients without a valid token.
var Stranger shares.Holder

// Holder returns the holder whose share of bounded resources a request uses. Tokens of one subject, worker or task are one holder, so
// creating more of them gains nothing.
func (p *Principal) Holder() shares.Holder {
	if a := p.Task(); a != nil {
		return shares.Holder{Tenant: a.Scope.Tenant, Token: a.TaskID}
	}
	return shares.Holder{Tenant: p.Claims.Tenant, Token: p.actor()}
}

// tenant returns the tenant of the principal's token.
func (p *Principal) tenant() string { return p.Holder().Tenant }

// Scope returns the scope of a principal whose token has one.
func (p *Principal) Scope() model.Scope { return scopeOf(p.Claims) }

// Worker reports whether the principal is a registered worker.
func (p *Principal) Worker() bool { return p.Claims != nil && p.Claims.Kind == token.KindWorker }

// control reports whether the principal has a role.
func (p *Principal) control() bool { return p.Claims != nil && p.Claims.Kind == token.KindControl }

// Authenticate returns the principal of a token, nearly always from the cache, or 401 if the token is not valid. It does not
// retain bearer.
func (a *API) Authenticate(bearer []byte, now time.Time, count *Stripe) (*Principal, *Refusal) {
	if p := a.Cached(bearer, now); p != nil {
		count.CacheHits.Add(1)
		return p, nil
	}
	return a.verify(bearer, now)
}

func (a *API) verify(bearer []byte, now time.Time) (*Principal, *Refusal) {
	if o := a.Open(bearer, now); o != nil && a.Remember(o, now) {
		return &o.entry.Value, nil
	}
	a.Metrics.badTokens.Inc()
	return nil, ErrUnauthorized
}

// OpenedToken is a valid token with its entry for the cache.
type OpenedToken struct {
	entry  *token.Entry[Principal]
	claims *token.Claims
}

// Principal returns the principal of the token.
func (o *OpenedToken) Principal() *Principal { return &o.entry.Value }

// Cached returns the principal of a cached token, or nil.
func (a *API) Cached(bearer []byte, now time.Time) *Principal {
	return a.tokens.Get(bearer, now.UnixMilli())
}

// Open returns a verified token, or nil if it is not valid. It does not cache it.
func (a *API) Open(bearer []byte, now time.Time) *OpenedToken {
	text := string(bearer) // the cache outlives the request
	c, err := a.Keys.Verify(text, now)
	if err != nil || a.revoked.Load().Revokes(c) {
		return nil
	}
	e := &token.Entry[Principal]{Token: text, Expires: c.ExpiresAt.UnixMilli()}
	p := &e.Value
	if c.Kind != token.KindTask {
		p.Claims = c
		return &OpenedToken{e, c}
	}
	p.attempt, p.life = *a.cfg.Attempts.Attempt(attemptOf(c)), time.Duration(c.LifeMs)*time.Millisecond
	if c.Renew {
		p.renewAt = e.Expires - c.LifeMs/3
	}
	return &OpenedToken{e, c}
}

// Remember puts a token into the cache, and reports whether it is still valid.
func (a *API) Remember(o *OpenedToken, now time.Time) bool {
	a.Metrics.cacheMisses.Inc()
	a.tokens.Put(o.entry, now.UnixMilli())
	if !a.revoked.Load().Revokes(o.claims) {
		return true
	}
	// Revoked since it was verified: the revocation may have searched the cache before the entry was there.
	a.tokens.Drop(func(other *Principal) bool { return other == &o.entry.Value })
	return false
}

// CachedTokens returns how many tokens the cache contains, including expired ones that have not been replaced.
func (a *API) CachedTokens() int64 { return a.tokens.Len() }

// Bearer returns the principal of a token, or nil if it is not valid. It does not count cache hits.
func (a *API) Bearer(bearer []byte, now time.Time) *Principal {
	if p := a.Cached(bearer, now); p != nil {
		return p
	}
	p, _ := a.verifyAny(bearer, now)
	return p
}

// Authenticate determines the request's principal. It is called once per request.
func (req *Request) Authenticate() *Refusal {
	bearer, count := req.Wire.Bearer(), req.API.Metrics.Shared()
	who := req.API.Cached(bearer, req.Now)
	if who != nil {
		count.CacheHits.Add(1)
	} else {
		var r *Refusal
		if who, r = req.API.verifyAny(bearer, req.Now); r != nil {
			return r
		}
	}
	req.Caller = who
	conn.Known(req.Ctx.Conn(), who.Holder())
	return nil
}

// attemptOf returns the attempt that a task token names; the domain completes it.
func attemptOf(c *token.Claims) model.Attempt {
	return model.Attempt{
		Scope: scopeOf(c), TaskID: c.Task, RunID: c.Run, Number: c.Attempt, Fence: c.Fence,
		Timeout:  time.Duration(c.TimeoutMs) * time.Millisecond,
		Interval: time.Duration(c.IntervalMs) * time.Millisecond,
		IssuedAt: time.UnixMilli(c.IssuedMs).UTC(),
		WorkerID: c.Worker,
		Deadline: c.DeadlineMs,
	}
}

func taskClaims(a *model.Attempt, life time.Duration, renew bool) *token.Claims {
	return &token.Claims{
		Kind: token.KindTask, Tenant: a.Scope.Tenant, Workspace: a.Scope.Workspace,
		Run: a.RunID, Task: a.TaskID, Attempt: a.Number, Fence: a.Fence,
		TimeoutMs: a.Timeout.Milliseconds(), IntervalMs: a.Interval.Milliseconds(),
		IssuedMs: a.IssuedAt.UnixMilli(), Worker: a.WorkerID, DeadlineMs: a.Deadline, LifeMs: life.Milliseconds(), Renew: renew,
	}
}

func scopeOf(c *token.Claims) model.Scope {
	return model.Scope{Tenant: c.Tenant, Workspace: c.Workspace}
}

// MintTask creates the token of an attempt as of its dispatch. Repeated calls create the same token.
func MintTask(k *token.Keyring, a *model.Attempt, life time.Duration, renew bool) (text string, expires time.Time, err error) {
	return k.Mint(taskClaims(a, life, renew), a.IssuedAt, life)
}

// Renewed returns the task token to return with a heartbeat at now, or nil if it is too early, or if the heartbeat has a worker's token.
func (p *Principal) Renewed(k *token.Keyring, now time.Time) *freshToken {
	ms := now.UnixMilli()
	if p.renewAt == 0 || ms < p.renewAt {
		return nil
	}
	if f := p.fresh.Load(); f != nil && ms < f.until {
		return f
	}
	text, expires, err := k.Mint(taskClaims(&p.attempt, p.life, true), now, p.life)
	if err != nil {
		return nil // signing a struct of plain fields does not fail; the old token is still valid
	}
	f := &freshToken{Text: text, Expires: expires, until: ms + p.life.Milliseconds()/3}
	p.fresh.Store(f)
	return f
}

// workerTokenLife is how long a worker's token is valid. A beat in the last third of it is answered with a fresh one.
const workerTokenLife = model.WorkerTokenTTL

// MintWorker creates a worker's token that is valid from now. It contains the registration, so that the worker can be restored if
// Redis loses it.
func MintWorker(k *token.Keyring, scope model.Scope, r *workers.Registered, now time.Time) (text string, expires time.Time, err error) {
	return k.Mint(&token.Claims{
		Kind: token.KindWorker, Tenant: scope.Tenant, Workspace: scope.Workspace,
		Worker: r.WorkerID, Machine: r.MachineID, Queue: r.Queue, Record: r.Record,
	}, now, workerTokenLife)
}

// RenewedWorker returns the token with which a worker's beat at now should be answered, or "" if it is too early.
func RenewedWorker(k *token.Keyring, c *token.Claims, now time.Time) (text string, expires time.Time) {
	if now.Before(c.ExpiresAt.Add(-workerTokenLife / 3)) {
		return "", time.Time{}
	}
	text, expires, err := k.Mint(c, now, workerTokenLife)
	if err != nil {
		return "", time.Time{} // signing a struct of plain fields does not fail; the old token is still valid
	}
	return text, expires
}
