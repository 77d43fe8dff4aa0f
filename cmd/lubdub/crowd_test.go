package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

// crowd is many tasks and workers that beat as good clients do: every interval, and again after Retry-After when they
// were refused. Some of them are mortal: they fall silent on request.
type crowd struct {
	t        *testing.T
	client   *http.Client
	admin    string
	timeout  time.Duration // of tasks and workers
	interval time.Duration
	batch    int // beats of tasks in one request

	ctx    context.Context
	beats  sync.WaitGroup
	mortal sync.WaitGroup // beats of the mortal ones
	silent chan struct{}  // closed: the mortal ones are silent

	mu      sync.Mutex
	members map[string]*member
	refused []string // responses that declared a live one dead

	pids          atomic.Int64
	turnedAway    atomic.Int64 // beats that were not accepted, by a 503 or for want of an answer
	acceptedBeats atomic.Int64 // beats that were accepted
	accepted      atomic.Int64 // wall ms of the first one since it was set to 0
}

// member is a task or a worker.
type member struct {
	id, token   string
	mortal      bool
	last        atomic.Int64 // its last accepted beat, wall ms
	clientDelay atomic.Int64 // most ms by which this machine kept its client from sending a beat that was due
}

func newCrowd(t *testing.T, client *http.Client, timeout time.Duration) *crowd {
	ctx, stop := context.WithCancel(t.Context())
	c := &crowd{
		t: t, client: client, admin: adminToken(t), timeout: timeout, interval: timeout / 3, batch: crowdBatch, ctx: ctx,
		silent: make(chan struct{}), members: map[string]*member{},
	}
	t.Cleanup(func() {
		stop()
		c.beats.Wait()
		c.mortal.Wait()
	})
	return c
}

const crowdBatch = 200 // beats in one request, where nothing in between judges replicas by single ones

// add brings tasks to life, and has them beat; the mortal ones in separate batches.
func (c *crowd) add(tasks int, mortal bool) {
	c.t.Helper()
	for tasks > 0 {
		n := min(tasks, crowdBatch)
		tasks -= n
		body := fmt.Sprintf(`{"heartbeatIntervalMs":%d,"heartbeatTimeoutMs":%d}`, c.interval.Milliseconds(), c.timeout.Milliseconds())
		status, answer := c.post("/v1/tasks:batch", c.admin, `{"tasks":[`+strings.Repeat(body+",", n-1)+body+`]}`)
		var created struct{ Results []v1.TaskEnvelope }
		if err := json.Unmarshal(answer, &created); status != http.StatusOK || err != nil || len(created.Results) != n {
			c.t.Fatalf("%d %v %.300s", status, err, answer)
		}
		var batch []*member
		for _, e := range created.Results {
			if e.TaskID == "" { // a busy machine: it may be in the store, but no client has its token
				tasks++
				continue
			}
			batch = append(batch, c.member(e.TaskID, e.TaskToken, mortal))
		}
		for few := range slices.Chunk(batch, c.batch) {
			c.run(few, c.beatTasks)
		}
	}
}

// addWorkers does the same for workers, each of which beats separately.
func (c *crowd) addWorkers(workers int, mortal bool) {
	c.t.Helper()
	var wg sync.WaitGroup
	slots := make(chan struct{}, 16)
	for range workers {
		wg.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			pid := c.pids.Add(1)
			body := fmt.Sprintf(`{"queue":"q","types":["t"],"hostname":"host-%d","pid":%d}`, pid%100, pid)
			if mortal {
				body = strings.Replace(body, "host-", "mortal-", 1)
			}
			status, answer := c.post("/v1/workers", c.admin, body)
			var r v1.RegisterWorkerResponse
			if err := json.Unmarshal(answer, &r); status != http.StatusCreated || err != nil {
				c.t.Errorf("%d %v %.300s", status, err, answer)
				return
			}
			c.run([]*member{c.member(r.WorkerID, r.WorkerToken, mortal)}, c.beatWorker)
		})
	}
	wg.Wait()
}

func (c *crowd) member(id, token string, mortal bool) *member {
	m := &member{id: id, token: token, mortal: mortal}
	m.last.Store(time.Now().UnixMilli())
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.members[id] != nil {
		c.t.Errorf("%s is there twice", id)
	}
	c.members[id] = m
	return m
}

// run beats for some every interval until the end of the test, or of the mortal's life.
func (c *crowd) run(members []*member, beat func([]*member) ([]*member, time.Duration)) {
	silent, beats := c.silent, &c.mortal
	if !members[0].mortal {
		silent, beats = nil, &c.beats
	}
	beats.Go(func() {
		if c.batch == 1 { // each has its own rhythm
			select {
			case <-c.ctx.Done():
			case <-silent:
			case <-time.After(rand.N(c.interval)):
			}
		}
		for next := time.Now(); ; {
			delay := time.Since(next).Milliseconds()
			for _, m := range members {
				m.clientDelay.Store(max(m.clientDelay.Load(), delay))
			}
			next = time.Now()
			c.untilAccepted(members, beat)
			next = next.Add(c.interval)
			if now := time.Now(); next.Before(now) {
				next = now // after an outage, not all that were missed
			}
			select {
			case <-c.ctx.Done():
				return
			case <-silent:
				return
			case <-time.After(time.Until(next)):
			}
		}
	})
}

// fallSilent ends the mortal ones, and returns when none of their beats is under way any more.
func (c *crowd) fallSilent() {
	close(c.silent)
	c.mortal.Wait()
}

// untilAccepted beats, and again with those that were turned away.
func (c *crowd) untilAccepted(members []*member, beat func([]*member) ([]*member, time.Duration)) {
	for c.ctx.Err() == nil {
		away, wait := beat(members)
		if len(away) == 0 {
			return
		}
		c.turnedAway.Add(int64(len(away)))
		members = away
		select {
		case <-c.ctx.Done():
		case <-time.After(wait + rand.N(wait/10)): // not all at once
		}
	}
}

// noAnswer is how long a client waits that got no answer at all.
const noAnswer = time.Second

func (c *crowd) beatTasks(members []*member) (away []*member, wait time.Duration) {
	var body bytes.Buffer
	body.WriteString(`{"heartbeats":[`)
	for i, m := range members {
		if i > 0 {
			body.WriteByte(',')
		}
		body.WriteString(`{"taskId":"` + m.id + `","taskToken":"` + m.token + `","attempt":1}`)
	}
	body.WriteString("]}")
	status, answer, retry := c.send("/v1/heartbeats", "", &body)
	switch status {
	case http.StatusOK:
	case 0, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return members, retry
	default:
		c.recordRefusal(members[0], status, answer)
		return nil, 0
	}
	switch len(members) { // most of the time all are one or the other, and reading each answer costs more than the beats
	case bytes.Count(answer, []byte(`"status":200,`)):
		for _, m := range members {
			c.recordAccepted(m)
		}
		return nil, 0
	case bytes.Count(answer, []byte(`"status":503,`)):
		return members, noAnswer
	}
	var r struct {
		Results []struct {
			Status       int
			RetryAfterMs int64
			Error        string
		}
	}
	if err := json.Unmarshal(answer, &r); err != nil || len(r.Results) != len(members) {
		c.t.Errorf("%v %.300s", err, answer)
		return nil, 0
	}
	for i, m := range members {
		switch item := r.Results[i]; item.Status {
		case http.StatusOK:
			c.recordAccepted(m)
		case http.StatusServiceUnavailable:
			away, wait = append(away, m), max(wait, time.Duration(item.RetryAfterMs)*time.Millisecond)
		default:
			c.recordRefusal(m, item.Status, []byte(item.Error))
		}
	}
	return away, wait
}

func (c *crowd) beatWorker(w []*member) (away []*member, wait time.Duration) {
	status, answer, retry := c.send("/v1/workers/"+w[0].id+"/heartbeat", w[0].token, http.NoBody)
	switch status {
	case http.StatusOK:
		c.recordAccepted(w[0])
	case 0, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return w, retry
	default:
		c.recordRefusal(w[0], status, answer)
	}
	return nil, 0
}

func (c *crowd) recordAccepted(m *member) {
	now := time.Now().UnixMilli()
	m.last.Store(now)
	c.acceptedBeats.Add(1)
	c.accepted.CompareAndSwap(0, now)
}

// recordRefusal records answers that a live member must never get.
func (c *crowd) recordRefusal(m *member, status int, answer []byte) {
	if m.mortal || status == 0 || status == http.StatusServiceUnavailable {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.refused = append(c.refused, fmt.Sprintf("%s: %d %.200s", m.id, status, answer))
}

// post retries until it gets a response: a worker that registers again supersedes itself.
func (c *crowd) post(path, token, body string) (status int, answer []byte) {
	for c.ctx.Err() == nil {
		var wait time.Duration
		if status, answer, wait = c.send(path, token, strings.NewReader(body)); status != 0 && status != http.StatusServiceUnavailable {
			break
		}
		time.Sleep(wait) // from Retry-After
	}
	return status, answer
}

// send returns status 0 when there was no answer, and how long to wait before trying again.
func (c *crowd) send(path, token string, body io.Reader) (status int, answer []byte, wait time.Duration) {
	req, err := http.NewRequestWithContext(c.ctx, http.MethodPost, "http://lubdub"+path, body)
	if err != nil {
		c.t.Error(err)
		return 0, nil, noAnswer
	}
	req.Header.Set("Content-Type", "application/json")
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	res, err := c.client.Do(req)
	if err != nil {
		return 0, nil, noAnswer
	}
	defer res.Body.Close()
	if answer, err = io.ReadAll(res.Body); err != nil {
		return 0, nil, noAnswer
	}
	seconds, err := strconv.Atoi(res.Header.Get("Retry-After"))
	if err != nil { // a balancer's own answer
		return res.StatusCode, answer, noAnswer
	}
	return res.StatusCode, answer, time.Duration(seconds) * time.Second
}

// count counts the live, or the mortal, tasks and workers.
func (c *crowd) count(mortal bool) (tasks, workers int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for id, m := range c.members {
		switch {
		case m.mortal != mortal:
		case strings.HasPrefix(id, "wkr_"):
			workers++
		default:
			tasks++
		}
	}
	return tasks, workers
}

// heldUp is the most by which the machine kept a client from sending what was due.
func (c *crowd) heldUp() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	var most int64
	for _, m := range c.members {
		most = max(most, m.clientDelay.Load())
	}
	return time.Duration(most) * time.Millisecond
}
