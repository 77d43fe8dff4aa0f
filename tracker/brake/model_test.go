package brake_test

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/lubdub-io/lubdub/internal/redistest"
	"github.com/lubdub-io/lubdub/internal/testenv"
	"github.com/lubdub-io/lubdub/tracker/beats"
	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/trackertest"
)

// TestBrakeModel compares the brake with its rule: when enough of a scope is silent for 60 % of its timeout, every overdue member
// that has sent a heartbeat since it was last held is held; every other overdue member expires.
func TestBrakeModel(t *testing.T) {
	t.Parallel()
	testenv.LongerInAll(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Store) {
		rapid.Check(t, func(rt *rapid.T) {
			if err := s.Client.FlushDB(t.Context()).Err(); err != nil {
				rt.Fatal(err)
			}
			s.Clock.Set(s.Clock.Now()) // the flush reset the test's clock too
			h := trackertest.NewHarness(t, s, trackertest.Braked)
			defer func() { _ = h.Close(h.Ctx) }()
			timeouts := []time.Duration{2 * time.Second, 3 * time.Second}
			type member struct {
				a       *model.Attempt
				timeout time.Duration
				last    time.Duration // last heartbeat
				held    time.Duration // since when; 0: not since the last heartbeat
				dead    bool
			}
			var members []*member
			var L time.Duration
			for range rapid.IntRange(48, 60).Draw(rt, "members") {
				timeout := rapid.SampledFrom(timeouts).Draw(rt, "timeout")
				a := h.Running(func(n *model.NewTask) { n.HeartbeatInterval, n.HeartbeatTimeout = 500*time.Millisecond, timeout })
				members = append(members, &member{a: a, timeout: timeout})
			}
			for range rapid.IntRange(10, 25).Draw(rt, "steps") {
				step := time.Duration(rapid.IntRange(1, 10).Draw(rt, "step")) * 100 * time.Millisecond
				h.Advance(step)
				L += step
				share := rapid.SampledFrom([]int{0, 0, 20, 60, 100}).Draw(rt, "beating")
				var batch []*beats.Beat
				for i, m := range members {
					if !m.dead && (i*37+int(L/time.Millisecond)/100)%100 < share {
						batch = append(batch, &beats.Beat{Attempt: m.a})
						m.last, m.held = L, 0
					}
				}
				h.Beats.BeatMany(batch)
				for _, b := range batch {
					if b.Err != nil {
						rt.Fatalf("a beat of a live member: %v", b.Err)
					}
				}
				live, silent := 0, 0
				for _, m := range members {
					if !m.dead {
						live++
						if 10*(L-m.last) >= 6*m.timeout {
							silent++
						}
					}
				}
				hold := live >= 50 && silent >= 50 && 2*silent >= live
				wantHeld, wantDead := 0, 0
				for _, m := range members {
					switch {
					case m.dead || L-max(m.last, m.held) <= m.timeout:
					case hold && m.held == 0:
						m.held = L
						wantHeld++
					default:
						m.dead = true
						wantDead++
					}
				}
				r, err := h.Tracker.Sweeper.Sweep(h.Ctx) // a sweeper without an earlier census
				if err != nil || r.MassExpiryHeld != wantHeld || r.Zombies != wantDead {
					rt.Fatalf("%d held, %d died (%v); in the model %d and %d of %d live, %d silent", r.MassExpiryHeld, r.Zombies, err,
						wantHeld, wantDead, live, silent)
				}
			}
			i := slices.IndexFunc(members, func(m *member) bool { return !m.dead })
			if i >= 0 {
				if task := h.MustGet(members[i].a.TaskID); task.State != model.Running ||
					(task.Liveness == model.Lost) != (L-members[i].last > members[i].timeout) {
					rt.Fatalf("%s %s after %v of %v", task.State, task.Liveness, L-members[i].last, members[i].timeout)
				}
			}
		})
	})
}
