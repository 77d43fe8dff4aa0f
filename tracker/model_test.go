package tracker_test

import (
	"fmt"
	"io"
	"log/slog"
	"slices"
	"sort"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/lubdub-io/lubdub/internal/redistest"
	"github.com/lubdub-io/lubdub/internal/testenv"
	"github.com/lubdub-io/lubdub/tracker"
	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/sweep"
	"github.com/lubdub-io/lubdub/tracker/trackertest"
)

// TestModel drives random operations, with a clock that the test controls, against a plain model of a task's life: no Redis, no scripts,
// no sorted sets; only what the design requires.
func TestModel(t *testing.T) {
	t.Parallel()
	testenv.LongerInAll(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Store) {
		rapid.Check(t, func(rt *rapid.T) {
			if err := s.Client.FlushDB(t.Context()).Err(); err != nil {
				rt.Fatal(err)
			}
			s.Clock.Set(s.Clock.Now()) // the flush deleted the test's clock
			tr, err := tracker.Open(t.Context(), tracker.Options{
				RedisURL: s.URL, Scripts: s.Scripts, RedisTimeout: 10 * time.Second, Shards: 2, Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
			})
			if err != nil {
				rt.Fatal(err)
			}
			defer func() { _ = tr.Close(t.Context()) }()
			m := &machine{T: t, tr: tr, store: s,
				sweeper: sweep.NewSweeper(tr.Sweeper, sweep.SweeperOptions{ID: "swp_m"}), tasks: map[string]*modelTask{},
				lost: map[string]*modelTask{}}
			m.now, m.L = s.Clock.Now(), time.Second // 0 means never
			m.must(rt, tr.Beats.Tick())
			m.hire(rt)
			rt.Repeat(rapid.StateMachineActions(m))
		})
	})
}

// modelTask is the model of a task.
type modelTask struct {
	id       string
	queue    bool
	policy   model.RetryPolicy
	timeout  time.Duration
	run      time.Duration
	grace    time.Duration
	deadline time.Time

	state           model.State
	reason          model.Reason
	attempt         int
	attempts        map[int]*model.Attempt
	ended           map[int]string // outcome with which an attempt ended
	retried         map[int]bool
	last            time.Duration // shard time of the last beat
	begun           time.Duration
	startBy         time.Duration
	cancelDelivered time.Duration // when the cancel was delivered; 0: not yet
	patience        time.Duration // time that the worker has from then on
	cancel          bool
	readyAt         time.Time
	failures        int
	losses          int
	lastEnd         model.Reason  // of the current attempt while QUEUED
	fenced          bool          // the current attempt was given up on request
	start           time.Duration // start timeout
	details         string
	won             int // the attempt whose success was acknowledged
	strays          []*model.Attempt
}

const manyTasks = 12

type machine struct {
	*testing.T
	tr       *tracker.Tracker
	store    *redistest.Store
	sweeper  *sweep.Sweeper
	worker   string        // which claims
	lastBeat time.Duration // shard time of its last beat
	tasks    map[string]*modelTask
	n        int
	now      time.Time
	L        time.Duration         // shard time since the start, the same in every shard: all get their ticks together
	lost     map[string]*modelTask // by ID: tasks without a record, whose attempts a lost primary has dispatched
}

// hire registers a worker that can run all tasks.
func (m *machine) hire(rt *rapid.T) {
	n := trackertest.NewWorker(func(n *model.NewWorker) { n.Queue, n.Types, n.MaxConcurrent = "q", nil, manyTasks })
	for i := range manyTasks {
		n.Types = append(n.Types, modelID(i+1))
	}
	m.must(rt, n.Validate())
	r, err := m.tr.Workers.Register(rt.Context(), n)
	m.must(rt, err)
	m.worker = r.WorkerID
}

func modelID(n int) string { return fmt.Sprintf("t%02d", n) }

func (m *machine) must(rt *rapid.T, err error) {
	if err != nil {
		rt.Fatalf("%v", err)
	}
}

func (m *machine) pick(rt *rapid.T) *modelTask {
	if len(m.tasks) == 0 {
		rt.Skip("no task yet")
	}
	ids := make([]string, 0, len(m.tasks))
	for id := range m.tasks {
		ids = append(ids, id)
	}
	sort.Strings(ids)
	astray := slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return len(m.tasks[id].strays) == 0 })
	if len(astray) > 0 && rapid.Bool().Draw(rt, "astray") {
		ids = astray
	}
	return m.tasks[rapid.SampledFrom(ids).Draw(rt, "task")]
}
