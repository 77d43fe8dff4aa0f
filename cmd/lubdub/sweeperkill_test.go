package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lubdub-io/lubdub/internal/faultproxy"
	"github.com/lubdub-io/lubdub/internal/redistest"
	"github.com/lubdub-io/lubdub/internal/testenv"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

const killShards = 4

// post makes a call that must succeed.
func post(t *testing.T, url, token, body string, into any) {
	t.Helper()
	status, answer := request("POST", url, token, body)
	if status/100 != 2 {
		t.Fatalf("%s: %d %s", url, status, answer)
	}
	if into == nil {
		return
	}
	if err := json.Unmarshal([]byte(answer), into); err != nil {
		t.Fatal(err)
	}
}

// heldIn counts what workers hold, and the recoveries that are not done.
func heldIn(t *testing.T, c *redis.Client) (held, recoveries int64) {
	t.Helper()
	pipe := c.Pipeline()
	var cards []*redis.IntCmd
	for shard := range killShards {
		for _, key := range []string{"held", "recoveries"} {
			cards = append(cards, pipe.ZCard(t.Context(), fmt.Sprintf("lubdub:{%d}:%s", shard, key)))
		}
	}
	if _, err := pipe.Exec(t.Context()); err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(cards); i += 2 {
		held, recoveries = held+cards[i].Val()-1, recoveries+cards[i+1].Val()-1 // the sentinels
	}
	return held, recoveries
}

// Sweeper processes are killed during the recovery of dead workers, at random moments, one after the other. Every task must be requeued,
// once.
func TestSweepersAreKilledInTheMiddleOfARecovery(t *testing.T) {
	testenv.OnlyAll(t)
	t.Parallel()
	const workers, each = 3, 700
	server := redistest.StartServer(t)
	c := server.Client()
	defer func() { _ = c.Close() }()
	slow := faultproxy.Start(t, server.Addr) // so that no recovery is over before a busy machine has looked at it
	slow.Delay(20 * time.Millisecond)
	serve := func(role, at string) *running {
		return launch(t, withKey, append([]string{"serve", "--redis", "redis://" + redistest.As(at) + "/0", "--roles", role,
			"--shards", fmt.Sprint(killShards), "--worker-heartbeat-interval", "2s"}, anyPort...)...)
	}
	front := serve("api", server.Addr)
	url, _ := front.urls()
	admin := adminToken(t)
	for w := range workers {
		for range each / 350 {
			one := fmt.Sprintf(`{"queue":"q%d"}`, w)
			post(t, url+"/v1/tasks:batch", admin, `{"tasks":[`+strings.Repeat(one+",", 349)+one+`]}`, nil)
		}
	}
	var hired [workers]v1.RegisterWorkerResponse
	for w := range hired {
		post(t, url+"/v1/workers", admin, fmt.Sprintf(`{"queue":"q%d","types":["x"],"maxConcurrent":10000,"machineId":"m%d"}`, w, w), &hired[w])
		for n := 0; n < each; {
			var got v1.ClaimResponse
			post(t, url+fmt.Sprintf("/v1/queues/q%d/claim", w), hired[w].WorkerToken, `{"max":100}`, &got)
			n += len(got.Tasks)
			for _, h := range hired[:w+1] {
				post(t, url+"/v1/workers/"+h.WorkerID+"/heartbeat", h.WorkerToken, "", nil)
			}
		}
	}

	// From here on none of them beats.
	halfway := 0
	for kills := 0; halfway < 3; kills++ {
		sweeper := serve("sweeper", slow.Addr)
		sweeper.urls()
		before, _ := heldIn(t, c)
		until(t, "a recovery continues", func() bool {
			held, _ := heldIn(t, c)
			return held < before || held == 0
		})
		time.Sleep(rand.N(3 * time.Millisecond)) // anywhere in it
		sweeper.signal(syscall.SIGKILL)
		sweeper.wait()
		held, recoveries := heldIn(t, c)
		t.Logf("killed with %d attempts and %d workers still to recover", held, recoveries)
		if held == 0 {
			break
		}
		halfway++
	}
	if halfway == 0 {
		t.Error("no sweeper died in the middle of a recovery")
	}
	last := serve("sweeper", server.Addr)
	last.urls()
	until(t, "all recoveries are done", func() bool {
		held, recoveries := heldIn(t, c)
		return held == 0 && recoveries == 0
	})
	events := map[any]int{}
	perTask := map[any]int{}
	for shard := range killShards {
		entries, err := c.XRange(t.Context(), fmt.Sprintf("lubdub:{%d}:events", shard), "-", "+").Result()
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			events[e.Values["type"]]++
			if e.Values["type"] == "task.retrying" {
				perTask[e.Values["subject"]]++
			}
		}
	}
	for task, n := range perTask {
		if n != 1 {
			t.Errorf("%s was requeued %d times", task, n)
		}
	}
	if events["task.retrying"] != workers*each || events["worker.offline"] != workers || events["worker.tasks_recovered"] != workers {
		t.Errorf("%d tasks were requeued of %d workers' %d: %v", len(perTask), workers, workers*each, events)
	}
	var sample v1.TaskList
	status, answer := request("GET", url+"/v1/tasks?pageSize=100", admin, "")
	if err := json.Unmarshal([]byte(answer), &sample); err != nil || status != 200 || len(sample.Tasks) == 0 {
		t.Fatal(status, answer)
	}
	for _, task := range sample.Tasks {
		if task.State != v1.Queued || task.Attempt != 1 || task.Losses != 1 {
			t.Errorf("%+v", task)
		}
	}
}
