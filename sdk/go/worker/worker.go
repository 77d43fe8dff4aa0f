package worker

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/signal"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/lubdub-io/lubdub/sdk/go/client"
	"github.com/lubdub-io/lubdub/sdk/go/internal/beats"
	"github.com/lubdub-io/lubdub/sdk/go/internal/clock"
)

// Worker claims tasks and runs them. Handlers are added before it runs; it runs once.
type Worker struct {
	client   *client.Client
	own      bool // the worker created the client
	queue    string
	set      *settings
	clock    clock.Clock
	handlers handlers
	probeURL string
	name     string // set once it runs

	stopping context.Context // ends when the worker is to stop
	stop     context.CancelFunc
	life     context.Context // ends with Run; completions are retried until then
	leave    context.CancelFunc
	hard     chan struct{} // closed at the hard stop
	hardOnce sync.Once
	ran      atomic.Bool
	awake    atomic.Int64 // when the beats were last checked, in ns since the epoch

	joining chan struct{} // contains one element while a goroutine registers again

	mu         sync.Mutex
	waiters    waiters
	session    *session
	entering   []time.Time // registrations of the last minute
	jobs       map[*job]struct{}
	completing int  // of these, how many are being completed
	claiming   int  // places that a claim under way may take
	paused     bool // its machine was drained when it registered, and has not been resumed
	draining   bool
	drainBy    time.Time         // when other workers get the tasks that are still held; zero: unknown
	gaveBack   bool              // held tasks are given back: none is begun or completed any more
	kept       []*client.Attempt // attempts that have ended and are not completed, since the worker stops
	cut        []string          // tasks whose completion was not answered when the worker stopped
	fatal      error
	held       bool // an operator has taken it offline: nothing more is sent
	outage     outage

	// For beats.
	wake      chan struct{}
	inventory map[string]*entry   // by task and attempt
	ending    map[string]*leaving // attempts that were held and are being completed
	free      sync.Cond           // signals that no beat is under way
	beating   bool                // a beat is being sent, or its answer applied
	inFlight  bool                // its requests are under way
	beats     int64               // how many were sent
	body      []byte              // of the beat under way
	pace      pace
	totals    totals
	over      bool // no more beats
}

// New creates a worker for a queue. If c is nil, it uses client.New(""), which is configured by the environment.
func New(c *client.Client, queue string, opts ...Option) (*Worker, error) {
	set := defaults()
	for _, opt := range opts {
		if err := opt(set); err != nil {
			return nil, err
		}
	}
	if queue == "" {
		return nil, errors.New("worker: no queue: name the one to claim from, such as \"default\"")
	}
	if err := set.decideStops(); err != nil {
		return nil, err
	}
	own := c == nil
	if own {
		made, err := client.New("")
		if err != nil {
			return nil, err
		}
		c = made
	}
	w := &Worker{
		client: c, own: own, queue: queue, set: set, clock: beats.Client.Clock(c),
		handlers: handlers{byType: map[string]Handler{}}, hard: make(chan struct{}),
		jobs: map[*job]struct{}{}, joining: make(chan struct{}, 1),
		inventory: map[string]*entry{}, ending: map[string]*leaving{}, wake: make(chan struct{}, 1),
	}
	w.free.L = &w.mu
	w.stopping, w.stop = context.WithCancel(context.Background())
	w.life, w.leave = context.WithCancel(context.Background())
	return w, nil
}

// Handle adds the handler of a type. Run returns an error if the handler is invalid. Handle must not be called after Run: the worker then
// stops gracefully with an error.
func (w *Worker) Handle(taskType string, h Handler) {
	if w.ran.Load() {
		w.fail(fmt.Errorf("worker: Handle(%q) was called after Run; add all handlers before", taskType))
		return
	}
	w.handlers.add(taskType, h)
}

// HandleDefault adds the default handler, which runs the tasks that have no type. A worker without one does not claim them.
func (w *Worker) HandleDefault(h Handler) {
	if w.ran.Load() {
		w.fail(errors.New("worker: HandleDefault was called after Run; add all handlers before"))
		return
	}
	w.handlers.addFallback(h)
}

// Use wraps all handlers, the first outermost.
func (w *Worker) Use(m ...Middleware) { w.handlers.wraps = append(w.handlers.wraps, m...) }

// types returns the types to claim.
func (w *Worker) types() []string {
	if len(w.set.types) > 0 {
		return w.set.types
	}
	return slices.Sorted(maps.Keys(w.handlers.byType))
}

// WorkerID returns the id of the newest registration; empty before the first.
func (w *Worker) WorkerID() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.session == nil {
		return ""
	}
	return w.session.id
}

// Registered reports whether the worker has registered and has not left.
func (w *Worker) Registered() bool { return w.WorkerID() != "" }

// ActiveCount returns how many tasks are running.
func (w *Worker) ActiveCount() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.jobs)
}

// Close begins a graceful stop; Run returns when it is complete. Kill shortens it.
func (w *Worker) Close() { w.stop() }

// Kill stops the worker now: running tasks are given back.
func (w *Worker) Kill() {
	w.stop()
	w.hardOnce.Do(func() { close(w.hard) })
}

// RunUntilSignal runs until SIGTERM or SIGINT, and then stops gracefully; a second signal has the effect of Kill.
func (w *Worker) RunUntilSignal() error {
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	defer signal.Stop(signals)
	ended := make(chan struct{})
	defer close(ended)
	go func() {
		for _, act := range []func(){w.Close, w.Kill} {
			select {
			case s := <-signals:
				name := map[os.Signal]string{syscall.SIGTERM: "SIGTERM", syscall.SIGINT: "SIGINT"}[s]
				w.set.log.Info("Received " + name + " signal")
				act()
			case <-ended:
				return
			}
		}
	}()
	return w.Run(context.Background())
}

// Run registers and runs tasks until ctx ends, Close is called, or the server drains the worker; then it stops gracefully: it claims
// nothing more, continues to beat while handlers finish, cancels them at the soft stop, gives back unfinished tasks at the hard stop, and
// deregisters. It returns what is wrong with the worker, why the server refuses it, or, as an *Unfinished, which tasks were given
// back.
func (w *Worker) Run(ctx context.Context) error {
	if w.ran.Swap(true) {
		return errors.New("worker: it has run already; make another one with New")
	}
	if w.own {
		defer w.client.Close()
	}
	if err := w.handlers.check(w.types()); err != nil {
		return err
	}
	name, forget := w.nameInProcess()
	w.name = name
	defer forget()
	defer context.AfterFunc(ctx, w.stop)()
	defer w.stop()
	defer w.leave()
	closeProbe, err := w.listen()
	if err != nil {
		return err
	}
	defer closeProbe()
	if err := w.register(w.stopping); err != nil {
		if w.stopping.Err() != nil {
			return nil // before it began
		}
		if refused := refusalOf("", err); refused != nil {
			return refused
		}
		return err
	}
	doing, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	var loops sync.WaitGroup
	loops.Add(2)
	go func() {
		defer loops.Done()
		w.keepBeating()
	}()
	claims, endClaims := context.WithCancel(context.Background())
	defer endClaims()
	go func() {
		defer loops.Done()
		w.keepClaiming(claims, doing)
	}()
	w.await(func() bool { return w.stopping.Err() != nil || w.draining || w.fatal != nil }, w.stopping.Done(), nil)
	w.finish(cancel, endClaims)
	w.stop() // in case the server ended the worker while a goroutine registers again
	endClaims()
	w.endBeats()
	loops.Wait()
	return w.depart()
}

// await waits until a condition holds, which is checked under the mutex after each change, and acts at most once when it does; it
// reports false if one of the channels, which may be nil, was closed before.
func (w *Worker) await(holds func() bool, over, late <-chan struct{}) bool {
	w.mu.Lock()
	if holds() {
		w.mu.Unlock()
		return true
	}
	one := w.waiters.add(holds)
	w.mu.Unlock()
	select {
	case <-one.met:
		return true
	case <-over:
	case <-late:
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return !w.waiters.remove(one) // the condition held at the same time
}
