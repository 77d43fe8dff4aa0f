package api

import (
	"fmt"
	"strings"
	"testing"
	"time"

	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

// Attempt 1 of each task is declared lost, and attempt 2 claimed by a worker that registers just then, on a primary that loses all of
// this. On the promoted replica attempt 1 is still live and ends, which is acknowledged. Attempt 2 changes nothing then, in whatever way
// its worker reports it.
func TestContractALostAttemptIsNotAdoptedOverTheEnd(t *testing.T) {
	t.Parallel()
	contract(t, func(t *testing.T, l *live) {
		first := l.register(mailer)
		ends := []string{"succeeded", "cancelled", "terminated", "deadline", "failed"}
		for _, id := range ends {
			more := ""
			if id == "deadline" {
				more = `,"deadline":"` + l.now().Add(20*time.Second).Format(time.RFC3339) + `"`
			}
			l.queue(`,"taskId":"` + id + `","heartbeatIntervalMs":1000,"heartbeatTimeoutMs":2000,"retry":{"maxAttempts":1,"initialBackoffMs":0}` +
				more)
		}
		one := map[string]*v1.TaskEnvelope{}
		for _, e := range l.claim(first, `{"max":10}`) {
			l.call(&e, "started", `{"attempt":1}`).want(200)
			one[e.TaskID] = &e
		}
		replica := l.store.Snapshot(t)
		l.pass(2100 * time.Millisecond)
		l.sweep()
		second, two := l.register(strings.Replace(mailer, "4711", "4712", 1)), map[string]*v1.TaskEnvelope{}
		for _, e := range l.claim(second, `{"max":10}`) {
			two[e.TaskID] = &e
		}
		if len(one) != len(ends) || len(two) != len(ends) {
			t.Fatalf("claimed %d, then %d", len(one), len(two))
		}

		l.store.Restore(t, replica)
		l.pass(0)
		l.call(one["succeeded"], "completed", `{"attempt":1,"outcome":"SUCCEEDED","output":{"rows":7}}`).want(200)
		l.call(one["cancelled"], "completed", `{"attempt":1,"outcome":"CANCELLED"}`).want(200)
		l.do("POST", "/v1/tasks/terminated/cancel", l.control(roleAdmin), `{"gracePeriodMs":0}`).want(202)
		l.call(one["failed"], "completed", `{"attempt":1,"outcome":"FAILED","error":{"category":"USER_CODE"}}`).want(200)
		for range 10 {
			l.pass(2 * time.Second)
			l.call(one["deadline"], "heartbeat", `{"attempt":1}`).want(200)
		}
		l.sweep()

		before := map[string]string{}
		for _, id := range ends {
			before[id] = fmt.Sprint(l.whole(id))
		}
		states := map[string]v1.State{"succeeded": v1.Succeeded, "cancelled": v1.Cancelled, "terminated": v1.Cancelled, "deadline": v1.Failed}
		refused := func(how, id string, status int, code string, state v1.State, beat bool) {
			t.Helper()
			wantStatus, wantCode := 409, v1.CodeTaskAlreadyTerminal
			if beat && id == "deadline" { // Lubdub ended it, with whichever attempt it has
				wantStatus, wantCode = 410, v1.CodeTaskExpired
			}
			if status != wantStatus || code != wantCode || state != states[id] {
				t.Errorf("%s of attempt 2 of %s: %d %s %s", how, id, status, code, state)
			}
			if now := fmt.Sprint(l.whole(id)); now != before[id] {
				t.Fatalf("%s of attempt 2 of %s changed the task to %s", how, id, fields(l.whole(id), "state", "attempt", "output", "history"))
			}
		}
		calls := map[string]string{"started": `{"attempt":2}`, "heartbeat": `{"attempt":2}`,
			"completed": `{"attempt":2,"outcome":"SUCCEEDED","output":{"rows":8}}`}
		inventory, other := &v1.WorkerHeartbeatResponse{}, l.newReplica()
		l.mine(second, "heartbeat", inventoryOf(two, states)).want(200).into(inventory)
		if len(inventory.LostTasks) != len(states) {
			t.Errorf("lost by its inventory: %+v", inventory.LostTasks)
		}
		for _, n := range inventory.LostTasks {
			code := map[bool]int{true: 410, false: 409}[n.Error == v1.CodeTaskExpired]
			refused("an inventory", n.TaskID, code, n.Error, states[n.TaskID], true)
		}
		for id := range states {
			for call, body := range calls {
				for how, a := range map[string]*answer{
					"its own token, by a " + call:                    l.call(two[id], call, body),
					"its worker's token, by a " + call:               l.do("POST", "/v1/tasks/"+id+"/"+call, second.WorkerToken, body),
					"its worker's token at another replica, " + call: other.do("POST", "/v1/tasks/"+id+"/"+call, second.WorkerToken, body),
				} {
					var e v1.Error
					a.into(&e)
					refused(how, id, a.status, e.Error, e.State, call == "heartbeat")
				}
			}
			var batch v1.HeartbeatsResponse
			l.do("POST", "/v1/heartbeats", second.WorkerToken, fmt.Sprintf(`{"heartbeats":[{"taskId":%[1]q,"attempt":2},
				{"taskId":%[1]q,"attempt":2,"taskToken":%[2]q}]}`, id, two[id].TaskToken)).want(200).into(&batch)
			for _, r := range batch.Results {
				refused("a batch", id, r.Status, r.Error, r.State, true)
			}
		}
		// A failure does not end a task: the next attempt may always be requested, and attempt 2 is one.
		l.call(two["failed"], "heartbeat", `{"attempt":2}`).want(200)
		l.call(two["failed"], "completed", `{"attempt":2,"outcome":"SUCCEEDED"}`).want(200)
		if task := l.get("failed"); task.State != v1.Succeeded || task.Attempt != 2 {
			t.Errorf("%+v", task)
		}
	})
}

// inventoryOf is a worker's beat that lists attempts of some tasks.
func inventoryOf(of map[string]*v1.TaskEnvelope, these map[string]v1.State) string {
	var items []string
	for id := range these {
		items = append(items, fmt.Sprintf(`{"taskId":%q,"attempt":%d}`, id, of[id].Attempt))
	}
	return `{"tasks":[` + strings.Join(items, ",") + `]}`
}
