package tracker_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/internal/redistest"
	"github.com/lubdub-io/lubdub/tracker"
)

// open gives a harness whose tracker has other options.
func withOptions(t *testing.T, change func(*tracker.Options), test func(h *harness)) {
	t.Helper()
	redistest.Each(t, func(t *testing.T, s *redistest.Store) {
		o := tracker.Options{RedisURL: s.URL, Scripts: s.Scripts, RedisTimeout: 10 * time.Second, Shards: 2, Logger: slog.New(slog.NewTextHandler(io.Discard, nil))}
		change(&o)
		tr, err := tracker.Open(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = tr.Close(context.Background()) })
		h := &harness{TB: t, Tracker: tr, store: s, ctx: context.Background(), sweeper: tracker.NewSweeper(tr, tracker.SweeperOptions{ID: "swp_test"})}
		h.tick()
		test(h)
	})
}

// A late worker's probe URL is asked before it is declared dead. An answer is not a beat: it helps three times.
func TestProbe(t *testing.T) {
	t.Parallel()
	var alive atomic.Bool
	var asked atomic.Int64
	withOptions(t, func(o *tracker.Options) {
		alive.Store(true)
		asked.Store(0)
		o.Probe = func(_ context.Context, url string) error {
			if url != "http://10.0.0.7/healthz" {
				t.Errorf("asked %s", url)
			}
			asked.Add(1)
			if alive.Load() {
				return nil
			}
			return errors.New("no answer")
		}
	}, func(h *harness) {
		probed := func(n *tracker.NewWorker) { n.ProbeURL = "http://10.0.0.7/healthz" }
		silent, mute := h.register(probed).WorkerID, h.register(func(n *tracker.NewWorker) { n.MachineID = "host-2" }).WorkerID
		h.advance(15 * time.Second)
		h.sweep()
		if asked.Load() != 1 {
			h.Fatalf("asked %d times when it was late", asked.Load())
		}
		h.advance(15 * time.Second)
		h.sweep() // asked again, 15 s after the first answer
		h.wantWorker(mute, tracker.Offline, tracker.WorkerStale)
		if w := h.wantWorker(silent, tracker.Online, ""); w.Liveness != tracker.Late || asked.Load() != 2 {
			h.Fatalf("%+v after %d", w, asked.Load())
		}
		h.advance(15 * time.Second)
		h.sweep()
		h.advance(15 * time.Second)
		h.sweep() // not asked a fourth time
		if asked.Load() != 3 {
			h.Fatalf("asked %d times", asked.Load())
		}
		h.wantWorker(silent, tracker.Online, "")
		h.advance(15 * time.Second)
		h.sweep()
		h.wantWorker(silent, tracker.Offline, tracker.WorkerStale)

		beating := h.register(probed).WorkerID
		for range 5 { // a beat starts the count anew
			h.advance(15 * time.Second)
			h.sweep()
			h.beatWorker(beating)
		}
		alive.Store(false)
		h.advance(20 * time.Second)
		h.sweep()
		h.wantWorker(beating, tracker.Online, "")
		h.advance(10 * time.Second)
		h.sweep()
		h.wantWorker(beating, tracker.Offline, tracker.WorkerStale)
	})
}

// More workers than the deployment's ceiling allows beat less often, and their timeouts keep their multiple.
func TestIntervalsStretchUnderLoad(t *testing.T) {
	t.Parallel()
	withOptions(t, func(o *tracker.Options) { o.MaxBeatsPerSecond = 1 }, func(h *harness) {
		var ids []string
		for range 10 {
			r := h.register()
			if r.Interval != 10*time.Second {
				h.Fatalf("%d workers: %v", len(ids), r.Interval)
			}
			ids = append(ids, r.WorkerID)
		}
		for range 30 {
			ids = append(ids, h.register().WorkerID)
		}
		r := h.register()
		if r.Interval > 41*time.Second || r.Interval < 36*time.Second || r.Timeout < 120*time.Second || r.Timeout > 123*time.Second {
			h.Fatalf("41 workers at one beat a second: %+v", r)
		}
		for range 2 {
			heard := h.beatWorker(ids[0])
			if heard.Interval > 41*time.Second || heard.Interval < 36*time.Second || heard.Timeout < 120*time.Second {
				h.Fatalf("%+v", heard)
			}
			h.advance(65 * time.Second)
		}
		h.sweep()
		h.wantWorker(ids[0], tracker.Online, "") // it was told to beat less often
		h.wantWorker(ids[1], tracker.Offline, tracker.WorkerStale)

		// Fewer workers beat more often again, in steps of a half, since the answer to a beat may be lost.
		if r := h.register(); r.Interval != 10*time.Second {
			h.Fatalf("%+v", r)
		}
		for _, most := range []time.Duration{63 * time.Second, 33 * time.Second, 30 * time.Second} {
			if heard := h.beatWorker(ids[0]); heard.Timeout > most || heard.Timeout < most-4*time.Second {
				h.Fatalf("%v: %+v", most, heard)
			}
		}
	})
}
