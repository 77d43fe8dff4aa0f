package api

import (
	"testing"
	"time"

	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
	"github.com/lubdub-io/lubdub/tracker"
	"github.com/lubdub-io/lubdub/tracker/model"
)

// A token that a worker got while it was alive is never valid again once its record is gone: a worker that its drain has ended learns
// that from its next beat, and gets no fresh token, which would outlive the record and bring it back.
func TestATokenIsNotRenewedAfterTheEnd(t *testing.T) {
	t.Parallel()
	contract(t, func(t *testing.T, l *live) {
		w := l.register(mailer)
		later := func(d time.Duration) {
			l.store.Clock.Advance(d)
			l.pass(0)
		}
		later(45 * time.Minute)
		l.do("POST", "/v1/workers/"+w.WorkerID+"/drain", l.control(roleOperator), "").want(200)
		l.pass(time.Second)
		l.sweep()
		if now := l.workerNow(w.WorkerID); now.Status != v1.Offline {
			t.Fatalf("%+v", now)
		}
		later(14 * time.Minute)
		var notified v1.WorkerHeartbeatResponse
		l.mine(w, "heartbeat", "").want(200).into(&notified)
		if !notified.ShouldDrain || notified.WorkerToken != "" || !notified.TokenExpiresAt.IsZero() {
			t.Errorf("notified of its end, it got %+v", notified)
		}
		if notified.WorkerToken != "" {
			w.WorkerToken = notified.WorkerToken
		}
		for range 40 {
			later(5 * time.Minute)
			l.sweep()
			if a := l.mine(w, "heartbeat", ""); a.status != 410 && a.status != 401 {
				t.Fatalf("%v after its end a beat is answered %d: %s", l.now(), a.status, a.body)
			}
		}
		l.do("GET", "/v1/workers/"+w.WorkerID, l.control(roleViewer), "").refused(404, v1.CodeWorkerNotFound)
	}, func(o *tracker.Options) { o.FinishedRetention = model.MinFinishedRetention })
}

// A record stays for two lifetimes of a token: one that was renewed at the very end is covered.
func TestTheLeastRetentionCoversTwoLivesOfAToken(t *testing.T) {
	t.Parallel()
	if model.MinFinishedRetention < 2*model.WorkerTokenTTL {
		t.Errorf("OFFLINE workers may be forgotten after %v; a token holds for %v", model.MinFinishedRetention, model.WorkerTokenTTL)
	}
}
