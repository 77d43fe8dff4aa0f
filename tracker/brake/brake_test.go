package brake_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/lubdub-io/lubdub/internal/redistest"
	"github.com/lubdub-io/lubdub/tracker"
	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/trackertest"
)

// spread sets as many shards as a deployment has.
func spread(o *tracker.Options) { o.Shards = 16 }

const (
	brakeTimeout = 10 * time.Second
	justOver     = 50 * time.Millisecond // the smallest step that is written to a shard's clock
)

// herd creates n running tasks of a scope that have just sent a heartbeat.
func herd(h *trackertest.Harness, n int, change ...func(*model.NewTask)) []*model.Attempt {
	h.Helper()
	tasks := make([]*model.Attempt, n)
	for i := range tasks {
		tasks[i] = h.Running(append([]func(*model.NewTask){func(t *model.NewTask) {
			t.HeartbeatInterval, t.HeartbeatTimeout = 3*time.Second, brakeTimeout
		}}, change...)...)
	}
	return tasks
}

// wantSweep does one sweep and checks its result.
func wantSweep(h *trackertest.Harness, held, zombies int) {
	h.Helper()
	if r := h.MustSweep(); r.MassExpiryHeld != held || r.Zombies != zombies {
		h.Fatalf("%d held and %d zombies, want %d and %d", r.MassExpiryHeld, r.Zombies, held, zombies)
	}
}

func TestBrakeHoldsMassSilenceForOneTimeout(t *testing.T) {
	t.Parallel()
	trackertest.Contract(t, func(h *trackertest.Harness) {
		tasks := herd(h, 100)
		silent, alive := tasks[:60], tasks[60:]
		last := h.Store.Clock.Now()
		h.AdvanceBeating(brakeTimeout, alive...)
		wantSweep(h, 0, 0) // a timeout has not passed before its end
		h.Advance(justOver)
		wantSweep(h, 60, 0)
		for _, a := range silent {
			task := h.WantState(a.TaskID, model.Running, "")
			if !task.LastHeartbeatAt.Equal(last) || task.Liveness != model.Lost {
				h.Fatalf("a held task shows %s, last beat %v, want %v", task.Liveness, task.LastHeartbeatAt, last)
			}
		}
		h.AdvanceBeating(brakeTimeout-justOver, alive...)
		wantSweep(h, 0, 0)
		h.Advance(2 * justOver)
		wantSweep(h, 0, 60) // still as many, and none is held twice
		for _, a := range silent {
			e := h.WantState(a.TaskID, model.Failed, model.HeartbeatTimeout).History[0].Evidence
			if !e.LastHeartbeatAt.Equal(last) || e.Silent < 2*brakeTimeout || e.Timeout != brakeTimeout {
				h.Fatalf("evidence of one that was held: %+v", e)
			}
		}
		if n := h.Events("")["system.mass_expiry_held"]; n != 1 {
			h.Errorf("%d events", n)
		}
		for _, a := range alive {
			h.WantState(a.TaskID, model.Running, "")
		}
	}, trackertest.Braked)
}

func TestBrakeLetsFewDie(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ silent, alive int }{
		"two in five":             {40, 60},
		"all, but of a few":       {49, 0},
		"most, but too few":       {49, 10},
		"nearly half of very few": {50, 51},
	} {
		t.Run(name, func(t *testing.T) {
			trackertest.Contract(t, func(h *trackertest.Harness) {
				tasks := herd(h, c.silent+c.alive)
				h.AdvanceBeating(brakeTimeout, tasks[c.silent:]...)
				h.Advance(justOver)
				wantSweep(h, 0, c.silent)
				if n := h.Events("")["system.mass_expiry_held"]; n != 0 {
					h.Errorf("%d events", n)
				}
			}, trackertest.Braked)
		})
	}
}

func TestBrakeIsOffByDefault(t *testing.T) {
	t.Parallel()
	trackertest.Contract(t, func(h *trackertest.Harness) {
		herd(h, 100)
		h.Advance(brakeTimeout + justOver)
		wantSweep(h, 0, 100)
	})
}

// A heartbeat makes a held task like all others: alive, and held again if it goes silent with them.
func TestBrakeIsArmedAgainByABeat(t *testing.T) {
	t.Parallel()
	trackertest.Contract(t, func(h *trackertest.Harness) {
		tasks := herd(h, 60)
		h.Advance(brakeTimeout + justOver)
		wantSweep(h, 60, 0)
		h.Advance(5 * time.Second)
		back := tasks[:55]
		for _, a := range back {
			if b := h.MustBeat(a, ""); b.Err != nil {
				h.Fatal(b.Err)
			}
		}
		h.Advance(5*time.Second + justOver)
		wantSweep(h, 0, 5) // the truly dead expire now, those that returned stay alive
		h.Advance(5 * time.Second)
		wantSweep(h, 55, 0) // all remaining tasks have gone silent again
		h.Advance(brakeTimeout)
		wantSweep(h, 0, 0)
		h.Advance(justOver)
		wantSweep(h, 0, 55)
		if n := h.Events("")["system.mass_expiry_held"]; n != 2 {
			h.Errorf("%d events, want one for each time", n)
		}
	}, trackertest.Braked)
}

// Heartbeats are spread over time, and so are expiries: held members still count as silent.
func TestBrakeHoldsToTheLastOfASpread(t *testing.T) {
	t.Parallel()
	trackertest.Contract(t, func(h *trackertest.Harness) {
		tasks := herd(h, 100)
		for i := range tasks { // over 4 s, each at its own time
			h.Store.Clock.Advance(40 * time.Millisecond)
			h.MustTick()
			if b := h.MustBeat(tasks[i], ""); b.Err != nil {
				h.Fatal(b.Err)
			}
		}
		h.Advance(brakeTimeout - 4*time.Second)
		held := 0
		for range 18 {
			h.Advance(250 * time.Millisecond)
			r := h.MustSweep()
			if r.Zombies > 0 {
				h.Fatalf("%d died after %d were held", r.Zombies, held)
			}
			held += r.MassExpiryHeld
		}
		if held != 100 {
			h.Fatalf("%d held", held)
		}
	}, trackertest.Braked)
}

// Each scope is evaluated separately, no matter how thinly it is spread over the shards.
func TestBrakeEvaluatesEachScopeAcrossAllShards(t *testing.T) {
	t.Parallel()
	trackertest.Contract(t, func(h *trackertest.Harness) {
		other := func(n *model.NewTask) { n.Scope = model.Scope{Tenant: "big", Workspace: "prod"} }
		alive, dead := herd(h, 150, other), herd(h, 30, other)
		herd(h, 60)
		tiny := herd(h, 20, func(n *model.NewTask) { n.Scope.Workspace = "tiny" })
		shards := map[int]bool{}
		for i := range 60 {
			shards[h.Tracker.Store.ShardOf(trackertest.Scope, tiny[i%20].TaskID)] = true
		}
		h.AdvanceBeating(brakeTimeout, alive...)
		h.Advance(justOver)
		wantSweep(h, 60, len(dead)+20)
		if len(shards) < 5 {
			h.Fatalf("the test spreads over %d shards only", len(shards))
		}
	}, trackertest.Braked, spread)
}

// All timeouts of a scope count together.
func TestBrakeCountsEveryTimeout(t *testing.T) {
	t.Parallel()
	trackertest.Contract(t, func(h *trackertest.Harness) {
		long := herd(h, 30, func(n *model.NewTask) { n.HeartbeatTimeout = 12 * time.Second })
		herd(h, 30)
		h.Advance(brakeTimeout + justOver)
		wantSweep(h, 30, 0)
		h.Advance(2 * time.Second)
		wantSweep(h, 30, 0)
		h.Advance(8*time.Second + justOver)
		wantSweep(h, 0, 30)
		h.WantState(long[0].TaskID, model.Running, "")
		h.Advance(4 * time.Second)
		wantSweep(h, 0, 30)
	}, trackertest.Braked)
}

func TestBrakeHoldsWorkers(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, s *redistest.Store) {
		registry := prometheus.NewRegistry()
		c := trackertest.NewFleet(trackertest.NewHarness(t, s, trackertest.Braked, func(o *tracker.Options) { o.Registerer = registry }))
		var silent, alive []string
		for i := range 100 {
			name := fmt.Sprintf("w%03d", i)
			c.Hire(name)
			if i < 60 {
				silent = append(silent, c.IDs[name])
			} else {
				alive = append(alive, c.IDs[name])
			}
		}
		held := c.MustHolding("w000", 3)
		c.AdvanceAlive(20*time.Second, alive...)
		c.MustSweep() // they are late now
		c.AdvanceAlive(10*time.Second, alive...)
		if r := c.MustSweep(); r.MassExpiryHeld != 60 || r.StaleWorkers != 0 || r.Recovered != 0 {
			c.Fatalf("%+v", r)
		}
		for _, id := range silent {
			if w := c.WantWorker(id, model.Online, ""); w.Liveness != model.Lost || w.Silent < 30*time.Second {
				c.Fatalf("a held worker shows %s after %v", w.Liveness, w.Silent)
			}
		}
		if st, err := c.Stats.Get(c.Ctx, trackertest.Scope); err != nil || st.Counts.Liveness[model.Lost] != 60 {
			c.Fatalf("60 held workers are silent past their timeout, and counted are %+v (%v)", st.Counts, err)
		}
		for _, a := range held {
			c.WantState(a.TaskID, model.Running, "")
		}
		back := silent[1:11]
		for _, id := range back {
			c.MustBeatWorker(id)
		}
		c.AdvanceAlive(25*time.Second, append(back, alive...)...)
		if r := c.MustSweep(); r.MassExpiryHeld != 0 || r.StaleWorkers != 0 {
			c.Fatalf("before its time: %+v", r)
		}
		c.AdvanceAlive(5*time.Second, append(back, alive...)...)
		if r := c.MustSweep(); r.MassExpiryHeld != 0 || r.StaleWorkers != 50 || r.Recovered != 3 {
			c.Fatalf("%+v", r)
		}
		for _, a := range held {
			if e := c.Newest(a.TaskID).Evidence; e.WorkerReason != model.WorkerStale || !e.MassExpiryHeld || e.Silent < 60*time.Second {
				c.Fatalf("%+v", e)
			}
		}
		for _, id := range append(back, alive...) {
			c.WantWorker(id, model.Online, "")
		}
		if n := gathered(t, registry, "lubdub_mass_expiry_held_total", "worker"); n != 60 {
			c.Errorf("the metric counts %v", n)
		}
		if n := c.Events("")["system.mass_expiry_held"]; n != 1 {
			c.Errorf("%d events", n)
		}
	})
}

// gathered reads a counter with one label.
func gathered(t *testing.T, g prometheus.Gatherer, name, label string) float64 {
	t.Helper()
	families, err := g.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if f.GetName() == name && len(m.GetLabel()) == 1 && m.GetLabel()[0].GetValue() == label {
				return m.GetCounter().GetValue()
			}
		}
	}
	return 0
}

// Silent workers indicate that their tasks are silent for the same reason, and vice versa.
func TestBrakeHoldsTasksForTheirWorkers(t *testing.T) {
	t.Parallel()
	trackertest.Contract(t, func(h *trackertest.Harness) {
		few := herd(h, 5, func(n *model.NewTask) { n.HeartbeatTimeout = 30 * time.Second })
		for i := range 60 {
			h.MustRegister(func(n *model.NewWorker) { n.MachineID = fmt.Sprintf("host-%d", i) })
		}
		h.Advance(30*time.Second + justOver)
		if r := h.MustSweep(); r.MassExpiryHeld != 65 || r.Zombies != 0 || r.StaleWorkers != 0 {
			h.Fatalf("%+v", r)
		}
		h.WantState(few[0].TaskID, model.Running, "")
	}, trackertest.Braked)
}

// The brake's data is removed when it is no longer needed.
func TestBrakeForgets(t *testing.T) {
	t.Parallel()
	trackertest.Contract(t, func(h *trackertest.Harness) {
		tasks := herd(h, 60)
		h.Advance(brakeTimeout + justOver)
		wantSweep(h, 60, 0)
		for _, a := range tasks {
			h.MustBeat(a, "")
		}
		h.AdvanceBeating(3*brakeTimeout, tasks...)
		h.Advance(brakeTimeout + justOver)
		wantSweep(h, 60, 0)
		n := 0
		for shard := range h.Tracker.Store.Shards() {
			n += int(h.Store.Client.ZCard(h.Ctx, fmt.Sprintf("lubdub:{%d}:braked", shard)).Val()) - 1
		}
		if n != 61 { // the held ones, and the report of it
			h.Errorf("%d entries", n)
		}
	}, trackertest.Braked)
}

// A verdict states whether the mass-expiry brake had held its attempt or its worker.
func TestVerdictsNameTheBrake(t *testing.T) {
	t.Parallel()
	trackertest.Contract(t, func(h *trackertest.Harness) {
		tasks := herd(h, 60)
		h.Advance(brakeTimeout + justOver)
		wantSweep(h, 60, 0)
		h.Advance(time.Second)
		h.MustBeat(tasks[0], "")
		h.AdvanceBeating(brakeTimeout+justOver, tasks[1:40]...)
		wantSweep(h, 0, 21)
		if e := h.Newest(tasks[50].TaskID).Evidence; e == nil || !e.MassExpiryHeld || e.Silent < 2*brakeTimeout {
			h.Errorf("after its hold: %+v", e)
		}
		if e := h.Newest(tasks[0].TaskID).Evidence; e == nil || e.MassExpiryHeld {
			h.Errorf("of one that has beaten since: %+v", e)
		}
	}, trackertest.Braked, spread)
}
