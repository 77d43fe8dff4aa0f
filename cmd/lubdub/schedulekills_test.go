package main

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/internal/redistest"
	"github.com/lubdub-io/lubdub/internal/testenv"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

// Three sweepers are killed and started again, one after the other, while a schedule fires each second. Each fire has its task,
// once.
func TestKilledSweepersFireOnce(t *testing.T) {
	testenv.OnlyAll(t)
	skipIfShort(t)
	redis := redistest.StartServer(t)
	start := func(role string) *running {
		return launch(t, withKey, append([]string{"serve", "--redis", redis.URL(), "--roles", role}, anyPort...)...)
	}
	api := start("api")
	url, _ := api.urls()
	admin := adminToken(t)
	do := func(method, path, body string, into any) {
		t.Helper()
		req, err := http.NewRequest(method, url+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+admin)
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = res.Body.Close() }()
		text, err := io.ReadAll(res.Body)
		if err != nil || res.StatusCode >= 300 || json.Unmarshal(text, into) != nil {
			t.Fatalf("%s %s: %d %s %v", method, path, res.StatusCode, text, err)
		}
	}
	const scope = "?tenantId=default&workspaceId=default"
	var s v1.Schedule
	do("POST", "/v1/schedules"+scope, `{"scheduleId":"s1","cron":"* * * * * *","task":{"queue":"q","runId":"r1"}}`, &s)
	sweepers := []*running{start("sweeper"), start("sweeper"), start("sweeper")}
	for kill := range 9 {
		sweepers[kill%3].urls()
		before := s.Fired
		for deadline := time.Now().Add(long); s.Fired == before; do("GET", "/v1/schedules/s1"+scope, "", &s) {
			if time.Now().After(deadline) {
				t.Fatal("it fires no more")
			}
		}
		sweepers[kill%3].signal(syscall.SIGKILL)
		sweepers[kill%3].wait()
		sweepers[kill%3] = start("sweeper")
	}
	do("POST", "/v1/schedules/s1/pause"+scope, "", &s)
	for deadline := time.Now().Add(long); s.Pending > 0; do("GET", "/v1/schedules/s1"+scope, "", &s) {
		if time.Now().After(deadline) {
			t.Fatalf("%d fires wait", s.Pending)
		}
	}
	var run struct{ TotalCount int }
	do("GET", "/v1/tasks"+scope+"&runId=r1", "", &run)
	passed := int(s.Last.Sub(s.CreatedAt.Truncate(time.Second)) / time.Second)
	if s.Skipped != 0 || int(s.Fired) != passed || run.TotalCount != passed {
		t.Errorf("%d fires, %d skipped and %d tasks in %d s", s.Fired, s.Skipped, run.TotalCount, passed)
	}
	t.Logf("9 kills, %d fires", s.Fired)
}
