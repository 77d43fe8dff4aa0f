package workers_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"

	"github.com/lubdub-io/lubdub/tracker"
	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/trackertest"
	"github.com/lubdub-io/lubdub/tracker/workers"
)

// Stale verdicts are counted for all workers that were started under one name, and here for its machine too. From the threshold
// on, each is an event and is counted, and the gauge shows the flapping until enough of the verdicts are older than a day.
func TestFlapping(t *testing.T) {
	t.Parallel()
	var registry *prometheus.Registry
	trackertest.Contract(t, func(h *trackertest.Harness) { flaps(h, registry) }, func(o *tracker.Options) {
		registry = prometheus.NewRegistry()
		o.Registerer = registry
	})
}

func flaps(h *trackertest.Harness, registry *prometheus.Registry) {
	const hours = 2 // between two verdicts
	const least = model.FlappingThreshold
	named := func(n *model.NewWorker) { n.Name = "mailer-1" }
	other := h.MustRegister(func(n *model.NewWorker) { n.MachineID = "host-2" }).WorkerID
	want := func(id string, times int) {
		h.Helper()
		flapping := times >= least
		if w := h.MustWorker(id); w.StaleCount != times || w.Flapping != flapping {
			h.Fatalf("%d times: %d, flapping %v", times, w.StaleCount, w.Flapping)
		}
		if m := h.MustMachine("host-1"); m.StaleCount != times || m.Flapping != flapping {
			h.Fatalf("%d times: %+v", times, m)
		}
		if w := h.MustWorker(other); w.StaleCount != 0 || w.Flapping {
			h.Fatalf("%+v", w)
		}
		if _, err := h.Stats.Leave(h.Ctx); err != nil {
			h.Fatal(err)
		}
		gauge := map[bool]float64{true: 1}[flapping]
		counted := float64(max(0, times-least+1))
		wantSeries(h, registry, "lubdub_flapping", map[string]float64{"worker": gauge, "machine": gauge})
		if times > 0 {
			wantSeries(h, registry, "lubdub_flapping_total", map[string]float64{"worker": counted, "machine": counted})
			if e := h.Events(""); e["worker.flapping"] != int(counted) || e["machine.flapping"] != int(counted) {
				h.Fatalf("%d times: %v", times, e)
			}
		}
	}
	var id string
	for i := range least + 2 {
		id = h.MustRegister(named, func(n *model.NewWorker) { n.Hostname, n.PID = "host-1", 100+i }).WorkerID
		want(id, i)
		h.AdvanceAlive(30*time.Second, other)
		h.MustSweep()
		want(id, i+1)
		h.Store.Clock.Advance(hours*time.Hour - 30*time.Second)
		h.MustTick()
		h.MustBeatWorker(other)
	}
	// The first one was 2 hours per verdict ago; each day that passes removes one.
	h.Store.Clock.Advance(24*time.Hour - time.Duration(least+2)*hours*time.Hour - time.Minute)
	h.MustTick()
	h.MustBeatWorker(other)
	for left := least + 2; left > 0; left-- {
		if m := h.MustMachine("host-1"); m.StaleCount != left || m.Flapping != (left >= least) {
			h.Fatalf("a day later %d are left: %+v", left, m)
		}
		if _, err := h.Stats.Leave(h.Ctx); err != nil {
			h.Fatal(err)
		}
		gauge := map[bool]float64{true: 1}[left >= least]
		wantSeries(h, registry, "lubdub_flapping", map[string]float64{"worker": gauge, "machine": gauge})
		h.Store.Clock.Advance(hours * time.Hour)
		h.MustTick()
		h.MustBeatWorker(other)
	}
}

// wantSeries checks the values of a metric's series, by their only label.
func wantSeries(h *trackertest.Harness, registry *prometheus.Registry, name string, want map[string]float64) {
	h.Helper()
	families, err := registry.Gather()
	if err != nil {
		h.Fatal(err)
	}
	got := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if f.GetName() == name {
				got[m.GetLabel()[0].GetValue()] = m.GetGauge().GetValue() + m.GetCounter().GetValue()
			}
		}
	}
	if !maps.Equal(got, want) {
		h.Fatalf("%s: %v, want %v", name, got, want)
	}
}

// The data about a name and about flapping is bounded, no matter how often workers are declared stale and return.
func TestFlappingHistoryIsBounded(t *testing.T) {
	t.Parallel()
	trackertest.Contract(t, func(h *trackertest.Harness) {
		register := func() string {
			return h.MustRegister(func(n *model.NewWorker) { n.Name = "mailer-1" }).WorkerID
		}
		sets := map[string]int64{"stales": 1000, "flapping": 10_000}
		fill := func(key string, n int64, from time.Time) {
			var entries []redis.Z
			for i := range n {
				entries = append(entries, redis.Z{Score: float64(from.UnixMilli() + i), Member: fmt.Sprint("x/", i)})
			}
			h.Store.Client.ZAdd(h.Ctx, key, entries...)
		}
		register()
		h.Advance(30 * time.Second)
		h.MustSweep()
		stales := h.Store.Client.Keys(h.Ctx, "*:stales:*").Val()
		if len(stales) != 2 {
			h.Fatalf("%v", stales)
		}
		shard, _, _ := strings.Cut(stales[0], "}")
		for _, key := range stales {
			fill(key, sets["stales"]-1, h.Store.Clock.Now())
		}
		fill(shard+"}:flapping", sets["flapping"], h.Store.Clock.Now().Add(time.Hour)) // until when they flap
		register()
		h.Advance(30 * time.Second)
		h.MustSweep()
		for range 120 {
			if _, err := h.Workers.Retire(h.Ctx, trackertest.Scope, register(), model.WorkerDeregistered, ""); err != nil {
				h.Fatal(err)
			}
		}
		for _, key := range append(stales, shard+"}:flapping") {
			name := strings.Split(key, ":")[2]
			if n := h.Store.Client.ZCard(h.Ctx, key).Val(); n > sets[name] || h.Store.Client.PTTL(h.Ctx, key).Val() <= 0 {
				h.Errorf("%s has %d entries, want %d at most and an end", key, n, sets[name])
			}
		}
		for _, key := range h.Store.Client.Keys(h.Ctx, "*:lives:*").Val() {
			if n := h.Store.Client.LLen(h.Ctx, key).Val(); n > 100 || h.Store.Client.PTTL(h.Ctx, key).Val() <= 0 {
				h.Errorf("%s has %d entries, want 100 at most and an end", key, n)
			}
		}
	})
}

// The time from an unplanned loss until the name is back on its machine is downtime; a planned end is not. Both apply to all
// registrations of a name together.
func TestUptimeFollowsTheIdentity(t *testing.T) {
	t.Parallel()
	retire := func(end model.WorkerReason) func(*trackertest.Harness, string) {
		return func(h *trackertest.Harness, id string) {
			if _, err := h.Workers.Retire(h.Ctx, trackertest.Scope, id, end, ""); err != nil {
				h.Fatal(err)
			}
		}
	}
	// Each is alive for 60 s, ends, returns 60 s later and is alive for 60 s again.
	for name, c := range map[string]struct {
		end  func(*trackertest.Harness, string)
		want float64
	}{
		"lost":         {func(*trackertest.Harness, string) {}, 66.7},
		"deregistered": {retire(model.WorkerDeregistered), 100},
		"forced": {func(h *trackertest.Harness, id string) {
			retire(model.WorkerForced)(h, id)
			if _, err := h.Workers.Resume(h.Ctx, trackertest.Scope, id, ""); err != nil { // lets its identity register again
				h.Fatal(err)
			}
		}, 100},
		"drained": {func(h *trackertest.Harness, id string) {
			if _, err := h.Workers.Drain(h.Ctx, trackertest.Scope, id, workers.Drain{}); err != nil {
				h.Fatal(err)
			}
			h.AdvanceAlive(2*time.Second, id)
			h.MustSweep()
			h.WantWorker(id, model.Offline, model.WorkerDrained)
		}, 100},
		"superseded": {func(h *trackertest.Harness, id string) {
			next := h.MustRegister(func(n *model.NewWorker) { n.Name, n.Hostname, n.PID = "mailer-1", "host-1", 1 }).WorkerID
			h.WantWorker(id, model.Offline, model.WorkerSuperseded)
			retire(model.WorkerDeregistered)(h, next)
		}, 100},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			trackertest.Contract(t, func(h *trackertest.Harness) {
				start := func(name, machine string) string {
					return h.MustRegister(func(n *model.NewWorker) { n.Name, n.MachineID, n.Hostname, n.PID = name, machine, "host-1", 1 }).WorkerID
				}
				first := start("mailer-1", "host-1")
				h.AdvanceAlive(60*time.Second, first)
				c.end(h, first)
				for range 3 {
					h.Advance(20 * time.Second)
					h.MustSweep()
				}
				second := start("mailer-1", "host-1")
				others := []string{start("mailer-2", "host-1"), start("mailer-1", "host-2")}
				h.AdvanceAlive(60*time.Second, append(others, second)...)
				if got := h.MustWorker(second).Uptime; got != c.want {
					h.Errorf("%v %%, want %v", got, c.want)
				}
				for _, id := range others {
					if got := h.MustWorker(id).Uptime; got != 100 {
						h.Errorf("another name or machine: %v %%", got)
					}
				}
				h.Store.Clock.Advance(48 * time.Hour) // what is older than a day does not count
				h.MustTick()
				third := start("mailer-1", "host-1")
				h.AdvanceAlive(20*time.Second, third)
				if got := h.MustWorker(third).Uptime; c.want == 100 && got != 100 {
					h.Errorf("two days later: %v %%", got)
				}
			})
		})
	}
}

// Workers are listed by whether they flap, and in the order of their stale counts and uptimes.
func TestListsOfFlappingWorkers(t *testing.T) {
	t.Parallel()
	trackertest.Contract(t, func(h *trackertest.Harness) {
		names, now := map[string]string{}, map[string]string{}
		start := func(name string) {
			now[name] = h.MustRegister(func(n *model.NewWorker) { n.Name, n.Labels = name, map[string]string{"team": name} }).WorkerID
			names[now[name]] = name
		}
		start("steady")
		for _, name := range []string{"often", "twice", "often", "once", "often", "twice"} { // each is lost, and returns at the end
			start(name)
			h.AdvanceAlive(30*time.Second, now["steady"])
			h.MustSweep()
		}
		for _, name := range []string{"twice", "once", "often"} {
			start(name)
		}
		h.AdvanceAlive(5*time.Second, slices.Collect(maps.Values(now))...)
		list := func(f workers.WorkerFilter) (found []string) {
			h.Helper()
			f.Scope = trackertest.Scope
			for {
				page, err := h.Workers.List(h.Ctx, f)
				if err != nil {
					h.Fatal(err)
				}
				for _, w := range page.Workers {
					found = append(found, names[w.ID])
				}
				if f.After = page.Next; f.After == "" {
					return found
				}
			}
		}
		yes, no := true, false
		for what, of := range map[string]struct {
			filter workers.WorkerFilter
			want   string
		}{
			"flapping":           {workers.WorkerFilter{Flapping: &yes}, "often often often often"},
			"flapping, online":   {workers.WorkerFilter{Flapping: &yes, Statuses: online}, "often"},
			"not, online":        {workers.WorkerFilter{Flapping: &no, Statuses: online}, "steady twice once"},
			"of a label":         {workers.WorkerFilter{Flapping: &yes, Labels: map[string]string{"team": "twice"}}, ""},
			"by staleness":       {workers.WorkerFilter{Sort: workers.ByStaleCount, Statuses: online}, "steady once twice often"},
			"by uptime":          {workers.WorkerFilter{Sort: workers.ByUptime, Statuses: online}, "often twice once steady"},
			"schedulable, worst": {workers.WorkerFilter{Sort: workers.ByUptime, Schedulable: &yes, Flapping: &no}, "twice once steady"},
		} {
			for _, size := range []int{1, 2, 100} {
				of.filter.PageSize, of.filter.Descending = size, false
				if got := strings.Join(list(of.filter), " "); got != of.want {
					h.Errorf("%s, %d a page: %s, want %s", what, size, got, of.want)
				}
				of.filter.Descending = true
				got := list(of.filter)
				if slices.Reverse(got); strings.Join(got, " ") != of.want {
					h.Errorf("%s, %d a page, descending: %v, want %s backwards", what, size, got, of.want)
				}
			}
		}
	})
}

// A machine is declared stale when its last worker is: the failure of a host counts once, no matter how many workers it had, and
// the death of one worker among others does not count.
func TestAMachineFlapsByItsOwnChanges(t *testing.T) {
	t.Parallel()
	trackertest.Contract(t, func(h *trackertest.Harness) {
		on := func(host string, n int) (ids []string) {
			for range n {
				ids = append(ids, h.MustRegister(func(w *model.NewWorker) { w.MachineID = host }).WorkerID)
			}
			return ids
		}
		want := func(host string, count int, flapping bool) {
			h.Helper()
			if m := h.MustMachine(host); m.StaleCount != count || m.Flapping != flapping {
				h.Fatalf("%s went stale %d times, flapping %v; want %d, %v", host, m.StaleCount, m.Flapping, count, flapping)
			}
		}
		for deaths := 1; deaths <= 3; deaths++ {
			on("dies", 2)
			h.Advance(5 * time.Second)
			on("dies", 1) // silent a little later
			stays := on("stays", 2)[:1]
			h.AdvanceAlive(26*time.Second, stays...)
			h.MustSweep()
			h.AdvanceAlive(5*time.Second, stays...)
			h.MustSweep()
			want("dies", deaths, deaths == 3)
			want("stays", 0, false)
			if _, err := h.Workers.Retire(h.Ctx, trackertest.Scope, stays[0], model.WorkerDeregistered, ""); err != nil {
				h.Fatal(err)
			}
			want("stays", 0, false)
		}
		if e := h.Events(""); e["machine.flapping"] != 1 {
			h.Fatalf("%v", e)
		}
	})
}

func TestUptime(t *testing.T) {
	t.Parallel()
	trackertest.Contract(t, func(h *trackertest.Harness) {
		a := h.MustRegister().WorkerID
		h.Advance(30 * time.Second) // never receives another heartbeat: no known uptime
		h.MustSweep()
		if w := h.MustWorker(a); w.Uptime != 0 {
			h.Fatalf("%v", w.Uptime)
		}
		b := h.MustRegister().WorkerID
		h.AdvanceAlive(30*time.Second, b)
		if w, m := h.MustWorker(b), h.MustMachine("host-1"); w.Uptime != 100 || m.Uptime != 50 {
			h.Fatalf("%v %v", w.Uptime, m.Uptime)
		}
		if _, err := h.Workers.Retire(h.Ctx, trackertest.Scope, b, model.WorkerDeregistered, ""); err != nil {
			h.Fatal(err)
		}
		h.Advance(60 * time.Second)
		if w, m := h.MustWorker(b), h.MustMachine("host-1"); w.Uptime != 100 || m.Uptime != 25 { // its machine may return
			h.Fatalf("%v %v", w.Uptime, m.Uptime)
		}
	})
}

// The uptime of a worker is frozen at its end, whatever ended it.
func TestUptimeIsFrozenAtTheEnd(t *testing.T) {
	t.Parallel()
	trackertest.Contract(t, func(h *trackertest.Harness) {
		silent, forced := h.MustRegister().WorkerID, h.MustRegister().WorkerID
		h.AdvanceAlive(50*time.Second, silent, forced)
		h.AdvanceAlive(30*time.Second, forced)
		h.MustSweep()
		h.WantWorker(silent, model.Offline, model.WorkerStale)
		if _, err := h.Workers.Retire(h.Ctx, trackertest.Scope, forced, model.WorkerForced, ""); err != nil {
			h.Fatal(err)
		}
		for _, later := range []time.Duration{0, time.Second, time.Hour, 23 * time.Hour} {
			h.Store.Clock.Advance(later)
			h.MustTick()
			if s, f := h.MustWorker(silent).Uptime, h.MustWorker(forced).Uptime; s != 62.5 || f != 100 {
				h.Fatalf("%v later: %v and %v", later, s, f)
			}
		}
	})
}

// The walk over the index finds workers that sweepers would never check again: one without a recorded heartbeat is stale, one with
// a heartbeat is checked again.
func TestLostWorkersAreFound(t *testing.T) {
	t.Parallel()
	trackertest.Contract(t, func(h *trackertest.Harness) {
		never, known := h.MustRegister().WorkerID, h.MustRegister().WorkerID
		for shard := range h.Tracker.Store.Shards() {
			beats := fmt.Sprintf("lubdub:{%d}:workerbeats", shard)
			for _, id := range []string{never, known} {
				h.Store.Client.ZRem(h.Ctx, beats, trackertest.Scope.String()+"/"+id)
			}
			h.Store.Client.HDel(h.Ctx, fmt.Sprintf("lubdub:{%d}:worker:%s/%s", shard, trackertest.Scope, never), "bl")
		}
		if w := h.MustWorker(never); w.Liveness != model.Lost || !w.LastHeartbeatAt.IsZero() || fmt.Sprint(w.Unschedulable) != "[stale]" {
			h.Fatalf("%+v", w)
		}
		if r := h.MustSweep(); r.StaleWorkers != 1 {
			h.Fatalf("%+v", r)
		}
		h.WantWorker(never, model.Offline, model.WorkerStale)
		h.WantWorker(known, model.Online, "")
		h.Advance(30 * time.Second)
		h.MustSweep()
		h.WantWorker(known, model.Offline, model.WorkerStale)
	})
}

// A worker whose record the store lost is removed from the lists.
func TestWorkersWithoutARecordLeaveTheLists(t *testing.T) {
	t.Parallel()
	trackertest.Contract(t, func(h *trackertest.Harness) {
		id := h.MustRegister().WorkerID
		for shard := range h.Tracker.Store.Shards() {
			h.Store.Client.Del(h.Ctx, fmt.Sprintf("lubdub:{%d}:worker:%s/%s", shard, trackertest.Scope, id))
			h.Store.Client.ZRem(h.Ctx, fmt.Sprintf("lubdub:{%d}:workerbeats", shard), trackertest.Scope.String()+"/"+id)
		}
		h.MustSweep()
		if page, err := h.Workers.List(h.Ctx, workers.WorkerFilter{Scope: trackertest.Scope, PageSize: 10}); err != nil || page.Total != 0 {
			h.Fatalf("%+v %v", page, err)
		}
	})
}
