package fleet

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	"github.com/lubdub-io/lubdub/sdk/go/client"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

// Options configure a Fleet. Zero fields mean the default given with the field.
type Options struct {
	BaseURL string // of the API; required
	Token   string // a control token that may create, cancel and read tasks; required

	EnrollToken string // a control token that may register workers; empty: no worker registers, and nothing is claimed
	KillTasks   int    // tasks that a worker holds when it is killed; 0: 40

	Tenant    string // scope of the fleet's tasks; empty: default
	Workspace string // empty: default
	RunID     string // the run of all its tasks; empty: a random one

	Timeout  time.Duration // of the tasks' heartbeats; 0: drawn from 1, 1.5 and 2 s
	Rate     float64       // tasks started per second; 0: 5
	MaxLive  int           // tasks played at a time; 0: 64
	Bounds   Bounds        // for a correct verdict; zero: DefaultBounds
	Patience time.Duration // how long after its due end a task is waited for before it counts as missed; 0: 5 s
	PlayTime time.Duration // longest play of one task, so that a dead server cannot block the fleet; 0: 1 min

	Seed      uint64            // of all random choices; 0: a random one
	Client    *http.Client      // nil: one with a connection for each task
	OnVerdict func(Verdict)     // called with each verdict, one at a time; nil: not called
	OnKill    func(Kill)        // called when a killed worker's tasks have all ended; nil: not called
	OnMishap  func(string)      // called with each mishap, in words; nil: not called
	Only      func(string) bool // reports whether a behaviour is played; nil: all are
}

// Fleet plays tasks against a server. Create it with New.
type Fleet struct {
	opts       Options
	api        *client.Client // with the fleet's own token
	enrol      *client.Client // with the token that registers workers
	wrong      error          // why the clients could not be created
	tally      tally
	deck       deck
	delays     delays
	callbackMu sync.Mutex // serializes calls of the functions in Options
}

// New creates a fleet. It does nothing until Run.
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
	f := &Fleet{opts: o}
	f.api, f.wrong = o.connect(o.Token)
	if f.wrong == nil {
		f.enrol, f.wrong = o.connect(o.EnrollToken)
	}
	f.deck = deck{random: rand.New(rand.NewPCG(o.Seed, 0)), only: o.Only}
	f.delays.threads = threadTimes
	f.tally.begin()
	return f
}

// RunID returns the run of all tasks of the fleet.
func (f *Fleet) RunID() string { return f.opts.RunID }

// Run starts tasks for the given time, or until ctx ends if create is 0, then waits until each started task has been judged. When ctx ends
// it stops immediately, and tasks under way are not judged. Nothing else ends it: mishaps are logged and counted, and Summary.Check
// reports whether the run proves anything.
func (f *Fleet) Run(ctx context.Context, create time.Duration) {
	if f.wrong != nil {
		f.blame("the fleet", "", "%v", f.wrong)
		return
	}
	defer f.opts.Client.CloseIdleConnections()
	measured, stop := context.WithCancel(ctx)
	var measuring, playing sync.WaitGroup
	measuring.Go(func() { f.delays.measure(measured) })
	playing.Go(func() { f.pool(ctx, create) })
	f.deal(ctx, create, func(p *play, b behaviour) {
		playing.Go(func() { f.perform(ctx, p, b) })
	})
	playing.Wait()
	if ctx.Err() == nil && create > 0 {
		f.checkRun(ctx)
	}
	stop()
	measuring.Wait()
}

// deal starts plays at the fleet's rate, as long as fewer than MaxLive are under way.
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

// perform plays one task, waits for its end and has it judged.
func (f *Fleet) perform(ctx context.Context, p *play, b behaviour) {
	defer f.tally.playing.Add(-1)
	limited, cancel := context.WithTimeout(ctx, f.opts.PlayTime)
	defer cancel()
	err := b.play(limited, p)
	switch {
	case ctx.Err() != nil:
		return // abandoned, so its result is not judged
	case err != nil && p.task == "":
		f.callFailed("creating a task", err)
		return
	case again(err):
		f.evaluate(p, b.name, Seen{Unread: fmt.Sprintf("its script could not be played to its end: %v", err)})
		return
	case err != nil:
		p.complainf("in the middle of its script: %v", err)
		for _, r := range p.runners {
			r.recordSilence(time.Now()) // whatever delayed its script may have kept it silent too
		}
		p.verdictDue = time.Time{}
	}
	if seen, err := p.settle(ctx); err == nil {
		f.evaluate(p, b.name, seen)
	}
}

// evaluate compares a task's result with the expected one, counts it and reports it.
func (f *Fleet) evaluate(p *play, behaviour string, seen Seen) Verdict {
	v := f.opts.Bounds.Evaluate(p.expect, seen)
	v.TaskID, v.Behaviour = p.task, behaviour
	f.tally.add(v)
	f.publish(v)
	return v
}

// callFailed records a call that failed; the run continues. A missing response, or one that requests a retry, proves nothing; any other
// response is Lubdub's fault.
func (f *Fleet) callFailed(what string, err error) {
	if again(err) {
		f.reportMishap(fmt.Sprintf("%s: %v", what, err))
		return
	}
	f.blame(what, "", "%v", err)
}

// reportMishap reports a mishap that proves nothing for or against Lubdub.
func (f *Fleet) reportMishap(text string) {
	f.tally.mishaps.Add(1)
	if f.opts.OnMishap != nil {
		f.callbackMu.Lock()
		defer f.callbackMu.Unlock()
		f.opts.OnMishap(text)
	}
}

// blame counts and reports an error of Lubdub that is not a verdict about a task.
func (f *Fleet) blame(what, id, format string, args ...any) {
	v := Verdict{Behaviour: what, TaskID: id}
	v.wrongf(format, args...)
	f.tally.complain(v)
	f.publish(v)
}

func (f *Fleet) publish(v Verdict) {
	if f.opts.OnVerdict == nil {
		return
	}
	f.callbackMu.Lock()
	defer f.callbackMu.Unlock()
	f.opts.OnVerdict(v)
}

// checkRun compares the server's count of the run with the fleet's: no task may be lost or exist twice. Tasks that a mishap left in
// doubt may be counted or not.
func (f *Fleet) checkRun(ctx context.Context) {
	const what = "count of the run"
	limited, cancel := context.WithTimeout(ctx, f.opts.Patience)
	defer cancel()
	have := f.tally.snapshot()
	var run *v1.Run
	if err := f.control(limited, func() (err error) {
		run, err = f.api.GetRun(limited, f.opts.RunID)
		return err
	}); err != nil {
		if ctx.Err() == nil {
			f.callFailed(what, err)
		}
		return
	}
	unknown := have.Unfinished + have.Mishaps
	for _, c := range []struct {
		what string
		has  int
		want int
	}{
		{"tasks as SUCCEEDED", run.Counts[v1.Succeeded], have.Succeeded}, {"tasks as FAILED", run.Counts[v1.Failed], have.Failed},
		{"tasks as CANCELLED", run.Counts[v1.Cancelled], have.Cancelled}, {"tasks", run.TotalCount, have.Created},
	} {
		if c.has < c.want || c.has > c.want+unknown {
			f.blame(what, f.opts.RunID, "the run counts %d %s, and should count %d", c.has, c.what, c.want)
			return
		}
	}
}

// deck deals behaviours in their proportions: every card once before any is repeated, so that a short run also plays them all.
type deck struct {
	random *rand.Rand
	only   func(string) bool
	cards  []behaviour
}

// draw returns a behaviour and its own source of randomness, so that what one task draws does not depend on the timing of others.
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
