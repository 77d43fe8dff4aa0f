package api

import (
	"sync/atomic"
	"time"

	"github.com/lubdub-io/lubdub/api/token"
	"github.com/lubdub-io/lubdub/tracker"
)

// taskToken is a verified task token with everything that a callback needs of it. It is immutable but for
// fresh, and shared by all callbacks that bring it.
type taskToken struct {
	attempt *tracker.Attempt
	expires int64 // ms since the epoch
	renewAt int64 // ms since the epoch, from when on beats answer with a fresh token; 0: never
	next    int64 // nextHeartbeatMs
	life    time.Duration
	fresh   atomic.Pointer[freshToken]
	bucket  atomic.Pointer[bucket] // of the tenant's heartbeats

	// What attempt points to, of a token that is remembered: with many tokens a beat waits for each line of memory
	// that it touches, and so they are neighbours.
	beside tracker.Attempt
}

// freshToken is a renewed token. All beats of a while answer with the same one.
type freshToken struct {
	text    string
	expires time.Time
	until   int64 // ms since the epoch; past it another one is made
}

func taskClaims(a *tracker.Attempt, life time.Duration, renew bool) *token.Claims {
	return &token.Claims{
		Kind: token.KindTask, Tenant: a.Scope.Tenant, Workspace: a.Scope.Workspace,
		Run: a.RunID, Task: a.TaskID, Attempt: a.Number, Fence: a.Fence,
		TimeoutMs: a.Timeout.Milliseconds(), IntervalMs: a.Interval.Milliseconds(),
		IssuedMs: a.IssuedAt.UnixMilli(), Worker: a.WorkerID, DeadlineMs: a.Deadline, LifeMs: life.Milliseconds(), Renew: renew,
	}
}

// mintTask makes the token of an attempt as of its dispatch. It is the same token however often it is made.
func mintTask(k *token.Keyring, a *tracker.Attempt, life time.Duration, renew bool) (text string, expires time.Time, err error) {
	return k.Mint(taskClaims(a, life, renew), a.IssuedAt, life)
}

// attemptOf gives the attempt that a task token names; complete fills in what the domain adds.
func attemptOf(c *token.Claims) tracker.Attempt {
	return tracker.Attempt{
		Scope:  tracker.Scope{Tenant: c.Tenant, Workspace: c.Workspace},
		TaskID: c.Task, RunID: c.Run, Number: c.Attempt, Fence: c.Fence,
		Timeout:  time.Duration(c.TimeoutMs) * time.Millisecond,
		Interval: time.Duration(c.IntervalMs) * time.Millisecond,
		IssuedAt: time.UnixMilli(c.IssuedMs).UTC(),
		WorkerID: c.Worker,
		Deadline: c.DeadlineMs,
	}
}

func newTaskToken(text string, c *token.Claims, a *tracker.Attempt) *token.Entry[taskToken] {
	e := &token.Entry[taskToken]{Token: text, Expires: c.ExpiresAt.UnixMilli()}
	t := &e.Value
	t.expires, t.next, t.life, t.beside = e.Expires, a.Interval.Milliseconds(), time.Duration(c.LifeMs)*time.Millisecond, *a
	t.attempt = &t.beside
	if a.Timeout > 0 {
		t.next = min(t.next, a.Timeout.Milliseconds()/2)
	}
	if c.Renew {
		t.renewAt = t.expires - c.LifeMs/3
	}
	return e
}

// renewed gives the token that a beat at now should answer with, nil when it is not time yet.
func renewed(k *token.Keyring, t *taskToken, now time.Time) *freshToken {
	ms := now.UnixMilli()
	if t.renewAt == 0 || ms < t.renewAt {
		return nil
	}
	if f := t.fresh.Load(); f != nil && ms < f.until {
		return f
	}
	text, exp, err := k.Mint(taskClaims(t.attempt, t.life, true), now, t.life)
	if err != nil {
		return nil // signing a struct of plain fields does not fail; the old token still holds
	}
	f := &freshToken{text: text, expires: exp, until: ms + t.life.Milliseconds()/3}
	t.fresh.Store(f)
	return f
}
