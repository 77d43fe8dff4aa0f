package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/internal/redistest"
	"github.com/lubdub-io/lubdub/internal/testenv"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

// restarts is how many there are; `make test-restarts` has 100.
var restarts = flag.Int("restarts", 4, "restarts of replicas in TestRollingRestarts")

// Replicas of both roles are stopped and started again, one after the other, as a rolling update does it, while clients
// create tasks, start them, beat, cancel and complete them, and workers claim. A client that tries again on 503 and on
// a connection that was closed sees no other failure, and whatever was acknowledged is there in the end.
func TestRollingRestarts(t *testing.T) {
	testenv.OnlyAll(t)
	redis := redistest.StartServer(t, "--appendonly", "yes")
	start := func(role, listen string) *running {
		return launch(t, withKey, "serve", "--redis", redis.URL(), "--roles", role, "--listen", listen, "--admin-listen", "127.0.0.1:0",
			"--public-url", "http://lubdub", "--worker-heartbeat-interval", "10s", "--log-level", "warn")
	}
	balancer := &spread{RoundTripper: &http.Transport{MaxIdleConnsPerHost: 64}}
	replicas := make([]*running, 4)
	for i := range replicas {
		if i%2 == 1 {
			replicas[i] = start("sweeper", "127.0.0.1:0")
			replicas[i].urls()
			continue
		}
		replicas[i] = start("api", redistest.FreeAddr()) // where it comes back
		url, _ := replicas[i].urls()
		balancer.hosts = append(balancer.hosts, strings.TrimPrefix(url, "http://"))
	}
	l := newRestartLoad(t, &http.Client{Transport: balancer, Timeout: 10 * time.Second})
	l.begin()
	var slowest time.Duration
	for n := range *restarts {
		i := n % len(replicas)
		role, listen := "api", balancer.hosts[i/2]
		if i%2 == 1 {
			role, listen = "sweeper", "127.0.0.1:0"
		}
		l.awaitMore()
		began := time.Now()
		replicas[i].signal(syscall.SIGTERM)
		if code := replicas[i].wait(); code != exitOK {
			t.Fatalf("restart %d: the %s ended with %d: %s", n+1, role, code, replicas[i].errs)
		}
		replicas[i] = start(role, listen)
		replicas[i].urls()
		slowest = max(slowest, time.Since(began))
	}
	l.awaitMore()
	l.finish()
	t.Logf("%d restarts, the slowest in %v: %d tasks, %d requests acknowledged, %d tried again after 503, %d after a closed connection; %d "+
		"failed, %d lost",
		*restarts, slowest.Round(time.Millisecond), len(l.tasks), l.acknowledged.Load(), l.unavailable.Load(), l.closed.Load(), l.failed.Load(),
		l.lost)
	if l.closed.Load()+l.unavailable.Load() == 0 {
		t.Error("no client noticed anything: nothing was restarted under load")
	}
}

// restartLoad is what clients do meanwhile, and the answers that they got.
type restartLoad struct {
	*testing.T
	http  *http.Client
	admin string
	pause time.Duration // of a client between two tasks; 0: none

	ctx     context.Context
	stop    context.CancelFunc
	working sync.WaitGroup

	acknowledged, unavailable, closed, failed atomic.Int64
	cycles                                    atomic.Int64 // tasks that were brought to their end

	mu    sync.Mutex
	tasks map[string]promised
	lost  int
}

// promised is what acknowledged requests have promised about a task.
type promised struct {
	state    v1.State // "": any
	lastBeat time.Time
	progress string
}

func newRestartLoad(t *testing.T, client *http.Client) *restartLoad {
	l := &restartLoad{T: t, http: client, admin: adminToken(t), tasks: map[string]promised{}}
	l.ctx, l.stop = context.WithCancel(context.Background())
	t.Cleanup(func() { l.stop(); l.working.Wait(); client.CloseIdleConnections() })
	return l
}

// begin starts the clients: those of pushed tasks, the dispatcher of a queue and its workers.
func (l *restartLoad) begin() {
	for i := range 8 {
		l.working.Go(func() {
			for n := 0; l.ctx.Err() == nil; n++ {
				l.push(fmt.Sprintf("push-%d-%05d", i, n))
				time.Sleep(l.pause)
			}
		})
	}
	l.working.Go(func() {
		for n := 0; l.ctx.Err() == nil; n++ {
			id := fmt.Sprintf("queue-%05d", n)
			if l.do("POST", "/v1/tasks", l.admin, id, v1.CreateTaskRequest{TaskID: id, Queue: "q", Type: "x"}, nil, http.StatusCreated) == nil {
				l.promise(id, promised{})
			}
			time.Sleep(5 * time.Millisecond) // the pace of this client
		}
	})
	for i := range 2 {
		l.working.Go(func() { l.work(i) })
	}
}

// push is one pushed task's life, from its creation to its end.
func (l *restartLoad) push(id string) {
	var e v1.TaskEnvelope
	timeout := time.Hour.Milliseconds() // longer than all of it
	task := v1.CreateTaskRequest{TaskID: id, HeartbeatTimeoutMs: &timeout}
	if l.do("POST", "/v1/tasks", l.admin, id, task, &e, http.StatusCreated) != nil {
		return
	}
	l.promise(id, promised{})
	path := "/v1/tasks/" + id
	if l.do("POST", path+"/started", e.TaskToken, "", v1.StartedRequest{Attempt: 1}, nil, http.StatusOK) != nil {
		return
	}
	l.promise(id, promised{state: v1.Running})
	for pct := 10.0; pct <= 30; pct += 10 {
		var a v1.HeartbeatResponse
		if l.do("POST", path+"/heartbeat", e.TaskToken, "", v1.HeartbeatRequest{Attempt: 1, ProgressPct: &pct}, &a, http.StatusOK) != nil {
			return
		}
		l.promise(id, promised{state: v1.Running, lastBeat: a.ServerTime.Time, progress: fmt.Sprint(pct)})
	}
	end := v1.CompletedRequest{Attempt: 1, Outcome: v1.OutcomeSucceeded}
	state := v1.Succeeded
	switch rand.IntN(4) {
	case 0:
		return // continues for as long as its timeout
	case 1:
		if l.do("POST", path+"/cancel", l.admin, "", v1.CancelRequest{}, nil, http.StatusAccepted) != nil {
			return
		}
		end.Outcome, state = v1.OutcomeCancelled, v1.Cancelled
	}
	if l.do("POST", path+"/completed", e.TaskToken, "", end, nil, http.StatusOK) == nil {
		l.promise(id, promised{state: state})
		l.cycles.Add(1)
	}
}

// work is a worker: it registers, claims, completes and beats.
func (l *restartLoad) work(i int) {
	var w v1.RegisterWorkerResponse
	if l.do("POST", "/v1/workers", l.admin, "", v1.RegisterWorkerRequest{Queue: "q", Types: []string{"x"}, Hostname: "host", PID: 1 + i}, &w,
		http.StatusCreated) != nil {
		return
	}
	wait, most := int64(300), 10
	beaten := time.Now()
	for n := 0; l.ctx.Err() == nil; n++ {
		var got v1.ClaimResponse
		claim := v1.ClaimRequest{Max: &most, WaitMs: &wait, ClaimID: fmt.Sprintf("c%d-%d", i, n)}
		if l.do("POST", "/v1/queues/q/claim", w.WorkerToken, "", claim, &got, http.StatusOK) != nil {
			return
		}
		for _, e := range got.Tasks {
			end := v1.CompletedRequest{Attempt: e.Attempt, Outcome: v1.OutcomeSucceeded}
			if l.do("POST", "/v1/tasks/"+e.TaskID+"/completed", e.TaskToken, "", end, nil, http.StatusOK) == nil {
				l.promise(e.TaskID, promised{state: v1.Succeeded})
				l.cycles.Add(1)
			}
		}
		if time.Since(beaten) > 500*time.Millisecond {
			beaten = time.Now()
			_ = l.do("POST", "/v1/workers/"+w.WorkerID+"/heartbeat", w.WorkerToken, "", v1.WorkerHeartbeatRequest{}, nil, http.StatusOK)
		}
	}
}

func (l *restartLoad) promise(id string, p promised) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.tasks[id].state != v1.Succeeded { // a worker may be quicker than the answer to who created it
		l.tasks[id] = p
	}
}

// tries is how often a request is made at most: for a rolling update far more than enough, also where a busy machine has a balancer
// take all replicas for dead for a while.
const tries = 1000

// do makes a request until it is answered with something else than 503. Anything but the wanted status is a failure.
func (l *restartLoad) do(method, path, token, key string, in, out any, want int) error {
	var why error
	for range tries {
		status, body, err := l.once(method, path, token, key, in)
		switch {
		case err != nil:
			l.closed.Add(1)
			why = err
		case status == http.StatusBadGateway: // a balancer's response when a connection was closed
			l.closed.Add(1)
			why = errors.New("the balancer could not reach any server")
		case status == http.StatusServiceUnavailable:
			l.unavailable.Add(1)
			why = errors.New(string(body))
		case status == want:
			l.acknowledged.Add(1)
			if out == nil {
				return nil
			}
			return json.Unmarshal(body, out)
		default:
			l.failed.Add(1)
			err := fmt.Errorf("%s %s: %d %s", method, path, status, body)
			l.Error(err)
			return err
		}
		time.Sleep(20 * time.Millisecond) // before the next try
	}
	l.failed.Add(1)
	err := fmt.Errorf("%s %s failed %d times: %w", method, path, tries, why)
	l.Error(err)
	return err
}

func (l *restartLoad) once(method, path, token, key string, in any) (status int, body []byte, err error) {
	var sent io.Reader
	if in != nil {
		b, err := json.Marshal(in)
		if err != nil {
			return 0, nil, err
		}
		sent = strings.NewReader(string(b))
	}
	req, err := http.NewRequest(method, "http://lubdub"+path, sent)
	if err != nil {
		return 0, nil, err
	}
	req.Header.Set("Authorization", "Bearer "+token)
	req.Header.Set("Content-Type", "application/json")
	if key != "" {
		req.Header.Set("Idempotency-Key", key)
	}
	res, err := l.http.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer res.Body.Close()
	body, err = io.ReadAll(res.Body)
	return res.StatusCode, body, err
}

// awaitMore waits until some more tasks have come to their end: the load runs.
func (l *restartLoad) awaitMore() {
	l.Helper()
	enough := l.cycles.Load() + 20
	until(l.T, "tasks come to their end", func() bool { return l.cycles.Load() >= enough || l.Failed() })
}

// finish stops the clients and holds every task against what was promised about it.
func (l *restartLoad) finish() {
	l.stop()
	l.working.Wait()
	const precision = 50 * time.Millisecond // precision of a beat's time while time is held for balancers, as for a draining replica
	for id, p := range l.tasks {
		var task v1.Task
		if err := l.do("GET", "/v1/tasks/"+id, l.admin, "", nil, &task, http.StatusOK); err != nil {
			l.lost++
			continue
		}
		if p.state != "" && task.State != p.state || task.LastHeartbeatAt.Time.Before(p.lastBeat.Add(-precision)) ||
			p.progress != "" && string(task.ProgressPct) != p.progress || task.Attempt > 1 {
			l.lost++
			l.Errorf("%s is %s, attempt %d, %s %%, last heartbeat %v; acknowledged was %+v", id, task.State, task.Attempt, task.ProgressPct,
				task.LastHeartbeatAt, p)
		}
	}
}
