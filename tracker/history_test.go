package tracker_test

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/lubdub-io/lubdub/internal/faultproxy"
	"github.com/lubdub-io/lubdub/internal/redistest"
	"github.com/lubdub-io/lubdub/internal/testenv"
	"github.com/lubdub-io/lubdub/tracker"
	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/sweep"
	"github.com/lubdub-io/lubdub/tracker/trackertest"
)

var (
	historyRounds = flag.Int("history.rounds", 1, "how many rounds TestHistories has, each with its own Redis")
	historyFor    = flag.Duration("history.for", 3*time.Second, "for how long clients are at work in each; streams keep 10,000 events a shard")
	historyKills  = flag.Int("history.kills", 1, "how often Redis is killed in each")
)

// Clients, sweepers and workers on two replicas act on the same tasks at once, while a proxy before Redis loses requests and replies,
// pauses and cuts connections, and while Redis is frozen, killed and restarted. The responses to each task's clients, and its events of
// Lubdub's own verdicts, must be one life that the model allows, in an order that agrees with real time: the history is linearizable. A
// request without a response may have been executed at any later time, or never.
func TestHistories(t *testing.T) {
	testenv.OnlyAll(t)
	answers, lost := map[string]int{}, map[string]int{}
	for i := 0; i < *historyRounds && !t.Failed(); i++ {
		t.Run(fmt.Sprint("round ", i+1), func(t *testing.T) {
			h := newHistories(t)
			h.run(*historyFor, *historyKills)
			h.check()
			sum(answers, h.answers)
			sum(lost, h.lost)
		})
	}
	const many = 10 // rounds after which everything must have happened
	if *historyRounds < many || t.Failed() {
		return
	}
	for _, must := range []string{"beat store_unavailable", "verdict HEARTBEAT_TIMEOUT", "verdict START_TIMEOUT", "verdict CANCEL_TIMEOUT",
		"verdict WORKER_LOST"} {
		if answers[must] == 0 {
			t.Errorf("there was no %q in %d rounds: the histories prove little", must, *historyRounds)
		}
	}
	for _, script := range historyScripts {
		if lost[script] == 0 {
			t.Errorf("no reply of %s was lost in %d rounds", script, *historyRounds)
		}
	}
	t.Logf("in all: %s; replies lost: %s", inOrder(answers), inOrder(lost))
}

// historyScripts are those that change a task or return it, each of which must have run without its reply.
var historyScripts = []string{"beat", "cancel", "claim", "claimed", "complete", "create", "deliver", "due", "expire", "get", "next_attempt",
	"ready", "recover", "start", "timers"}

func sum(total, part map[string]int) {
	for name, n := range part {
		total[name] += n
	}
}

const (
	historyClients = 8
	historyTasks   = 8   // that clients act on concurrently
	historyOps     = 160 // on those, before the next ones follow
)

// histories records what is done to tasks.
type histories struct {
	*testing.T
	redis    *redistest.Server
	proxies  []*faultproxy.Proxy
	replicas []*tracker.Tracker
	scripts  map[string]string // names by SHA

	mu       sync.Mutex
	tasks    []*historyTask
	acted    int
	workers  []string
	claimed  map[string]string // worker by task and attempt, from the envelope
	lost     map[string]int    // replies lost on purpose, by script
	requests map[string]int    // and requests
	answers  map[string]int    // operations by kind and response
}

// historyTask is one task with the operations on it.
type historyTask struct {
	id    string
	queue bool

	mu       sync.Mutex
	attempts []*model.Attempt // those that a client has received, oldest first
	ops      []porcupine.Operation
	unknown  int // of these, those without a response
}

var historyRules = lifeRules{
	policy: model.RetryPolicy{MaxAttempts: 2, MaxLosses: 1, InitialBackoff: 20 * time.Millisecond, Multiplier: 1,
		MaxBackoff: 20 * time.Millisecond},
	beat: time.Second, start: 1200 * time.Millisecond, grace: 300 * time.Millisecond,
}

func newHistories(t *testing.T) *histories {
	t.Helper()
	h := &histories{
		T: t, scripts: map[string]string{}, claimed: map[string]string{},
		lost: map[string]int{}, requests: map[string]int{}, answers: map[string]int{},
	}
	// Every reply of Redis is synced to disk: a kill loses nothing that was acknowledged.
	h.redis = redistest.StartServer(t, "--appendonly", "yes", "--appendfsync", "always")
	for range 2 {
		p := faultproxy.Start(t, h.redis.Addr)
		h.proxies = append(h.proxies, p)
		h.replicas = append(h.replicas, trackertest.Open(t,
			tracker.Options{RedisURL: "redis://" + redistest.As(p.Addr) + "/0", Scripts: redistest.Scripts(), RedisTimeout: 500 * time.Millisecond,
				Shards: 2}))
	}
	set := h.replicas[0].Store.Scripts // for this deployment
	for _, name := range set.Names() {
		h.scripts[set.Get(name).SHA] = name
	}
	if err := h.replicas[0].Beats.Tick(); err != nil { // writes the event that later shows that the streams are complete
		t.Fatal(err)
	}
	return h
}

// run runs clients for a while, and causes all kinds of failures concurrently.
func (h *histories) run(d time.Duration, kills int) {
	ctx, stop := context.WithCancel(context.Background())
	var background sync.WaitGroup
	for _, r := range h.replicas {
		background.Go(func() { _ = r.Beats.KeepTime(ctx) })
		background.Go(func() { _ = sweep.NewSweeper(r.Sweeper, sweep.SweeperOptions{}).Run(ctx) })
	}
	h.hire(h.replicas[0])
	h.hire(h.replicas[1])
	h.deal()
	var working, failing sync.WaitGroup
	over := make(chan struct{})
	failing.Go(func() { h.misbehave(over, d, kills) })
	for _, p := range h.proxies {
		p.Intercept(h.decide)
	}
	for i := range historyClients {
		working.Go(func() {
			for {
				select {
				case <-over:
					return
				default:
					h.act(i)
				}
			}
		})
	}
	time.Sleep(d) // the length of the test, not a wait for something
	close(over)
	working.Wait()
	failing.Wait()
	for _, p := range h.proxies {
		p.Intercept(nil)
		p.Resume()
	}
	stop()
	background.Wait()
	for _, r := range h.replicas {
		for deadline := time.Now().Add(trackertest.Patience); r.Store.Ready(context.Background()) != nil && time.Now().Before(deadline); {
			<-time.After(20 * time.Millisecond)
		}
	}
	if n := h.lost[""] + h.requests[""]; n > 0 {
		h.Errorf("%d replies and requests of scripts were lost whose names are not known: what is lost on purpose is not what was meant", n)
	}
	for _, k := range h.tasks { // the final read
		h.get(0, h.replicas[0], k)
	}
}

// decide decides which requests and replies are lost: often at first for each script, so that none is left out.
func (h *histories) decide(request []byte) faultproxy.Action {
	at := bytes.Index(request, []byte("evalsha\r\n$40\r\n"))
	if at < 0 || len(request) < at+54 {
		return faultproxy.Pass
	}
	script := h.scripts[string(request[at+14:at+54])]
	h.mu.Lock()
	defer h.mu.Unlock()
	p := 0.004
	if h.lost[script] < 3 {
		p = 0.2
	}
	switch x := rand.Float64(); {
	case x < p:
		h.lost[script]++
		return faultproxy.LoseReply
	case x < p+0.002:
		h.requests[script]++
		return faultproxy.LoseRequest
	case x < p+0.004:
		h.requests[script]++
		return faultproxy.CutShort
	}
	return faultproxy.Pass
}

// misbehave injects failures of Redis and of the connections to it.
func (h *histories) misbehave(over <-chan struct{}, d time.Duration, kills int) {
	begun := time.Now()
	for killed := 0; ; {
		select {
		case <-over:
			return
		case <-time.After(time.Duration(50+rand.IntN(200)) * time.Millisecond):
		}
		pause := time.Duration(20+rand.IntN(700)) * time.Millisecond
		p := h.proxies[rand.IntN(len(h.proxies))]
		switch rand.IntN(5) {
		case 0:
			p.Pause()
			time.Sleep(pause) // length of the pause
			p.Resume()
		case 1:
			p.Cut()
		case 2:
			p.Refuse()
			time.Sleep(pause / 4) // how long it refuses connections
			p.Resume()
		case 3:
			if err := h.redis.Freeze(); err != nil {
				h.Error(err)
			}
			time.Sleep(pause) // how long Redis is frozen
			if err := h.redis.Thaw(); err != nil {
				h.Error(err)
			}
		}
		if kills > 0 && time.Since(begun) > d*time.Duration(killed+1)/time.Duration(kills+1) && killed < kills {
			killed++
			h.redis.Kill()
			if err := h.redis.Restart(); err != nil {
				h.Error(err)
				return
			}
		}
	}
}

func (h *histories) hire(r *tracker.Tracker) {
	n := model.NewWorker{Scope: trackertest.Scope, Queue: "q", Types: []string{"x"}, MaxConcurrent: 1000}
	if err := n.Validate(); err != nil {
		h.Fatal(err)
	}
	w, err := r.Workers.Register(context.Background(), n)
	if err != nil {
		if model.CodeOf(err) != model.Unavailable {
			h.Error(err)
		}
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.workers = append(h.workers, w.WorkerID)
}

// deal creates the next tasks to act on. The caller holds the lock, except for the first call.
func (h *histories) deal() {
	for range historyTasks {
		h.tasks = append(h.tasks, &historyTask{id: fmt.Sprintf("t%06d", len(h.tasks)), queue: len(h.tasks)%2 == 1})
	}
}

// choose returns a task to act on: mostly one of the newest, else one that sweepers may be handling, else any.
func (h *histories) choose() *historyTask {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.acted++; h.acted%historyOps == 0 {
		h.deal()
	}
	n := len(h.tasks)
	back := historyTasks
	switch x := rand.IntN(20); {
	case x == 0:
		back = n
	case x < 4:
		back = 24 * historyTasks
	}
	return h.tasks[n-1-rand.IntN(min(n, back))]
}
