//go:build long

package main

import (
	"bufio"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/internal/nodetest"
	"github.com/lubdub-io/lubdub/internal/redistest"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

// nodeReceiver is a process of Node that verifies each message with npm's standardwebhooks.
type nodeReceiver struct {
	port     string
	mu       sync.Mutex
	received map[string][]string        // types by subject
	ids      map[string]map[string]bool // by subject and type
	bad      []string
	all      int
}

// receiveWithNode starts one.
func receiveWithNode(t *testing.T, secret string) *nodeReceiver {
	t.Helper()
	folder := nodetest.Folder(t)
	node := exec.Command("node", "testdata/webhooks.mjs", folder, secret)
	out, err := node.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	node.Stderr = os.Stderr
	if err := node.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = node.Process.Kill(), node.Wait() })
	r := &nodeReceiver{received: map[string][]string{}, ids: map[string]map[string]bool{}}
	lines := bufio.NewScanner(out)
	if !lines.Scan() {
		t.Fatal("node printed nothing")
	}
	r.port = strings.TrimPrefix(lines.Text(), "port ")
	go func() {
		for lines.Scan() {
			r.record(lines.Text())
		}
	}()
	return r
}

func (r *nodeReceiver) record(line string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	word := strings.Fields(line)
	if len(word) != 4 || word[0] != "ok" {
		r.bad = append(r.bad, line)
		return
	}
	r.all++
	id, kind, subject := word[1], word[2], word[3]
	if r.ids[subject+" "+kind] == nil {
		r.ids[subject+" "+kind] = map[string]bool{}
		r.received[subject] = append(r.received[subject], kind)
	}
	r.ids[subject+" "+kind][id] = true
}

// whole counts the subjects of which at least so many kinds of events were delivered.
func (r *nodeReceiver) whole(kinds int) (n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, types := range r.received {
		if len(types) >= kinds {
			n++
		}
	}
	return n
}

// Sweepers are killed repeatedly while shards keep few events, and the secret is rotated meanwhile: every event of every task
// arrives at a receiver of Node that verifies it, first in order, and always with the same id.
func TestLongWebhooks(t *testing.T) {
	const batches, each, kills = 60, 50, 40
	// Sweepers trim to a third of what happens in a shard. While none lives, four times as much is kept: all of it, since dropped events
	// reach receivers only as a gap.
	const eventsPerShard = "750"
	server := redistest.StartServer(t)
	serve := func(role string) *running {
		return launch(t, withKey, append([]string{"serve", "--redis", server.URL(), "--roles", role, "--shards", "4",
			"--events-per-shard", eventsPerShard, "--webhook-allow-cidrs", "127.0.0.0/8"}, anyPort...)...)
	}
	front := serve("api")
	url, _ := front.urls()
	admin := adminToken(t)
	secret := "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwMfKQ9r8GKYo="
	r := receiveWithNode(t, secret)
	post(t, url+"/v1/webhooks", admin, `{"webhookId":"w","url":"http://127.0.0.1:`+r.port+`/hook","events":["task.*"],"secret":"`+secret+`"}`,
		&v1.Webhook{})
	sweepers := []*running{serve("sweeper"), serve("sweeper")}
	began, stop := time.Now(), make(chan struct{})
	var killing sync.WaitGroup
	killing.Go(func() {
		for n := range kills {
			select {
			case <-stop:
				return
			case <-time.After(time.Duration(rand.N(500)) * time.Millisecond):
			}
			i := n % len(sweepers)
			sweepers[i].signal(syscall.SIGKILL)
			sweepers[i].wait()
			sweepers[i] = serve("sweeper")
		}
	})
	for b := range batches {
		var tasks []string
		for i := range each {
			tasks = append(tasks, fmt.Sprintf(`{"taskId":"t%d","queue":"q"}`, b*each+i))
		}
		post(t, url+"/v1/tasks:batch", admin, `{"tasks":[`+strings.Join(tasks, ",")+`]}`, nil)
		for i := range each {
			post(t, fmt.Sprintf("%s/v1/tasks/t%d/cancel", url, b*each+i), admin, `{}`, nil)
		}
		if b == batches/2 {
			post(t, url+"/v1/webhooks/w/rotate-secret", admin, "", nil)
		}
	}
	killing.Wait()
	close(stop)
	defer func() {
		if t.Failed() {
			for _, status := range []string{"pending", "retrying", "failed"} {
				_, answer := request("GET", url+"/v1/webhooks/w/deliveries?pageSize=5&status="+status, admin, "")
				t.Logf("%s: %s", status, answer)
			}
		}
	}()
	until(t, "every event of every task was delivered", func() bool { return r.whole(3) >= batches*each })
	until(t, "nothing waits", func() bool {
		_, answer := request("GET", url+"/v1/webhooks/w", admin, "")
		return strings.Contains(answer, `"pending":0`)
	})
	t.Logf("%d messages, %d tasks, %d kills, %v", r.all, batches*each, kills, time.Since(began).Round(time.Second))
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, line := range r.bad {
		t.Errorf("node: %s", line)
	}
	for i := range batches * each {
		subject := fmt.Sprint("t", i)
		if got := strings.Join(r.received[subject], " "); got != "task.created task.cancel_requested task.cancelled" {
			t.Errorf("%s: %s", subject, got)
		}
	}
	for what, ids := range r.ids {
		if len(ids) != 1 {
			t.Errorf("%s came with %d ids", what, len(ids))
		}
	}
}

// One sweeper posts the events that have accumulated while there was none; the rate is reported, not checked.
func TestLongWebhookRate(t *testing.T) {
	const batches, each = 20, 1000
	server := redistest.StartServer(t)
	serve := func(role string) *running {
		return launch(t, withKey, append([]string{"serve", "--redis", server.URL(), "--roles", role, "--events-per-shard", "20000",
			"--webhook-allow-cidrs", "127.0.0.0/8"}, anyPort...)...)
	}
	front := serve("api")
	url, _ := front.urls()
	admin := adminToken(t)
	var first, last atomic.Int64
	var count atomic.Int64
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		now := time.Now().UnixNano()
		first.CompareAndSwap(0, now)
		last.Store(now)
		count.Add(1)
	}))
	defer receiver.Close()
	post(t, url+"/v1/webhooks", admin, `{"webhookId":"w","url":"`+receiver.URL+`","events":["task.created"]}`, &v1.Webhook{})
	one := `{"queue":"q"}`
	for range batches {
		post(t, url+"/v1/tasks:batch", admin, `{"tasks":[`+strings.Repeat(one+",", each-1)+one+`]}`, nil)
	}
	sweeper := serve("sweeper")
	until(t, "all were delivered", func() bool { return count.Load() >= batches*each })
	took := time.Duration(last.Load() - first.Load())
	t.Logf("%d deliveries to one webhook by one sweeper in %v: %.0f a second", count.Load(), took.Round(time.Millisecond),
		float64(count.Load())/took.Seconds())
	sweeper.signal(syscall.SIGTERM)
}
