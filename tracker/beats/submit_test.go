package beats_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"sync"
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/internal/redistest"
	"github.com/lubdub-io/lubdub/internal/testenv"
	"github.com/lubdub-io/lubdub/tracker"
	"github.com/lubdub-io/lubdub/tracker/beats"
	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/trackertest"
)

// resultLog collects beats that have a result.
type resultLog struct {
	mu    sync.Mutex
	parts [][]*beats.Beat
	count map[*beats.Beat]int
	more  chan struct{}
}

func newResultLog() *resultLog {
	return &resultLog{count: map[*beats.Beat]int{}, more: make(chan struct{}, 1)}
}

func (l *resultLog) record(part []*beats.Beat) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.parts = append(l.parts, append([]*beats.Beat(nil), part...))
	for _, b := range part {
		l.count[b]++
	}
	select {
	case l.more <- struct{}{}:
	default:
	}
}

// await waits for the results of n beats.
func (l *resultLog) await(n int) {
	for {
		l.mu.Lock()
		recorded := len(l.count)
		l.mu.Unlock()
		if recorded >= n {
			return
		}
		<-l.more
	}
}

func (l *resultLog) onceEach(t testing.TB, beats []*beats.Beat) {
	t.Helper()
	for i, b := range beats {
		if l.count[b] != 1 {
			t.Errorf("beat %d was completed %d times", i, l.count[b])
		}
	}
}

func pointers(batch []beats.Beat) []*beats.Beat {
	all := make([]*beats.Beat, len(batch))
	for i := range batch {
		all[i] = &batch[i]
	}
	return all
}

// submitAll applies beats of one attempt, and waits until each has a result.
func submitAll(t testing.TB, tr *tracker.Tracker, a *model.Attempt, n int) []beats.Beat {
	t.Helper()
	beats := make([]beats.Beat, n)
	for i := range beats {
		beats[i].Attempt = a
	}
	l := newResultLog()
	tr.Beats.Submit(pointers(beats), l.record)
	l.await(n)
	l.onceEach(t, pointers(beats))
	return beats
}

// A beat has the same result whether its caller waits or passes a callback; beats with a result do not wait for those that need another
// round trip.
func TestSubmitGivesEachBeatItsResult(t *testing.T) {
	t.Parallel()
	trackertest.Contract(t, func(h *trackertest.Harness) {
		scene := func(prefix string) []beats.Beat {
			live := h.Running(func(n *model.NewTask) { n.TaskID = prefix + "live" })
			cancelled := h.Running(func(n *model.NewTask) { n.TaskID = prefix + "cancelled" })
			if _, err := h.Tasks.Cancel(h.Ctx, trackertest.Scope, prefix+"cancelled", model.CancelRequest{Reason: "enough"}); err != nil {
				h.Fatal(err)
			}
			unstarted := h.MustCreate(func(n *model.NewTask) { n.TaskID = prefix + "unstarted" }).Envelope.Attempt
			done := h.Running(func(n *model.NewTask) { n.TaskID = prefix + "done" })
			if _, err := h.Beats.Complete(h.Ctx, done, model.Completion{Outcome: model.Succeeded}); err != nil {
				h.Fatal(err)
			}
			other := *live
			other.Fence = "zzzz"
			return []beats.Beat{
				{Attempt: live, Report: "1768471200500\tw1\t10\t\"ten\""}, {Attempt: unstarted}, {Attempt: cancelled}, {Attempt: done},
				{Attempt: h.Beats.Attempt(other)}, {Attempt: live, Report: "\t\t20\t"}, {Attempt: live},
			}
		}
		waited, submitted := scene("w-"), scene("l-")
		for i := range waited {
			h.Beats.Beat(&waited[i])
		}
		l := newResultLog()
		for i := range submitted {
			submitted[i].Of = i
		}
		h.Beats.Submit(pointers(submitted), l.record)
		l.await(len(submitted))
		l.onceEach(h, pointers(submitted))
		for i := range submitted {
			w, b := &waited[i], &submitted[i]
			if !reflect.DeepEqual(w.Cancel, b.Cancel) || model.CodeOf(w.Err) != model.CodeOf(b.Err) || !w.At.Equal(b.At) || b.Of != i {
				h.Errorf("%s: %v %v %v, its caller waited: %v %v %v", b.Attempt.TaskID, b.At, b.Cancel, b.Err, w.At, w.Cancel, w.Err)
			}
		}
		if n := len(l.parts[0]); n != 4 && n != 3 { // the slow ones may come first
			h.Errorf("%d beats came first of %d, of which 3 are slow", n, len(submitted))
		}
		if p := h.MustGet("l-live").Progress; string(p.Pct) != "20" || string(p.Message) != `"ten"` {
			h.Errorf("progress is %+v", p)
		}
		h.WantState("l-unstarted", model.Running, "")
	})
}

// Beats that do not fit are refused at once, and all others are applied.
func TestAFullLaneReportsRefusedBeats(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, s *redistest.Store) {
		h := trackertest.NewHarness(t, s, func(o *tracker.Options) { o.MaxPendingBeats = 4 })
		a := h.Running(func(n *model.NewTask) { n.TaskID = "t1" })
		beats := submitAll(t, h.Tracker, a, 10)
		for i := range beats {
			want := model.Code("")
			if i >= 4 {
				want = model.Overloaded
			}
			if got := model.CodeOf(beats[i].Err); got != want {
				t.Errorf("beat %d: %q, want %q", i, got, want)
			}
		}
	})
}

// After a panic in the flush or in the explanation of slow beats, and after the end of the tracker, every beat still gets a result.
func TestSubmittedBeatsGetResultsAfterPanicsAndClose(t *testing.T) {
	t.Parallel()
	server := redistest.StartServer(t)
	for name, end := range map[string]func(tr *tracker.Tracker) error{
		"a bug in the flush": func(tr *tracker.Tracker) error {
			trackertest.After(tr, "beat", func() { panic("a bug of the test") })
			return nil
		},
		"the end": func(tr *tracker.Tracker) error { return tr.Close(t.Context()) },
	} {
		t.Run(name, func(t *testing.T) {
			tr := trackertest.Open(t, tracker.Options{RedisURL: server.URL(), RedisTimeout: 10 * time.Second})
			a := trackertest.NewTask(t, tr, "t"+fmt.Sprint(len(name)))
			if err := end(tr); err != nil {
				t.Fatal(err)
			}
			for _, b := range submitAll(t, tr, a, 5) {
				if code := model.CodeOf(b.Err); code != model.Unavailable {
					t.Errorf("%v", b.Err)
				}
			}
		})
	}
	t.Run("a bug where slow beats are explained", func(t *testing.T) {
		tr := trackertest.Open(t, tracker.Options{RedisURL: server.URL(), RedisTimeout: 10 * time.Second})
		l := newResultLog()
		b := &beats.Beat{} // without an attempt
		tr.Beats.StoreLater([]*beats.Beat{b}, l.record)
		l.await(1)
		if code := model.CodeOf(b.Err); code != model.Unavailable {
			t.Errorf("%v", b.Err)
		}
	})
}

// Beats of a node that does not respond delay no other node's in the same call; those that are refused in the end are refused with 503.
func TestSubmitAcrossSeveralNodes(t *testing.T) {
	t.Parallel()
	c := redistest.StartCluster(t, 3, 0, 30*time.Second)
	tr := trackertest.Open(t, tracker.Options{RedisURL: c.URL(), RedisTimeout: 4 * time.Second})
	beats := make([]beats.Beat, 60)
	owners := map[*redistest.Server]int{}
	of := make([]*redistest.Server, len(beats))
	for i := range beats {
		beats[i].Attempt = trackertest.NewTask(t, tr, fmt.Sprintf("t%d", i))
		if tr.Beats.Beat(&beats[i]); beats[i].Err != nil {
			t.Fatal(beats[i].Err)
		}
		owner, err := c.Owner(c.Slot(fmt.Sprint(beats[i].Attempt.Shard)), c.Servers[0])
		if err != nil {
			t.Fatal(err)
		}
		owners[owner]++
		of[i] = owner
	}
	if len(owners) != 3 {
		t.Fatalf("%d nodes", len(owners))
	}
	frozen := of[0]
	if err := frozen.Freeze(); err != nil {
		t.Fatal(err)
	}
	l := newResultLog()
	tr.Beats.Submit(pointers(beats), l.record)
	l.await(len(beats) - owners[frozen])
	l.mu.Lock()
	for i := range beats { // a beat must not be read before it has a result
		if n := l.count[&beats[i]]; (n == 1) == (of[i] == frozen) {
			t.Errorf("beat %d, of a frozen node: %v, was completed %d times", i, of[i] == frozen, n)
		}
	}
	l.mu.Unlock()
	l.await(len(beats))
	l.onceEach(t, pointers(beats))
	for i := range beats {
		if code := model.CodeOf(beats[i].Err); (code == model.Unavailable) != (of[i] == frozen) {
			t.Errorf("beat %d, of a frozen node: %v: %v", i, of[i] == frozen, beats[i].Err)
		}
	}
	if err := frozen.Thaw(); err != nil {
		t.Fatal(err)
	}
}

// Concurrent calls of Submit from many goroutines, with live beats and slow beats.
func TestConcurrentSubmits(t *testing.T) {
	t.Parallel()
	s := redistest.Real(t)
	h := trackertest.NewHarness(t, s)
	a := h.Running(func(n *model.NewTask) { n.TaskID = "t1" })
	ended := h.Running(func(n *model.NewTask) { n.TaskID = "t2" })
	if _, err := h.Beats.Complete(h.Ctx, ended, model.Completion{Outcome: model.Failed,
		Error: json.RawMessage(`{"category":"X"}`)}); err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for round := range 50 {
				beats := make([]beats.Beat, 1+round)
				for i := range beats {
					if beats[i].Attempt = a; (i+round)%7 == 0 {
						beats[i].Attempt = ended
					}
				}
				l := newResultLog()
				h.Beats.Submit(pointers(beats), l.record)
				l.await(len(beats))
				l.onceEach(t, pointers(beats))
				for i := range beats {
					if (beats[i].Err == nil) != (beats[i].Attempt == a) {
						t.Errorf("%s: %v", beats[i].Attempt.TaskID, beats[i].Err)
					}
				}
			}
		})
	}
	all.Wait()
}

// Submit does not allocate for each beat.
func TestSubmitAllocations(t *testing.T) {
	if testenv.Race {
		t.Skip("the race detector allocates, and lets pools forget")
	}
	s := redistest.Real(t, redistest.WallClock)
	tr := trackertest.OpenOn(t, s)
	measure := func(n int) float64 {
		batch := make([]beats.Beat, n)
		for i := range batch {
			batch[i].Attempt = trackertest.NewTask(t, tr, fmt.Sprintf("n%d-%d", n, i))
			batch[i].Report = "1768471200500\tw1\t10\t\"ten\""
			if tr.Beats.Beat(&batch[i]); batch[i].Err != nil {
				t.Fatal(batch[i].Err)
			}
		}
		all, round := pointers(batch), make([]*beats.Beat, n)
		counts := make(chan int, n)
		done := func(part []*beats.Beat) { counts <- len(part) }
		return testing.AllocsPerRun(200, func() {
			copy(round, all)
			tr.Beats.Submit(round, done)
			for left := n; left > 0; left -= <-counts {
			}
		})
	}
	few, many := measure(1), measure(100)
	if many > few+3 { // by go-redis
		t.Errorf("completing 1 beat allocates %v times, one of 100 %v times", few, many)
	}
}
