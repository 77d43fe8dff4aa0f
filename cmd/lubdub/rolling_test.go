package main

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/internal/redistest"
	"github.com/lubdub-io/lubdub/sdk/go/client"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
	"github.com/lubdub-io/lubdub/sdk/go/worker"
)

// The deployments of deploy/, as processes: two API replicas behind haproxy or nginx, two sweepers, Redis. All replicas are restarted one
// after the other, as an update does it, under load, while a stream of events is read, a worker waits in long polls for a task that is
// not there yet, and another is draining with a task in its hands. Nothing is lost: no event, no task, no attempt, and the drain ends.
func TestRollingRestartsBehindBalancers(t *testing.T) {
	for name, balance := range map[string]func(*testing.T, string, ...string){"haproxy": hostBalancer, "nginx": composeBalancer} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			redis := redistest.StartServer(t, "--appendonly", "yes")
			address := redistest.FreeAddr()
			d := newDeployment(t, redis.URL(), "http://"+address)
			balance(t, address, d.urls...)
			l := newRestartLoad(t, &http.Client{
				Transport: &spread{hosts: []string{address}, RoundTripper: &http.Transport{MaxIdleConnsPerHost: 64}}, Timeout: 10 * time.Second,
			})
			l.pause = 5 * time.Millisecond
			b := newBystanders(t, d.public, l.admin)
			l.begin()
			b.beginDrain()
			for i := range d.replicas {
				l.awaitMore()
				d.restart(i)
			}
			l.awaitMore()
			b.endDrain()
			l.finish()
			b.finish(l.tasks)
			t.Logf("%d tasks, %d requests acknowledged, %d tried again after 503, %d after a closed connection; %d events", len(l.tasks),
				l.acknowledged.Load(), l.unavailable.Load(), l.closed.Load(), len(b.seen))
		})
	}
}

// deployment is what is restarted: API replicas and sweepers in turn.
type deployment struct {
	*testing.T
	redis, public string
	replicas      []*running
	admins        []string // listeners
	urls          []string // of the API replicas
}

func newDeployment(t *testing.T, redis, public string) *deployment {
	d := &deployment{T: t, redis: redis, public: public, replicas: make([]*running, 4), admins: make([]string, 4)}
	for i := range d.replicas {
		d.start(i, redistest.FreeAddr()) // where it comes back
	}
	return d
}

func (d *deployment) start(i int, listen string) {
	d.Helper()
	role := []string{"api", "sweeper"}[i%2]
	d.replicas[i] = launch(d.T, withKey, "serve", "--redis", d.redis, "--roles", role, "--listen", listen, "--admin-listen", "127.0.0.1:0",
		"--public-url", d.public, "--worker-heartbeat-interval", "5s", "--log-level", "warn", "--drain-delay", "2s",
		"--health-check-period", "2s")
	url, admin := d.replicas[i].urls()
	if d.admins[i] = admin; role == "api" && len(d.urls) <= i/2 {
		d.urls = append(d.urls, url)
	}
}

var taken = regexp.MustCompile(`(?m)^lubdub_http_requests_total\{.* [1-9]`)

// restart ends a replica, starts it again at the same address, and returns when it works again, as a rolling update waits for that.
func (d *deployment) restart(i int) {
	d.Helper()
	d.replicas[i].signal(syscall.SIGTERM)
	if code := d.replicas[i].wait(); code != exitOK {
		d.Fatalf("replica %d ended with %d: %s", i, code, d.replicas[i].errs)
	}
	if i%2 == 1 {
		d.start(i, "127.0.0.1:0")
		return
	}
	d.start(i, strings.TrimPrefix(d.urls[i/2], "http://"))
	until(d.T, "the balancer sends requests to it again", func() bool {
		_, metrics := request("GET", d.admins[i]+"/metrics", "", "")
		return taken.MatchString(metrics)
	})
}

// bystanders have something under way all the time: a stream of events, a long poll, a drain.
type bystanders struct {
	*testing.T

	ctx    context.Context
	stop   context.CancelFunc
	client *client.Client
	ended  sync.WaitGroup

	mu   sync.Mutex
	seen map[string]bool // tasks whose creation the stream has reported

	release chan struct{} // what the draining worker's task waits for
	drained string        // that worker
}

const (
	heldTask   = "in-the-hands-of-the-drained"
	polledTask = "comes-after-all-restarts"
)

func newBystanders(t *testing.T, base, token string) *bystanders {
	c, err := client.New(base, client.Token(token))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	b := &bystanders{T: t, ctx: ctx, stop: cancel, client: c, seen: map[string]bool{}, release: make(chan struct{})}
	t.Cleanup(func() { cancel(); b.ended.Wait(); c.Close() })
	stream := c.Events(client.EventQuery{Types: []string{"task.created"}, After: "now"})
	b.ended.Go(func() {
		for e, err := range stream.All(ctx) {
			if err != nil {
				t.Errorf("the stream of events: %v", err)
				return
			}
			b.mu.Lock()
			b.seen[e.Subject] = true
			b.mu.Unlock()
		}
	})
	b.work("drains", func(ctx context.Context, _ *worker.Task) (any, error) {
		select {
		case <-b.release:
			return nil, nil
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	})
	b.work("polls", func(context.Context, *worker.Task) (any, error) { return nil, nil })
	n := 0
	until(t, "the stream is open", func() bool {
		b.create(fmt.Sprintf("is-it-open-%d", n), "unserved")
		n++
		b.mu.Lock()
		defer b.mu.Unlock()
		return len(b.seen) > 0
	})
	return b
}

// work runs a worker of a queue, which must end without a word: when it is drained, or with the test.
func (b *bystanders) work(queue string, handler worker.Handler) {
	b.Helper()
	w, err := worker.New(b.client, queue, worker.Name(queue), worker.MachineID(queue), worker.StopWithin(long, 2*long),
		worker.Logger(slog.New(slog.DiscardHandler)))
	if err != nil {
		b.Fatal(err)
	}
	w.Handle("x", handler)
	b.ended.Go(func() {
		if err := w.Run(b.ctx); err != nil {
			b.Errorf("the worker of %s: %v", queue, err)
		}
	})
}

func (b *bystanders) create(id, queue string) {
	b.Helper()
	if _, err := b.client.CreateTask(b.ctx, v1.CreateTaskRequest{TaskID: id, Queue: queue, Type: "x"}); err != nil {
		b.Fatal(err)
	}
}

func (b *bystanders) await(what string, good func() (bool, error)) {
	b.Helper()
	var last error
	until(b.T, what, func() bool {
		ok, err := good()
		last = err
		return ok || b.Failed()
	})
	if last != nil {
		b.Error(last)
	}
}

// beginDrain drains a worker that has something to do.
func (b *bystanders) beginDrain() {
	b.Helper()
	b.create(heldTask, "drains")
	b.await("a worker holds its task", func() (bool, error) {
		task, err := b.client.GetTask(b.ctx, heldTask)
		if err != nil || task.State != v1.Running {
			return false, err
		}
		b.drained = *task.WorkerID
		return true, nil
	})
	if n, err := b.client.DrainMachine(b.ctx, "drains", v1.DrainRequest{}); err != nil || n.Matched != 1 {
		b.Errorf("%+v (%v)", n, err)
	}
}

// endDrain lets the worker finish what it has held all the time, and gives the one that polls something to do.
func (b *bystanders) endDrain() {
	b.Helper()
	w, err := b.client.GetWorker(b.ctx, b.drained)
	if err != nil || w.Status != v1.Draining || w.HeldCount != 1 {
		b.Errorf("the worker that drains is %+v (%v)", w, err)
	}
	close(b.release)
	b.create(polledTask, "polls")
	for _, id := range []string{heldTask, polledTask} {
		b.await(id+" is done", func() (bool, error) {
			task, err := b.client.GetTask(b.ctx, id)
			if err == nil && (task.Attempt > 1 || len(task.History) > 1) {
				b.Errorf("%s was lost: %+v", id, task)
			}
			return err == nil && task.State == v1.Succeeded, err
		})
	}
	b.await("the drained worker is offline", func() (bool, error) {
		w, err := b.client.GetWorker(b.ctx, b.drained)
		return err == nil && w.Status == v1.Offline, err
	})
}

// finish waits until the stream has reported every task, then ends all bystanders while there are replicas to answer them.
func (b *bystanders) finish(tasks map[string]promised) {
	b.Helper()
	b.await("the stream has every task", func() (bool, error) {
		b.mu.Lock()
		defer b.mu.Unlock()
		for id := range tasks {
			if !b.seen[id] {
				return false, nil
			}
		}
		return true, nil
	})
	b.stop()
	b.ended.Wait()
}
