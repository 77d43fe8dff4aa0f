package conformance

import (
	"errors"
	"fmt"
	"net/http"
	"time"
)

// do does one thing of the script.
func (p *play) do(d Deed) error {
	switch {
	case d.Await != nil:
		return p.awaitFor(d.Await)
	case d.Release != "":
		return p.process.write(map[string]string{"do": "release", "gate": d.Release})
	case d.Close:
		return p.process.write(map[string]string{"do": "close"})
	case d.Signal != "":
		return p.process.cmd.Process.Signal(signals[d.Signal])
	case d.Sleep > 0: // an outage lasts that long at least
		select {
		case <-time.After(time.Duration(d.Sleep) * time.Millisecond):
			return nil
		case <-p.process.ended:
			return errors.New("the runner has ended")
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	defer p.change()
	switch {
	case d.Answer != nil:
		rule := *d.Answer // which is used up
		p.rules = append(p.rules, &rule)
	case d.Clear:
		p.rules = nil
	case d.Cancel != nil:
		t := p.tasks[d.Cancel.Task]
		t.cancelled, t.why = true, d.Cancel.Reason
	case d.End != nil:
		p.tasks[d.End.Task].ending = d.End
	case d.Lose != nil:
		t := p.tasks[d.Lose.Task]
		t.ending, t.lost = d.Lose, true
	case d.Forget:
		p.workers[p.current].refusedWith = http.StatusNotFound
	case d.Offline:
		p.workers[p.current].refusedWith = http.StatusGone
	case d.Hold:
		p.workers[p.current].refusedWith, p.workers[p.current].why = http.StatusGone, "FORCED_OFFLINE"
		p.held = true
	case d.Resume:
		p.drained = false
	case d.Drain:
		p.draining = true
	case d.Interval > 0:
		p.interval = d.Interval
	case d.Renew == "worker":
		p.workers[p.current].renew = true
	case d.Renew != "":
		p.tasks[d.Renew].renew = true
	case d.Rotate:
		p.control++
		return p.writeToken()
	case d.Enqueue != "":
		p.queue = append(p.queue, d.Enqueue)
	default:
		return errors.New("it has no instruction")
	}
	return nil
}

func (p *play) awaitFor(w *Wait) error {
	if w.Accepted != "" { // a worker lists what it has claimed from before it begins
		if err := p.awaitFor(&Wait{Event: "begun", Task: w.Accepted}); err != nil {
			return err
		}
	}
	count := p.counter(w)
	want := max(1, w.Times)
	if w.More > 0 {
		want = count() + w.More
	}
	if !p.await(func() bool { return count() >= want }) {
		return fmt.Errorf("it did not come to this: %+v; %d of %d", *w, count(), want)
	}
	return nil
}

// counter counts what a wait is for.
func (p *play) counter(w *Wait) func() int {
	locked := func(f func() int) func() int {
		return func() int {
			p.mu.Lock()
			defer p.mu.Unlock()
			return f()
		}
	}
	switch {
	case w.Call != "":
		return locked(func() (n int) {
			for _, x := range p.exchanges {
				if x.call == w.Call && (w.Task == "" || x.task == w.Task) {
					n++
				}
			}
			return n
		})
	case w.Accepted != "":
		return locked(func() int { return p.tasks[w.Accepted].accepted })
	case w.Counted != nil:
		return locked(func() int {
			if p.counted.completed >= w.Counted.Completed && p.counted.failed >= w.Counted.Failed {
				return 1
			}
			return 0
		})
	}
	return func() int { return len(p.process.seen(w.Event, w.Task, w.Reason)) }
}
