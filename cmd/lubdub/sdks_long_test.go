//go:build long

package main

import (
	"context"
	"flag"
	"fmt"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/bench/proc"
	"github.com/lubdub-io/lubdub/internal/redistest"
	"github.com/lubdub-io/lubdub/internal/sdkrunner"
	"github.com/lubdub-io/lubdub/sdk/go/client"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

var (
	sdkNames   = flag.String("sdks", "go", "SDKs that TestLongSDKs has work, with commas; all: those that have a runner")
	sdkWorkers = flag.Int("sdk-workers", 4, "worker processes of each SDK in TestLongSDKs, 4 or more")
	sdkHeld    = flag.Int("sdk-tasks", 20, "tasks of each SDK that TestLongSDKs has at work while something is out")
	sdkStrict  = flag.String("sdk-strict", "go,python,rust,typescript", "SDKs of which TestLongSDKs has crews with strict leases too")
	sdkBreak   = flag.String("sdk-break", "", "a fault that the Go runner of TestLongSDKs has, such as strict: the test must fail")
	sdkFor     = flag.Duration("sdk-for", 0, "TestLongSDKs continues with further rounds for so long")
)

// sdkTimeout is how long a worker may be silent.
const sdkTimeout = 3 * time.Second

// sdkStage is a deployment with workers of several SDKs.
type sdkStage struct {
	*testing.T
	redis    *redistest.Server
	listen   []string
	replicas []*running
	front    *sdkFront
	control  *client.Client
	enrol    string
	tasks    sdkTasks
	held     int // tasks that each group has at work while something is out
	groups   []sdkGroup
	workers  map[string][]*sdkWorker // by group
	past     []*sdkWorker            // who were killed

	mu  sync.Mutex
	ids []string
}

// Workers of all SDKs do their tasks while replicas are restarted and Redis is frozen for three timeouts: no worker is lost by that. Then
// some are killed, some stopped for longer than their timeout, some cut off: their tasks are found, with evidence, and done by others.
// Acknowledged results are kept, and no task is completed twice.
func TestLongSDKs(t *testing.T) {
	s := newSDKStage(t)
	stopFeeding := s.feed()
	began := time.Now()
	for round := 1; ; round++ {
		s.outages(round)
		s.deaths(round)
		if time.Since(began) >= *sdkFor {
			break
		}
	}
	stopFeeding()
	s.awaitAll()
	for _, workers := range s.workers {
		for _, w := range workers {
			if err := w.leave(); err != nil {
				t.Error(err)
			}
		}
	}
	s.check()
}

// filesOfACall are those that a call of a worker's takes in this process: two of its way, two of the front end.
const filesOfACall = 4

// heldByEach is how many tasks a group is to have at work: as many as the flag requests, and no more than may all call at once.
func (s *sdkStage) heldByEach() int {
	quarters := 0 // strict crews have a quarter, see part
	for _, of := range s.groups {
		if quarters++; !of.strict() {
			quarters += 3
		}
	}
	fit := proc.FileLimit() * 3 / filesOfACall / quarters
	if *sdkHeld > fit {
		s.Logf("a group has %d tasks at work instead of %d: this process may open %d files (ulimit -n)", fit, *sdkHeld, proc.FileLimit())
	}
	return min(*sdkHeld, fit)
}

func newSDKStage(t *testing.T) *sdkStage {
	s := &sdkStage{
		T: t, redis: redistest.StartServer(t), listen: []string{redistest.FreeAddr(), redistest.FreeAddr()}, workers: map[string][]*sdkWorker{},
		front: startFront(nil),
	}
	runners, err := sdkrunner.Find(*sdkNames, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range runners {
		s.groups = append(s.groups, sdkGroup{r, "patient"})
		if slices.Contains(strings.Split(*sdkStrict, ","), r.SDK) {
			s.groups = append(s.groups, sdkGroup{r, "strict"})
		}
	}
	s.held = s.heldByEach()
	s.tasks = sdkTasks{
		short: 200 * time.Millisecond, medium: 2 * sdkTimeout, long: 4 * sdkTimeout, concurrency: 10 + 2*s.held/max(1, *sdkWorkers),
	}
	t.Cleanup(s.front.Close)
	s.front.hosts = s.listen
	for i := range s.listen {
		s.replicas = append(s.replicas, s.replica(i))
	}
	if s.control, err = client.New(s.front.URL, client.Token(adminToken(t)), client.Tries(10)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.control.Close)
	code, token, stderr := command(withKey, "token", "--role", "enroll")
	if code != exitOK {
		t.Fatal(stderr)
	}
	s.enrol = strings.TrimSpace(token)
	for _, of := range s.groups {
		for i := range max(4, s.part(of, *sdkWorkers)) {
			s.workers[of.name()] = append(s.workers[of.name()], s.hire(of, fmt.Sprintf("%s-%d", of.name(), i)))
		}
	}
	return s
}

// part is a group's share of n: strict ones get few, since a few show what they must do.
func (s *sdkStage) part(of sdkGroup, n int) int {
	if of.strict() && n > 20 {
		return n / 4
	}
	return n
}

func (s *sdkStage) replica(i int) *running {
	r := launch(s.T, withKey, "serve", "--redis", s.redis.URL(), "--listen", s.listen[i], "--admin-listen", "127.0.0.1:0", "--shards", "4",
		"--public-url", publicURL, "--worker-heartbeat-interval", (sdkTimeout / 3).String(), "--redis-timeout", "1s", "--log-level", "warn")
	r.urls()
	return r
}

func (s *sdkStage) hire(of sdkGroup, name string) *sdkWorker {
	tasks := s.tasks
	tasks.concurrency = min(tasks.concurrency, s.part(of, s.held)-1) // else the worker that nothing happens to could hold all of them
	return startWorker(s.T, of, name, strings.TrimPrefix(s.front.URL, "http://"), s.enrol, tasks)
}

// create makes n tasks for each group, and returns their ids, and those of the patient ones.
func (s *sdkStage) create(n int, kind string) (ids, patient []string) {
	losses := 100
	for _, of := range s.groups {
		var made []string
		for left := s.part(of, n); left > 0; left -= 100 {
			var batch []v1.CreateTasksItem
			for range min(left, 100) {
				batch = append(batch, v1.CreateTasksItem{CreateTaskRequest: v1.CreateTaskRequest{
					Queue: of.name(), Type: kind, Retry: &v1.RetryPolicy{MaxLosses: &losses, MaxAttempts: &losses},
				}})
			}
			made = append(made, s.createAll(batch)...)
		}
		if ids = append(ids, made...); !of.strict() {
			patient = append(patient, made...)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ids = append(s.ids, ids...)
	return ids, patient
}

// createAll makes tasks, again what was not begun or not confirmed, and returns their ids.
func (s *sdkStage) createAll(batch []v1.CreateTasksItem) (ids []string) {
	for len(batch) > 0 {
		created, err := s.control.CreateTasks(context.Background(), batch)
		if client.MayRetry(err) {
			continue
		} else if err != nil {
			s.Errorf("tasks are not created: %v", err)
			return ids
		}
		var left []v1.CreateTasksItem
		for i, c := range created {
			switch {
			case c.Err == nil:
				ids = append(ids, c.Task.TaskID)
			case client.MayRetry(c.Err):
				left = append(left, batch[i])
			default:
				s.Errorf("a task is not created: %v", c.Err)
			}
		}
		if batch = left; len(left) > 0 {
			time.Sleep(100 * time.Millisecond) // between two tries
		}
	}
	return ids
}

// feed makes short tasks until stop is called.
func (s *sdkStage) feed() (stop func()) {
	ended, over := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(over)
		for {
			select {
			case <-ended:
				return
			case <-time.After(200 * time.Millisecond):
				s.create(3, "short")
			}
		}
	}()
	return sync.OnceFunc(func() { close(ended); <-over })
}

// more waits until so many completions more were acknowledged.
func (s *sdkStage) more(n int) {
	s.Helper()
	n += s.front.count()
	until(s.T, "work continues", func() bool { return s.front.count() >= n })
}

// begun waits until tasks have.
func (s *sdkStage) begun(ids []string) {
	s.Helper()
	for _, id := range ids {
		until(s.T, "a task has begun", func() bool {
			task, err := s.control.GetTask(context.Background(), id)
			return err == nil && task.State != v1.Queued && task.State != v1.Dispatched
		})
	}
}

// outages restarts replicas and freezes Redis: running tasks continue.
func (s *sdkStage) outages(round int) {
	delay := redistest.OwnDelay()
	all, held := s.create(s.held, "long")
	s.begun(all)
	for i, r := range s.replicas {
		r.signal(syscall.SIGTERM)
		if code := r.wait(); code != exitOK {
			s.Fatalf("a replica ended with %d: %s", code, r.errs)
		}
		s.replicas[i] = s.replica(i)
	}
	s.must(s.redis.Freeze())
	time.Sleep(3 * sdkTimeout) // which is the outage
	s.must(s.redis.Thaw())
	s.more(10 * len(s.groups))
	late := delay()
	for _, id := range held {
		var task *v1.Task
		until(s.T, "the task is done", func() (done bool) {
			var err error
			task, err = s.control.GetTask(context.Background(), id)
			return err == nil && task.State == v1.Succeeded
		})
		if task.Attempt != 1 && late < sdkTimeout/3 {
			s.Errorf("round %d: the outage has lost %s: %+v", round, id, task.History)
		}
	}
	s.Logf("round %d: %d tasks were at work in the outages", round, len(held))
}

func (s *sdkStage) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

// deaths kills the first worker of each group, stops the second for longer than its timeout, and cuts the third off for as long.
func (s *sdkStage) deaths(round int) {
	held, _ := s.create(s.held, "long") // so that they are still at work at the kill, on a busy machine too
	s.begun(held)
	for _, workers := range s.workers {
		workers[0].signal(syscall.SIGKILL)
		workers[1].signal(syscall.SIGSTOP)
		workers[2].way.Refuse()
	}
	time.Sleep(2 * sdkTimeout) // which is the silence
	for _, of := range s.groups {
		workers := s.workers[of.name()]
		workers[1].signal(syscall.SIGCONT)
		workers[2].way.Resume()
		<-workers[0].exited
		s.past = append(s.past, workers[0])
		workers[0] = s.hire(of, fmt.Sprintf("%s-0-%d", of.name(), round))
	}
	s.more(10 * len(s.groups))
}

// awaitAll waits until every task is done.
func (s *sdkStage) awaitAll() {
	for _, id := range s.ids {
		until(s.T, "every task is done", func() bool {
			task, err := s.control.GetTask(context.Background(), id)
			return err == nil && task.State == v1.Succeeded
		})
	}
}

// check holds what the store has against what was acknowledged.
func (s *sdkStage) check() {
	lost := map[string]int{}
	for _, id := range s.ids {
		task, err := s.control.GetTask(context.Background(), id)
		if err != nil {
			s.Fatal(err)
		}
		succeeded := 0
		for attempt, outcome := range s.front.acked[id] {
			if outcome != v1.OutcomeSucceeded {
				continue
			}
			succeeded++
			if task.State != v1.Succeeded || task.Attempt != attempt {
				s.Errorf("the completion of attempt %d of %s was acknowledged; the task is %s by attempt %d", attempt, id, task.State, task.Attempt)
			}
		}
		if succeeded != 1 {
			s.Errorf("%d attempts of %s were completed", succeeded, id)
		}
		for _, h := range task.History {
			switch {
			case h.Outcome == "SUCCEEDED":
			case h.Evidence == nil || h.Reason == nil:
				s.Errorf("attempt %d of %s has ended as %s without evidence: %+v", h.Attempt, id, h.Outcome, h)
			default:
				lost[*task.Queue+" "+*h.Reason]++
			}
		}
	}
	s.Logf("%d tasks, %d completions acknowledged; lost and recovered: %v", len(s.ids), s.front.count(), lost)
	if len(lost) < len(s.groups) {
		s.Error("the dead have lost nothing: nothing was at work")
	}
	s.checkStrict()
}
