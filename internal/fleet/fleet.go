package fleet

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	v1 "github.com/lubdub-io/lubdub/api/v1"
)

// Options configure a Fleet. Zero fields mean the default that their comment names.
type Options struct {
	BaseURL string // of the API; required
	Token   string // a control token that may create, cancel and read tasks; required

	EnrollToken string // a control token that may register workers; empty: none are, and nothing is claimed
	KillTasks   int    // tasks that a worker holds when it is killed; 0: 40

	Tenant    string // scope of the fleet's tasks; empty: default
	Workspace string // empty: default
	RunID     string // the run that all of them belong to; empty: a random one

	Timeout  time.Duration // of the tasks' heartbeats; 0: drawn from 1, 1.5 and 2 s
	Rate     float64       // tasks started per second; 0: 5
	MaxLive  int           // tasks played at a time; 0: 64
	Bounds   Bounds        // of a right verdict; zero: DefaultBounds
	Patience time.Duration // how long after its due end a task is waited for before it counts as missed; 0: 5 s
	PlayTime time.Duration // longest play of one task, so that a dead server cannot hold the fleet; 0: 1 min

	Seed   uint64            // of everything drawn at random; 0: a random one
	Client *http.Client      // nil: one with a connection for each task
	Judged func(Verdict)     // called with each verdict, one at a time; nil: nobody
	Killed func(Kill)        // called when a killed worker's tasks have all ended; nil: nobody
	Only   func(string) bool // tells which behaviours are played; nil: all
}

// Fleet plays tasks against a server. Make it with New.
type Fleet struct {
	opts   Options
	wire   *wire
	tally  tally
	deck   deck
	judged sync.Mutex // one call of Options.Judged at a time
}

// New makes a fleet. It does nothing until Run.
func New(o Options) *Fleet {
	if o.Tenant == "" {
		o.Tenant = "default"
	}
	if o.Workspace == "" {
		o.Workspace = "default"
	}
	if o.Rate == 0 {
		o.Rate = 5
	}
	if o.MaxLive == 0 {
		o.MaxLive = 64
	}
	if o.Bounds == (Bounds{}) {
		o.Bounds = DefaultBounds
	}
	if o.KillTasks == 0 {
		o.KillTasks = 40
	}
	if o.Patience == 0 {
		o.Patience = 5 * time.Second
	}
	if o.PlayTime == 0 {
		o.PlayTime = time.Minute
	}
	if o.Seed == 0 {
		o.Seed = rand.Uint64()
	}
	if o.RunID == "" {
		o.RunID = fmt.Sprintf("fleet-%016x", rand.Uint64())
	}
	if o.Client == nil {
		transport := http.DefaultTransport.(*http.Transport).Clone()
		transport.Proxy = nil // a proxy on the way would be judged too
		transport.MaxIdleConnsPerHost = o.MaxLive
		o.Client = &http.Client{Transport: transport, Timeout: 5 * time.Second}
	}
	f := &Fleet{opts: o, wire: &wire{base: o.BaseURL, http: o.Client}}
	f.deck = deck{random: rand.New(rand.NewPCG(o.Seed, 0)), only: o.Only}
	f.tally.begin()
	return f
}

// RunID is the run that all tasks of the fleet belong to.
func (f *Fleet) RunID() string { return f.opts.RunID }

// Run starts tasks for a while, or until ctx ends when create is 0, then waits until each that was started has
// been judged. When ctx ends it stops at once and what is under way is not judged. The error is not nil when
// the fleet could not play: then what Summary says proves nothing.
func (f *Fleet) Run(ctx context.Context, create time.Duration) error {
	defer f.opts.Client.CloseIdleConnections()
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	var playing sync.WaitGroup
	playing.Go(func() {
		if err := f.crew(ctx, create); err != nil {
			fail(err)
		}
	})
	f.deal(ctx, create, func(p *play, b behaviour) {
		playing.Go(func() {
			if err := f.perform(ctx, p, b); err != nil {
				fail(err)
			}
		})
	})
	playing.Wait()
	var broken *cannotPlay
	if errors.As(context.Cause(ctx), &broken) {
		return broken
	}
	if ctx.Err() == nil && create > 0 {
		f.checkRun(ctx)
	}
	return nil
}

// deal hands out tasks at the fleet's rate, as long as fewer than MaxLive are played.
func (f *Fleet) deal(ctx context.Context, create time.Duration, begin func(*play, behaviour)) {
	var over <-chan time.Time
	if create > 0 {
		timer := time.NewTimer(create)
		defer timer.Stop()
		over = timer.C
	}
	ticker := time.NewTicker(time.Duration(float64(time.Second) / f.opts.Rate))
	defer ticker.Stop()
	for number := 0; ; number++ {
		if f.tally.playing.Load() < int64(f.opts.MaxLive) {
			f.tally.playing.Add(1)
			b, random := f.deck.draw()
			timeout := time.Duration(1000+500*random.IntN(3)) * time.Millisecond
			if f.opts.Timeout > 0 {
				timeout = f.opts.Timeout
			}
			begin(&play{fleet: f, random: random, timeout: timeout, number: number}, b)
		}
		select {
		case <-ctx.Done():
			return
		case <-over:
			return
		case <-ticker.C:
		}
	}
}

// cannotPlay is why a fleet gave up.
type cannotPlay struct{ why error }

func (c *cannotPlay) Error() string { return "the fleet cannot play: " + c.why.Error() }
func (c *cannotPlay) Unwrap() error { return c.why }

// perform plays one task, waits for its end and has it judged.
func (f *Fleet) perform(ctx context.Context, p *play, b behaviour) error {
	defer f.tally.playing.Add(-1)
	limited, cancel := context.WithTimeout(ctx, f.opts.PlayTime)
	defer cancel()
	err := b.play(limited, p)
	switch {
	case ctx.Err() != nil:
		return nil // abandoned, and nobody asks any more
	case err != nil && p.task == "":
		return &cannotPlay{fmt.Errorf("creating a task: %w", err)}
	case err != nil:
		p.complainf("in the middle of its script: %v", err)
		for _, w := range p.workers {
			w.lateBy(time.Now()) // what held its script up may have kept it silent too
		}
		p.verdictDue = time.Time{}
	}
	last, cancel := context.WithTimeout(ctx, 2*f.opts.Patience+f.opts.PlayTime)
	defer cancel()
	seen, err := p.settle(last)
	if err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return &cannotPlay{fmt.Errorf("reading a task back: %w", err)}
	}
	v := f.opts.Bounds.Judge(p.expect, seen)
	v.TaskID, v.Behaviour = p.task, b.name
	f.tally.add(v)
	f.publish(v)
	return nil
}

func (f *Fleet) publish(v Verdict) {
	if f.opts.Judged == nil {
		return
	}
	f.judged.Lock()
	defer f.judged.Unlock()
	f.opts.Judged(v)
}

// checkRun holds the server's own count of the run against the fleet's: no task may be lost or there twice.
func (f *Fleet) checkRun(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, f.opts.Patience)
	defer cancel()
	have := f.tally.snapshot()
	var run v1.Run
	v := Verdict{Behaviour: "count of the run", TaskID: f.opts.RunID}
	if err := f.control(ctx, http.MethodGet, "/v1/runs/"+f.opts.RunID, nil, &run); err != nil {
		v.wrongf("the run cannot be read: %v", err)
	}
	for _, c := range []struct {
		state v1.State
		want  int
	}{{v1.Succeeded, have.Succeeded}, {v1.Failed, have.Failed}, {v1.Cancelled, have.Cancelled}} {
		if len(v.Wrong) == 0 && run.Counts[c.state] != c.want {
			v.wrongf("the run counts %d tasks as %s, and the tasks themselves are %d", run.Counts[c.state], c.state, c.want)
		}
	}
	if len(v.Wrong) == 0 && run.TotalCount != have.Created {
		v.wrongf("the run counts %d tasks, and %d were created", run.TotalCount, have.Created)
	}
	if len(v.Wrong) > 0 {
		f.tally.complain(v)
		f.publish(v)
	}
}

// deck deals behaviours in their proportions: every card once before any comes again, so that a short show has
// them all too.
type deck struct {
	random *rand.Rand
	only   func(string) bool
	cards  []behaviour
}

// draw gives a behaviour and a source of randomness of its own, so that what one task draws does not depend on
// how the others ran.
func (d *deck) draw() (behaviour, *rand.Rand) {
	if len(d.cards) == 0 {
		for _, b := range behaviours {
			for range b.cards {
				if d.only == nil || d.only(b.name) {
					d.cards = append(d.cards, b)
				}
			}
		}
		d.random.Shuffle(len(d.cards), func(i, j int) { d.cards[i], d.cards[j] = d.cards[j], d.cards[i] })
	}
	b := d.cards[0]
	d.cards = d.cards[1:]
	return b, rand.New(rand.NewPCG(d.random.Uint64(), d.random.Uint64()))
}
