package api

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/api/token"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
	"github.com/lubdub-io/lubdub/tracker"
	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/revocations"
)

// Returns another replica of the same deployment.
func (l *live) newReplica() *live {
	l.t.Helper()
	other := &live{store: l.store}
	other.env = newEnv(l.t, func(c *Config) {
		var err error
		other.tr, err = tracker.Open(context.Background(), tracker.Options{
			RedisURL: l.store.URL, Scripts: l.store.Scripts, Shards: 4, Logger: c.Logger, RedisTimeout: 10 * time.Second,
		})
		if err != nil {
			l.t.Fatal(err)
		}
		l.t.Cleanup(func() { _ = other.tr.Close(context.Background()) })
		c.Services, c.Now = ServicesOf(other.tr), l.now
	})
	return other
}

// refreshRevocations makes the replica load new revocations, as it does twice a second.
func (l *live) refreshRevocations() {
	l.t.Helper()
	if err := l.tr.Revocations.Refresh(context.Background()); err != nil {
		l.t.Fatal(err)
	}
}

func (e *env) superAdmin() string { return e.controlFor(roleAdmin, token.Wildcard, token.Wildcard) }

// Each kind of revoked token is refused at once by the replica that revoked it, though it has just accepted the token, and by another
// replica from its next look on. Other tokens stay valid, and so do those that are issued later.
func TestContractRevokedTokens(t *testing.T) {
	t.Parallel()
	contract(t, func(t *testing.T, l *live) {
		other := l.newReplica()
		subject := func(name string) string {
			return l.controlOf(token.Control{Role: roleViewer, Subject: name, TTL: time.Hour})
		}
		var w v1.RegisterWorkerResponse
		l.do("POST", "/v1/workers", l.control(roleEnroll), `{"queue":"q","types":["x"],"machineId":"m1"}`).want(201).into(&w)
		l.do("POST", "/v1/tasks", l.control(roleDispatcher), `{"taskId":"held","queue":"q","type":"x"}`).want(201)
		var claimed v1.ClaimResponse
		l.do("POST", "/v1/queues/q/claim", w.WorkerToken, `{}`).want(200).into(&claimed)
		held, pushed := &claimed.Tasks[0], l.create(`{"taskId":"pushed"}`)
		ann, bob, other1 := subject("ann"), subject("bob"), l.controlFor(roleViewer, "other", "prod")
		uses := map[string]func(at *live) int{
			"ann":   func(at *live) int { return at.do("GET", "/v1/tasks", ann, "").status },
			"bob":   func(at *live) int { return at.do("GET", "/v1/tasks", bob, "").status },
			"other": func(at *live) int { return at.do("GET", "/v1/tasks", other1, "").status },
			"worker": func(at *live) int {
				return at.do("POST", "/v1/workers/"+w.WorkerID+"/heartbeat", w.WorkerToken, "").status
			},
			"held":   func(at *live) int { return at.call(held, "heartbeat", `{"attempt":1}`).status },
			"pushed": func(at *live) int { return at.call(pushed, "heartbeat", `{"attempt":1}`).status },
		}
		want := func(at *live, refused string) {
			t.Helper()
			for name, use := range uses {
				status := 200
				if strings.Contains(" "+refused+" ", " "+name+" ") {
					status = 401
				}
				if got := use(at); got != status {
					t.Errorf("%s is answered %d, want %d", name, got, status)
				}
			}
		}
		want(l, "")
		want(other, "") // both have cached them all
		step := func(body, refused string) {
			t.Helper()
			l.do("POST", "/v1/tokens:revoke", l.superAdmin(), body, "X-Request-Id", "r").want(200)
			want(l, refused)
			other.refreshRevocations()
			want(other, refused)
		}
		step(`{"subject":"ann"}`, "ann")
		l.do("POST", "/v1/tokens:revoke?tenantId=acme&workspaceId=prod", l.superAdmin(), `{"workerId":"`+w.WorkerID+`"}`).want(200)
		other.refreshRevocations()
		want(l, "ann worker held")
		want(other, "ann worker held")
		step(`{"tenantId":"acme"}`, "ann bob worker held pushed")

		l.pass(2 * time.Second)
		ann = subject("ann")
		if got := uses["ann"](other); got != 200 {
			t.Errorf("a token that was issued later is answered %d", got)
		}
		if seen := l.actsOf("system.tokens_revoked"); seen["role:admin"] != 3 {
			t.Errorf("%v", seen)
		}
		event := l.do("GET", "/v1/events?type=system.tokens_revoked&order=desc&pageSize=1", l.superAdmin(), "").want(200).body
		if !strings.Contains(event, `"issuedBefore":"2026-`) || strings.Contains(event, `Ms":`) {
			t.Errorf("the event is %s", event)
		}
		want(l.newReplica(), "bob worker held pushed") // also by a replica that starts now
	})
}

// actsOf counts the events of a type by whose act they were.
func (l *live) actsOf(kind string) map[string]int {
	l.t.Helper()
	seen := map[string]int{}
	for shard := range 4 {
		entries, err := l.store.Client.XRange(context.Background(), "lubdub:{"+string(rune('0'+shard))+"}:events", "-", "+").Result()
		if err != nil {
			l.t.Fatal(err)
		}
		for _, e := range entries {
			if e.Values["type"] == kind {
				by, _ := e.Values["by"].(string)
				seen[by]++
			}
		}
	}
	return seen
}

// What may be revoked, by which roles, and the contents of the answer.
func TestRevokeTokens(t *testing.T) {
	t.Parallel()
	type R = revocations.Revocation
	e := newEnv(t)
	e.advance(300 * time.Millisecond)
	var got revocations.Revocation
	e.fake.revoke = func(r revocations.Revocation) error { got = r; return nil }
	all, own := e.superAdmin(), e.control(roleAdmin)
	tenant := e.controlFor(roleAdmin, "acme", token.Wildcard)
	next := fakeTime.Add(time.Second)
	for _, c := range []struct {
		bearer, query, body string
		want                revocations.Revocation
	}{
		{all, "", `{"subject":"ann@example.com"}`, R{Kind: revocations.OfSubject, Tenant: "*", Workspace: "*", Name: "ann@example.com"}},
		{all, "?tenantId=acme", `{"subject":"a"}`, R{Kind: revocations.OfSubject, Tenant: "acme", Workspace: "*", Name: "a"}},
		{own, "", `{"subject":"a"}`, R{Kind: revocations.OfSubject, Tenant: "acme", Workspace: "prod", Name: "a"}},
		{own, "", `{"workerId":"w"}`, R{Kind: revocations.OfWorker, Tenant: "acme", Workspace: "prod", Name: "w"}},
		{all, "", `{"tenantId":"b"}`, R{Kind: revocations.OfTenant, Tenant: "b", Workspace: "*"}},
		{tenant, "", `{"tenantId":"acme"}`, R{Kind: revocations.OfTenant, Tenant: "acme", Workspace: "*"}},
	} {
		c.want.IssuedBefore = next
		e.do("POST", "/v1/tokens:revoke"+c.query, c.bearer, c.body).want(200).contains(`{"issuedBefore":"2025-01-15T10:05:01.000Z","tenantId":"` +
			c.want.Tenant + `","workspaceId":"` + c.want.Workspace + `"}`)
		if got != c.want {
			t.Errorf("%s revokes %+v, want %+v", c.body, got, c.want)
		}
	}
	e.do("POST", "/v1/tokens:revoke", all, `{"subject":"a","issuedBefore":"2025-01-15T09:00:00Z"}`).want(200)
	if !got.IssuedBefore.Equal(fakeTime.Add(-65 * time.Minute)) {
		t.Errorf("%v", got.IssuedBefore)
	}
	e.fake.revoke = func(revocations.Revocation) error { t.Error("a refused request revoked the token"); return nil }
	for _, c := range []struct {
		bearer, query, body string
		status              int
		names               string
	}{
		{all, "", `{}`, 400, "subject"}, {all, "", `{"subject":"a","tenantId":"b"}`, 400, "one of"},
		{all, "", `{"subject":"a b"}`, 400, "subject"},
		{all, "", `{"workerId":"w"}`, 400, "tenantId"},
		{all, "", `{"workerId":"a/b"}`, 400, "workerId"}, {all, "", `{"tenantId":"*"}`, 400, "tenantId"},
		{all, "", `{"subject":"a","issuedBefore":"2025-01-15T10:05:02Z"}`, 400, "future"}, {all, "", `{"subjects":"a"}`, 400, "subjects"},
		{all, "?workspaceId=x", `{"tenantId":"b"}`, 403, "workspace"}, {all, "?tenantId=c", `{"tenantId":"b"}`, 400, "differs"},
		{own, "", `{"tenantId":"acme"}`, 403, "all its workspaces"}, {tenant, "", `{"tenantId":"b"}`, 403, "tenant"},
		{own, "?tenantId=b", `{"subject":"a"}`, 403, "tenant"}, {e.control(roleDispatcher), "", `{"subject":"a"}`, 403, "admin"},
	} {
		if a := e.do("POST", "/v1/tokens:revoke"+c.query, c.bearer, c.body).want(c.status); !strings.Contains(a.body, c.names) {
			t.Errorf("%s: %s", c.body, a.body)
		}
	}
	e.fake.revoke = func(revocations.Revocation) error {
		return &model.Error{Code: model.Unavailable, RetryAfter: time.Second, Cause: errors.New("down"), Message: "the store did not confirm"}
	}
	e.do("POST", "/v1/tokens:revoke", all, `{"subject":"a"}`).refused(503, "store_unavailable")
}

// A token that is revoked while it is being verified is not accepted from the cache afterwards.
func TestATokenRevokedWhileItIsVerified(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	text := e.task()
	e.fake.naming = func() {
		e.fake.naming = nil
		e.fake.onRevocation([]revocations.Revocation{{Kind: revocations.OfTenant, Tenant: "acme", Workspace: "*", IssuedBefore: fakeTime}},
			[]revocations.Revocation{{Kind: revocations.OfTenant, Tenant: "acme", Workspace: "*", IssuedBefore: fakeTime}})
	}
	for range 2 {
		e.do("POST", "/v1/tasks/task_1/heartbeat", text, `{"attempt":1}`).refused(401, "unauthorized")
	}
	if n := e.s.api.CachedTokens(); n != 0 {
		t.Errorf("%d tokens are remembered", n)
	}
}
