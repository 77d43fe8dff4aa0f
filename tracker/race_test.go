package tracker

import (
	"context"
	"io"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/internal/redistest"
)

func openOn(t *testing.T, s *redistest.Store) *Tracker {
	t.Helper()
	tr, err := Open(t.Context(), Options{RedisURL: s.URL, Scripts: s.Scripts, RedisTimeout: 10 * time.Second, Shards: 1, Logger: slog.New(slog.NewTextHandler(io.Discard, nil))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tr.Close(context.Background()) })
	return tr
}

func startOne(t *testing.T, tr *Tracker, s *redistest.Store, id string) *Attempt {
	t.Helper()
	n := NewTask{Scope: Scope{"acme", "prod"}, TaskID: id, HeartbeatInterval: time.Second, HeartbeatTimeout: 2 * time.Second}
	if err := n.Validate(s.Clock.Now()); err != nil {
		t.Fatal(err)
	}
	c, err := tr.Create(t.Context(), n)
	if err != nil {
		t.Fatal(err)
	}
	b := &Beat{Attempt: c.Envelope.Attempt}
	if tr.Beat(b); b.Err != nil {
		t.Fatal(b.Err)
	}
	return b.Attempt
}

func advance(t *testing.T, tr *Tracker, s *redistest.Store, d time.Duration) {
	t.Helper()
	for ; d > 0; d -= 250 * time.Millisecond {
		s.Clock.Advance(250 * time.Millisecond)
		if err := tr.Tick(); err != nil {
			t.Fatal(err)
		}
	}
}

// A beat that arrives between find and take wins.
func TestBeatBetweenFindAndTake(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, s *redistest.Store) {
		tr := openOn(t, s)
		alive, dead := startOne(t, tr, s, "alive"), startOne(t, tr, s, "dead")
		advance(t, tr, s, 2500*time.Millisecond)
		sw := NewSweeper(tr, SweeperOptions{})
		n := tr.store.node(0)
		todo := []overdue{{shard: 0, kind: "expire", timeout: "2000"}}
		items, _, err := sw.find(n, todo)
		if err != nil || len(items) != 2 {
			t.Fatalf("%+v %v", items, err)
		}
		b := &Beat{Attempt: alive}
		if tr.Beat(b); b.Err != nil {
			t.Fatal(b.Err)
		}
		for i, want := range []int{1, 0} { // the second sweeper finds nothing left of the same list
			r, err := sw.take(n, items)
			if err != nil || r.Zombies != want {
				t.Fatalf("take %d: %+v %v", i, r, err)
			}
		}
		if task, err := tr.Get(t.Context(), alive.Scope, "alive"); err != nil || task.State != Running {
			t.Fatalf("the live one: %+v %v", task, err)
		}
		if task, err := tr.Get(t.Context(), dead.Scope, "dead"); err != nil || task.State != Failed {
			t.Fatalf("the dead one: %+v %v", task, err)
		}
	})
}

// Completers, beaters and several sweepers race over the same due attempts: each ends exactly once, with exactly
// one event.
func TestOneTransitionWins(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, s *redistest.Store) {
		tr := openOn(t, s)
		const tasks = 60
		attempts := make([]*Attempt, tasks)
		for i := range attempts {
			attempts[i] = startOne(t, tr, s, newID("t"))
		}
		advance(t, tr, s, 2250*time.Millisecond)
		var wg sync.WaitGroup
		completed := make([]bool, tasks)
		for range 4 {
			sw := NewSweeper(tr, SweeperOptions{})
			wg.Go(func() {
				for range 3 {
					if _, err := sw.RunOnce(context.Background()); err != nil {
						t.Error(err)
					}
				}
			})
		}
		for i, a := range attempts {
			wg.Go(func() {
				_, err := tr.Complete(context.Background(), a, Completion{Outcome: Succeeded})
				completed[i] = err == nil
				if err != nil && CodeOf(err) != AlreadyTerminal {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		ended := map[string]int{}
		events, err := s.Client.XRange(t.Context(), tr.store.keys[0].events, "-", "+").Result()
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range events {
			switch e.Values["type"] {
			case "task.succeeded", "task.failed":
				ended[e.Values["subject"].(string)+" "+e.Values["type"].(string)]++
			}
		}
		if len(ended) != tasks {
			t.Errorf("%d kinds of ends for %d tasks: %v", len(ended), tasks, ended)
		}
		for i, a := range attempts {
			want := map[bool]string{true: " task.succeeded", false: " task.failed"}[completed[i]]
			if ended[a.TaskID+want] != 1 {
				t.Errorf("%s: completed %v, ends %v", a.TaskID, completed[i], ended)
			}
		}
	})
}

// The replicas that keep time share the slots of each shard: in every slot exactly one has its turn.
func TestTurns(t *testing.T) {
	t.Parallel()
	s := redistest.Real(t)
	var trs []*Tracker
	for range 3 {
		trs = append(trs, openOn(t, s))
	}
	for range 2 { // the second round tells each of all
		for _, tr := range trs {
			if err := tr.Tick(); err != nil {
				t.Fatal(err)
			}
		}
	}
	base := time.UnixMilli(s.Clock.Now().UnixMilli())
	for slotNo := range 12 {
		turns := 0
		for _, tr := range trs {
			tr.keeper.skew.Store(0)
			tr.keeper.shards[0].last.Store(0)
			turns += len(tr.keeper.due(base.Add(time.Duration(slotNo) * slot)))
		}
		if turns != 1 {
			t.Errorf("slot %d has %d replicas", slotNo, turns)
		}
	}
}

// A flush in steady state allocates for go-redis only: a fixed number a flush, whatever number of beats it carries.
func TestFlushAllocations(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	s := redistest.Real(t, redistest.WallClock)
	tr := openOn(t, s)
	n := tr.store.node(0)
	b := newBatcher(tr, n)
	measure := func(beats int) float64 {
		batch := make([]*Beat, beats)
		nt := NewTask{Scope: Scope{"acme", "prod"}}
		if err := nt.Validate(time.Now()); err != nil {
			t.Fatal(err)
		}
		for i := range batch {
			c, err := tr.Create(t.Context(), nt)
			if err != nil {
				t.Fatal(err)
			}
			batch[i] = &Beat{Attempt: c.Envelope.Attempt, Report: "1768471200500\tw1\t10\t\"ten\""}
			if tr.Beat(batch[i]); batch[i].Err != nil {
				t.Fatal(batch[i].Err)
			}
		}
		return testing.AllocsPerRun(200, func() {
			w := newWaiter(beats)
			for _, beat := range batch {
				beat.wait = w
			}
			b.flush(batch)
			w.wait()
		})
	}
	few, many := measure(1), measure(100)
	if many > few+2 {
		t.Errorf("a flush of 1 beat allocates %v times, one of 100 %v times", few, many)
	}
}
