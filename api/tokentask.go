package api

import (
	"sync/atomic"
	"time"

	"github.com/lubdub-io/lubdub/tracker"
)

// taskToken is a verified task token with everything that a callback needs of it. It is immutable but for
// fresh, and shared by all callbacks that bring it.
type taskToken struct {
	raw     string // own copy
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

func taskClaims(a *tracker.Attempt, life time.Duration, renew bool) *claims {
	return &claims{
		Kind: kindTask, Tenant: a.Scope.Tenant, Workspace: a.Scope.Workspace,
		Run: a.RunID, Task: a.TaskID, Attempt: a.Number, Fence: a.Fence,
		TimeoutMs: a.Timeout.Milliseconds(), IntervalMs: a.Interval.Milliseconds(),
		IssuedMs: a.IssuedAt.UnixMilli(), Worker: a.WorkerID, DeadlineMs: a.Deadline, LifeMs: life.Milliseconds(), Renew: renew,
	}
}

// mintTask makes the token of an attempt as of its dispatch. It is the same token however often it is made.
func (k *Keyring) mintTask(a *tracker.Attempt, life time.Duration, renew bool) (token string, expires time.Time, err error) {
	iat, exp := lifetime(a.IssuedAt, life)
	token, err = k.sign(taskClaims(a, life, renew), iat, exp)
	return token, exp, err
}

// attemptOf gives the attempt that a task token names; complete fills in what the domain adds.
func attemptOf(c *claims) tracker.Attempt {
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

func newTaskToken(raw string, c *claims, a *tracker.Attempt) *taskToken {
	t := &taskToken{
		raw: raw, expires: c.ExpiresAt.UnixMilli(), next: a.Interval.Milliseconds(),
		life: time.Duration(c.LifeMs) * time.Millisecond, beside: *a,
	}
	t.attempt = &t.beside
	if a.Timeout > 0 {
		t.next = min(t.next, a.Timeout.Milliseconds()/2)
	}
	if c.Renew {
		t.renewAt = t.expires - c.LifeMs/3
	}
	return t
}

// renewed gives the token that a beat at now should answer with, nil when it is not time yet.
func (k *Keyring) renewed(t *taskToken, now time.Time) *freshToken {
	ms := now.UnixMilli()
	if t.renewAt == 0 || ms < t.renewAt {
		return nil
	}
	if f := t.fresh.Load(); f != nil && ms < f.until {
		return f
	}
	iat, exp := lifetime(now, t.life)
	text, err := k.sign(taskClaims(t.attempt, t.life, true), iat, exp)
	if err != nil {
		return nil // signing a struct of plain fields does not fail; the old token still holds
	}
	f := &freshToken{text: text, expires: exp, until: ms + t.life.Milliseconds()/3}
	t.fresh.Store(f)
	return f
}
