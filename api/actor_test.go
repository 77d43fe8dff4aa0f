package api

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lubdub-io/lubdub/api/token"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
	"github.com/lubdub-io/lubdub/tracker"
	"github.com/lubdub-io/lubdub/tracker/model"
)

// acts lists the events of all shards but the stores' own as "<type> <by>".
func (l *live) acts() map[string]int {
	l.t.Helper()
	seen := map[string]int{}
	for shard := range 4 {
		entries, err := l.store.Client.XRange(context.Background(), fmt.Sprintf("lubdub:{%d}:events", shard), "-", "+").Result()
		if err != nil {
			l.t.Fatal(err)
		}
		for _, e := range entries {
			if e.Values["scope"] != "" {
				seen[fmt.Sprint(e.Values["type"], " ", e.Values["by"])]++
			}
		}
	}
	return seen
}

// Each event names the actor: the subject of the token, else its role; the worker; the sweeper for what no client requested.
func TestContractEventsNameTheActor(t *testing.T) {
	t.Parallel()
	contract(t, func(t *testing.T, l *live) {
		named := func(role token.Role, subject string) string {
			return l.controlOf(token.Control{Role: role, Subject: subject, TTL: time.Hour})
		}
		var w v1.RegisterWorkerResponse
		l.do("POST", "/v1/workers", named(roleEnroll, "ansible"), `{"queue":"q","types":["x"],"machineId":"m1"}`).want(201).into(&w)
		l.do("POST", "/v1/tasks", named(roleDispatcher, "ann@example.com"), `{"taskId":"t1","queue":"q","type":"x"}`).want(201)
		var claimed v1.ClaimResponse
		l.do("POST", "/v1/queues/q/claim", w.WorkerToken, `{}`).want(200).into(&claimed)
		l.call(&claimed.Tasks[0], "started", `{"attempt":1}`).want(200)
		l.do("POST", "/v1/tasks/t1/cancel", named(roleOperator, "bob"), `{}`).want(202)
		l.call(&claimed.Tasks[0], "completed", `{"attempt":1,"outcome":"CANCELLED"}`).want(200)
		l.do("POST", "/v1/tasks", l.control(roleDispatcher), `{"taskId":"t2"}`).want(201)
		l.do("POST", "/v1/workers/"+w.WorkerID+"/drain", named(roleOperator, "carol"), `{}`).want(200)
		l.pass(40 * time.Second)
		for range 3 {
			l.sweep()
		}
		seen := l.acts()
		for _, want := range []string{
			"worker.registered ansible", "machine.online ansible", "task.created ann@example.com", "task.dispatched " + w.WorkerID,
			"task.started ", "task.cancel_requested bob", "task.cancelled ", "task.created role:dispatcher",
			"task.dispatched role:dispatcher", "worker.draining carol", "worker.offline swp_test",
		} {
			if seen[want] == 0 {
				t.Errorf("no event %q among %v", want, seen)
			}
		}
	})
}

// Operations on a queue, the brake or the whole deployment are published once each, whatever shards they affect, and not at all if they
// change nothing.
func TestContractOperationsOnTheDeploymentArePublished(t *testing.T) {
	t.Parallel()
	contract(t, func(t *testing.T, l *live) {
		named := func(role token.Role, subject string) string {
			return l.controlOf(token.Control{Role: role, Subject: subject, TTL: time.Hour})
		}
		for range 2 { // the second time the queue is already paused or resumed
			l.do("POST", "/v1/queues/q1/pause", named(roleOperator, "ann"), `{"reason":"the \"q1\" server is down"}`).want(200)
		}
		for range 2 {
			l.do("POST", "/v1/queues/q1/resume", named(roleOperator, "bob"), "").want(200)
		}
		l.do("POST", "/v1/queues/q1/pause", named(roleOperator, "carol"), "").want(200)
		l.do("POST", "/v1/system:release", named(roleOperator, "dave"), `{"durationMs":90000}`).want(200)
		for range 2 {
			l.do("POST", "/v1/system:release", named(roleOperator, "dave"), `{"durationMs":60000}`).want(200)
			l.do("POST", "/v1/system:sweep", named(roleAdmin, "eve"), "").want(200)
		}
		for kind, want := range map[string]string{
			"queue.paused": "ann:1 carol:1", "queue.resumed": "bob:1", "system.released": "dave:2", "system.swept": "eve:2",
		} {
			if got := strings.TrimSuffix(strings.TrimPrefix(fmt.Sprint(l.actsOf(kind)), "map["), "]"); got != want {
				t.Errorf("%s: %s, want %s", kind, got, want)
			}
		}
		shard := l.tr.Store.ShardOf(model.Scope{Tenant: "acme", Workspace: "prod"}, "q1")
		events, err := l.store.Client.XRange(context.Background(), fmt.Sprintf("lubdub:{%d}:events", shard), "-", "+").Result()
		if err != nil {
			t.Fatal(err)
		}
		i := slices.IndexFunc(events, func(e redis.XMessage) bool { return e.Values["type"] == "queue.paused" })
		if i < 0 || events[i].Values["subject"] != "q1" || events[i].Values["queue"] != "q1" || events[i].Values["scope"] != "acme/prod" ||
			events[i].Values["data"] != `{"reason":"the \"q1\" server is down"}` {
			t.Errorf("the shard of the queue has %v", events)
		}
	}, func(o *tracker.Options) { o.Brake = true })
}
