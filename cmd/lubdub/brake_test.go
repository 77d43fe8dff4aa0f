package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/lubdub-io/lubdub/internal/redistest"
	"github.com/lubdub-io/lubdub/internal/testenv"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

// cuttable is a proxy to an address; once cut, nothing that is sent arrives.
func cuttable(t *testing.T, to string) (base string, cut *atomic.Bool) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	cut = &atomic.Bool{}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			if cut.Load() {
				_ = c.Close()
				continue
			}
			up, err := net.Dial("tcp", to)
			if err != nil {
				_ = c.Close()
				continue
			}
			go func() { _, _ = io.Copy(c, up); _ = c.Close() }()
			go func() { _, _ = io.Copy(up, c); _ = up.Close() }()
		}
	}()
	return "http://" + l.Addr().String(), cut
}

// A front end that no worker reaches any more, while it and the sweeper reach Redis: to the sweeper all workers are dead. With
// the brake on they get a second timeout period, and those that beat again within it live.
func TestAnUnreachableFrontEndExpiresNoTaskWithTheBrakeOn(t *testing.T) {
	testenv.OnlyAll(t)
	redis := redistest.StartServer(t)
	brake := []string{"--redis", redis.URL(), "--mass-expiry-brake", "on"}
	role := func(role string) *running {
		return launch(t, withKey, append(append([]string{"serve", "--roles", role}, brake...), anyPort...)...)
	}
	front, back := role("api"), role("sweeper")
	direct, _ := front.urls()
	_, pages := back.urls()
	base, cut := cuttable(t, strings.TrimPrefix(direct, "http://"))
	const n = 60
	var made struct{ Results []v1.TaskEnvelope }
	task := `{"heartbeatIntervalMs":4000,"heartbeatTimeoutMs":12000}`
	post(t, direct+"/v1/tasks:batch", adminToken(t), `{"tasks":[`+strings.Repeat(task+",", n-1)+task+`]}`, &made)
	tasks := made.Results
	beat := func() int { // all at once, so that none is silent for long meanwhile
		var accepted atomic.Int32
		var all sync.WaitGroup
		for _, e := range tasks {
			all.Go(func() {
				if status, _ := request("POST", base+"/v1/tasks/"+e.TaskID+"/heartbeat", e.TaskToken, `{"attempt":1}`); status == http.StatusOK {
					accepted.Add(1)
				}
			})
		}
		all.Wait()
		return int(accepted.Load())
	}
	if got := beat(); got != n {
		t.Fatalf("%d of %d beats are accepted", got, n)
	}
	cut.Store(true)
	one.CloseIdleConnections()
	held := func() bool {
		_, body := request("GET", pages+"/metrics", "", "")
		return strings.Contains(body, fmt.Sprintf(`lubdub_mass_expiry_held_total{kind="task"} %d`, n))
	}
	until(t, "the brake holds", func() bool {
		beat() // nothing of it arrives
		return held()
	})
	cut.Store(false)
	if got := beat(); got != n {
		t.Fatalf("%d of %d beats are accepted again", got, n)
	}
	var list v1.TaskList // in one answer, since they are silent meanwhile
	status, body := request("GET", direct+"/v1/tasks?state=RUNNING&pageSize=100", adminToken(t), "")
	if status != http.StatusOK || json.Unmarshal([]byte(body), &list) != nil {
		t.Fatalf("listing: %d %s", status, body)
	}
	alive := 0
	for _, task := range list.Tasks {
		if task.Attempt == 1 {
			alive++
		}
	}
	if alive != n {
		t.Fatalf("%d of %d are running in their first attempt", alive, n)
	}
}
