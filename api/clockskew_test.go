package api

import (
	"strings"
	"testing"
	"time"

	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
	"github.com/lubdub-io/lubdub/tracker/model"
)

// A front end whose clock is an hour ahead of Redis's, or behind it, makes and judges tokens as any other would: by Redis's.
func TestContractTokensGoByRedissClock(t *testing.T) {
	t.Parallel()
	for name, ahead := range map[string]time.Duration{"an hour ahead": time.Hour, "an hour behind": -time.Hour,
		"three hours behind": -3 * time.Hour} {
		t.Run(name, func(t *testing.T) {
			contract(t, func(t *testing.T, l *live) {
				l.s.cfg.Now = nil                               // this process's clock
				l.store.Clock.Set(time.Now().Add(-ahead).UTC()) // Redis's, and with it those of the tests' tokens
				l.pass(0)

				e := l.create(`{"tokenTtlSeconds":1800}`)
				if left := e.TokenExpiresAt.Sub(l.now()); left < 29*time.Minute || left > 31*time.Minute {
					t.Errorf("the token lives for %v", left)
				}
				l.call(e, "started", `{"attempt":1}`).want(200)
				l.call(e, "heartbeat", `{"attempt":1}`).want(200)
				w := l.register(mailer)
				l.do("POST", "/v1/workers/"+w.WorkerID+"/heartbeat", w.WorkerToken, `{}`).want(200)
				l.queue(`,"taskId":"t1","deadline":"` + l.now().Add(10*time.Minute).Format(time.RFC3339) + `"`)
				if got := l.claim(w, ""); len(got) != 1 {
					t.Fatalf("%+v", got)
				}
				l.do("POST", "/v1/tasks/t1/heartbeat", w.WorkerToken, `{"attempt":1}`).want(200)
				if got := l.metric("lubdub_clock_skew_seconds") + ahead.Seconds(); got < -60 || got > 60 {
					t.Errorf("the reported skew is off by %v s", got)
				}
				if !strings.Contains(l.log.String(), "this host's clock differs from Redis's") {
					t.Error("no warning was logged")
				}

				control := l.control(roleViewer) // an hour
				l.store.Clock.Advance(29 * time.Minute)
				_ = l.tr.Beats.Tick()
				var fresh v1.HeartbeatResponse
				l.call(e, "heartbeat", `{"attempt":1}`).want(200).into(&fresh)
				if fresh.TaskToken == "" || fresh.TokenExpiresAt.Sub(l.now()) > 31*time.Minute {
					t.Errorf("renewed: %+v", fresh)
				}
				l.do("GET", "/v1/queues", control, "").want(200)
				l.store.Clock.Advance(2 * time.Minute)
				_ = l.tr.Beats.Tick()
				l.call(e, "heartbeat", `{"attempt":1}`).refused(401, v1.CodeUnauthorized) // also from the cache
				l.store.Clock.Advance(time.Hour)
				_ = l.tr.Beats.Tick()
				l.do("GET", "/v1/queues", control, "").refused(401, v1.CodeUnauthorized)
			})
		})
	}
}

// A tenant's rate is measured by this process's clock: if Redis's clock is set back, no request is refused.
func TestASteppedClockDoesNotLockATenantOut(t *testing.T) {
	t.Parallel()
	e := newEnv(t, func(c *Config) { c.TenantBeats, c.Now = 5, nil })
	e.readClock = func() time.Time { return time.Now().Add(e.fake.skew) }
	for _, skew := range []time.Duration{time.Hour, 0, -time.Hour} {
		e.fake.skew = skew
		token := e.task(func(a *model.Attempt) { a.IssuedAt = e.now() })
		until(t, func() bool {
			return e.do("POST", "/v1/tasks/task_1/heartbeat", token, `{"attempt":1}`).status == 200
		}, func() string { return "the tenant is still refused" })
	}
}
