package sweep_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/internal/redistest"
	"github.com/lubdub-io/lubdub/tracker"
	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/sweep"
	"github.com/lubdub-io/lubdub/tracker/trackertest"
)

// withOptions runs a test with a harness whose tracker has changed options.
func withOptions(t *testing.T, change func(*tracker.Options), test func(h *trackertest.Harness)) {
	t.Helper()
	redistest.Each(t, func(t *testing.T, s *redistest.Store) {
		o := tracker.Options{RedisURL: s.URL, Scripts: s.Scripts, RedisTimeout: 10 * time.Second, Shards: 2,
			Logger: slog.New(slog.NewTextHandler(io.Discard, nil))}
		change(&o)
		tr, err := tracker.Open(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = tr.Close(context.Background()) })
		h := &trackertest.Harness{TB: t, Tracker: tr, Store: s, Ctx: context.Background(),
			Sweeper: sweep.NewSweeper(tr.Sweeper, sweep.SweeperOptions{ID: "swp_test"})}
		h.MustTick()
		test(h)
	})
}

// The probe URL of a late worker is requested before the worker is declared dead. A response is not a heartbeat: it postpones the
// verdict at most three times.
func TestProbe(t *testing.T) {
	t.Parallel()
	var alive atomic.Bool
	var requests atomic.Int64
	withOptions(t, func(o *tracker.Options) {
		alive.Store(true)
		requests.Store(0)
		o.Probe = func(_ context.Context, url string) error {
			if url != "http://10.0.0.7/healthz" {
				t.Errorf("probed %s", url)
			}
			requests.Add(1)
			if alive.Load() {
				return nil
			}
			return errors.New("no answer")
		}
	}, func(h *trackertest.Harness) {
		probed := func(n *model.NewWorker) { n.ProbeURL = "http://10.0.0.7/healthz" }
		silent, mute := h.MustRegister(probed).WorkerID, h.MustRegister(func(n *model.NewWorker) { n.MachineID = "host-2" }).WorkerID
		h.Advance(15 * time.Second)
		h.MustSweep()
		if requests.Load() != 1 {
			h.Fatalf("probed %d times when it was late", requests.Load())
		}
		h.Advance(15 * time.Second)
		h.MustSweep() // probed again, 15 s after the first response
		h.WantWorker(mute, model.Offline, model.WorkerStale)
		if w := h.WantWorker(silent, model.Online, ""); w.Liveness != model.Late || requests.Load() != 2 {
			h.Fatalf("%+v after %d", w, requests.Load())
		}
		h.Advance(15 * time.Second)
		h.MustSweep()
		h.Advance(15 * time.Second)
		h.MustSweep() // not probed a fourth time
		if requests.Load() != 3 {
			h.Fatalf("probed %d times", requests.Load())
		}
		h.WantWorker(silent, model.Online, "")
		h.Advance(15 * time.Second)
		h.MustSweep()
		h.WantWorker(silent, model.Offline, model.WorkerStale)

		beating := h.MustRegister(probed).WorkerID
		for range 5 { // a heartbeat resets the count
			h.Advance(15 * time.Second)
			h.MustSweep()
			h.MustBeatWorker(beating)
		}
		alive.Store(false)
		h.Advance(20 * time.Second)
		h.MustSweep()
		h.WantWorker(beating, model.Online, "")
		h.Advance(10 * time.Second)
		h.MustSweep()
		h.WantWorker(beating, model.Offline, model.WorkerStale)
	})
}

// The reason of a failed probe is logged, for very many probes in a limited number of lines.
func TestProbesThatAreNotAnsweredLeaveLines(t *testing.T) {
	t.Parallel()
	refused := errors.New("refused: allow it")
	log := &lines{}
	withOptions(t, func(o *tracker.Options) {
		o.Logger = slog.New(slog.NewTextHandler(log, nil))
		o.Probe = func(context.Context, string) error { return refused }
	}, func(h *trackertest.Harness) {
		hired := 0
		hire := func(n *model.NewWorker) {
			hired++
			n.ProbeURL, n.MachineID = "http://10.0.0.7/healthz?key=abc", "host-"+strconv.Itoa(hired)
		}
		first := h.MustRegister(hire).WorkerID
		h.Advance(15 * time.Second)
		h.MustSweep()
		if got := log.with("level=WARN", "the probe of a late worker was not answered", "tenantId=acme", "workerId="+first,
			refused.Error()); len(got) != 1 {
			h.Errorf("%q", log.with("probe"))
		}
		for range 50 {
			h.MustRegister(hire)
		}
		began := time.Now().Unix()
		h.Advance(15 * time.Second)
		h.MustSweep()
		if n, most := len(log.with("not answered")), int(10*(time.Now().Unix()-began+1))+1; n > most || len(log.with("abc")) > 0 {
			h.Errorf("%d lines, at most %d: %q", n, most, log.with("abc"))
		}
		log.mu.Lock()
		defer log.mu.Unlock()
		log.b.Reset()
	})
}
