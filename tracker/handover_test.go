package tracker_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"pgregory.net/rapid"

	"github.com/lubdub-io/lubdub/internal/redistest"
	"github.com/lubdub-io/lubdub/internal/testenv"
	"github.com/lubdub-io/lubdub/tracker"
	"github.com/lubdub-io/lubdub/tracker/beats"
	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/sweep"
	"github.com/lubdub-io/lubdub/tracker/trackertest"
	"github.com/lubdub-io/lubdub/tracker/workers"
)

// A promoted replica lacks the last heartbeats that the old primary accepted. Whatever it lacks, and however often the primary changes,
// no task and no worker is declared dead earlier than its timeout after its last accepted heartbeat, and those that fell silent are found
// within two timeouts.
func TestNoTimeoutFiresEarlyAfterTheLossOfAcceptedHeartbeats(t *testing.T) {
	t.Parallel()
	testenv.LongerInAll(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Store) {
		rapid.Check(t, func(rt *rapid.T) {
			if err := s.Client.FlushDB(t.Context()).Err(); err != nil {
				rt.Fatal(err)
			}
			s.Clock.Set(s.Clock.Now()) // the flush deleted the test's clock
			m := newHandovers(t, rt, s)
			defer func() { _ = m.Close(t.Context()) }()
			for range rapid.IntRange(3, 10).Draw(rt, "acts") {
				switch rapid.IntRange(0, 3).Draw(rt, "act") {
				case 0:
					m.handover(rt)
				case 1:
					m.outage(rt)
				default:
					m.pass(rt, time.Duration(rapid.IntRange(1, 12).Draw(rt, "tenths"))*100*time.Millisecond)
				}
			}
			for i := range m.members { // all fall silent in the end
				m.members[i].silent = true
			}
			for range 110 {
				if m.step(rt); !slices.ContainsFunc(m.members, func(p *beating) bool { return !p.dead }) {
					break
				}
			}
			for _, p := range m.members {
				if !p.dead {
					rt.Fatalf("%s, whose timeout is %v, is not found", p.id, p.timeout)
				}
			}
		})
	})
}

// beating is a task or a worker that beats.
type beating struct {
	id       string
	attempt  *model.Attempt // nil: it is a worker
	timeout  time.Duration
	next     time.Time
	accepted time.Time // its last heartbeat
	silent   bool      // it has stopped beating
	dead     bool      // it was declared dead
}

// handovers is a deployment whose primary changes, with a clock that the test controls.
type handovers struct {
	*tracker.Tracker
	store   *redistest.Store
	sweeper *sweep.Sweeper
	members []*beating
	changes int
	seen    map[string]string // by shard: the newest event read
}

func newHandovers(t *testing.T, rt *rapid.T, s *redistest.Store) *handovers {
	tr, err := tracker.Open(t.Context(), tracker.Options{
		RedisURL: s.URL, Scripts: s.Scripts, RedisTimeout: 10 * time.Second, Shards: 2, Logger: trackertest.Quiet, WorkerInterval: time.Second,
	})
	m := &handovers{Tracker: tr, store: s, seen: map[string]string{}}
	m.must(rt, err)
	m.sweeper = sweep.NewSweeper(tr.Sweeper, sweep.SweeperOptions{ID: "swp_m"})
	m.must(rt, tr.Beats.Tick())
	for i := range 8 {
		timeout := time.Duration(1+i%5) * time.Second
		n := model.NewTask{Scope: trackertest.Scope, TaskID: modelID(i), HeartbeatInterval: timeout / 3, HeartbeatTimeout: timeout}
		m.must(rt, n.Validate(s.Clock.Now()))
		c, err := tr.Tasks.Create(t.Context(), n)
		m.must(rt, err)
		_, err = tr.Beats.Start(t.Context(), c.Envelope.Attempt, model.Report{WorkerID: "w"})
		m.must(rt, err)
		m.add(&beating{id: n.TaskID, attempt: c.Envelope.Attempt, timeout: timeout})
	}
	for i := range 2 {
		n := trackertest.NewWorker(func(n *model.NewWorker) { n.MachineID = fmt.Sprintf("host-%d", i) })
		m.must(rt, n.Validate())
		r, err := tr.Workers.Register(t.Context(), n)
		m.must(rt, err)
		m.add(&beating{id: r.WorkerID, timeout: 3 * time.Second})
	}
	return m
}

func (m *handovers) must(rt *rapid.T, err error) {
	if err != nil {
		rt.Fatal(err)
	}
}

func (m *handovers) add(p *beating) {
	p.accepted, p.next = m.store.Clock.Now(), m.store.Clock.Now().Add(p.timeout/3)
	m.members = append(m.members, p)
}

func (m *handovers) pass(rt *rapid.T, d time.Duration) {
	for ; d > 0; d -= 100 * time.Millisecond {
		m.step(rt)
	}
	if i := rapid.IntRange(0, 3*len(m.members)).Draw(rt, "falls silent"); i < len(m.members) {
		m.members[i].silent = true
	}
}

// step is a tenth of a second in which due beats are sent.
func (m *handovers) step(rt *rapid.T) {
	m.store.Clock.Advance(100 * time.Millisecond)
	m.beat(rt)
	m.must(rt, m.Beats.Tick())
	_, err := m.sweeper.RunOnce(context.Background())
	m.must(rt, err)
	m.verdicts(rt)
}

func (m *handovers) beat(rt *rapid.T) {
	now := m.store.Clock.Now()
	for _, p := range m.members {
		if p.silent || p.dead || p.next.After(now) {
			continue
		}
		if p.attempt == nil {
			_, err := m.Workers.Beat(context.Background(), trackertest.Scope, p.id, workers.WorkerBeat{})
			m.must(rt, err)
		} else {
			b := &beats.Beat{Attempt: p.attempt}
			m.Beats.Beat(b)
			m.must(rt, b.Err)
		}
		p.accepted, p.next = now, now.Add(p.timeout/3)
	}
}

// verdicts compares new verdicts with the accepted heartbeats.
func (m *handovers) verdicts(rt *rapid.T) {
	now := m.store.Clock.Now()
	for shard := range m.Store.Shards() {
		key := fmt.Sprintf("lubdub:{%d}:events", shard)
		from := "-"
		if m.seen[key] != "" {
			from = "(" + m.seen[key]
		}
		for _, e := range m.store.Client.XRange(context.Background(), key, from, "+").Val() {
			m.seen[key] = e.ID
			kind := fmt.Sprint(e.Values["type"])
			if kind != "task.zombie" && kind != "worker.offline" {
				continue
			}
			for _, p := range m.members {
				if p.id != e.Values["subject"] {
					continue
				}
				if silent := now.Sub(p.accepted); silent < p.timeout {
					rt.Fatalf("%s, whose timeout is %v, was declared dead %v after its last accepted heartbeat: %v", p.id, p.timeout, silent,
						e.Values["data"])
				}
				p.dead = true
			}
		}
	}
}

// handover lets the primary accept heartbeats for a while that the promoted replica never receives.
func (m *handovers) handover(rt *rapid.T) {
	received := m.captureReplica()
	for range rapid.IntRange(0, 8).Draw(rt, "lost tenths") {
		m.store.Clock.Advance(100 * time.Millisecond)
		m.beat(rt)
		m.must(rt, m.Beats.Tick())
	}
	received.putBack(rt, m.changes)
	m.changes++
	m.step(rt)
}

// outage is a time in which no heartbeat is accepted.
func (m *handovers) outage(rt *rapid.T) {
	m.store.Clock.Advance(time.Duration(rapid.IntRange(1, 30).Draw(rt, "away")) * 100 * time.Millisecond)
	m.step(rt)
}

// replicaState is the part of what heartbeats write that a replica has received from its primary.
type replicaState struct {
	client *redis.Client
	scores map[string][]redis.Z
	hashes map[string]map[string]string
}

func (m *handovers) captureReplica() *replicaState {
	k := &replicaState{m.store.Client, map[string][]redis.Z{}, map[string]map[string]string{}}
	ctx := context.Background()
	for _, key := range k.client.Keys(ctx, "lubdub:{*").Val() {
		switch _, name, _ := strings.Cut(key, "}:"); {
		case strings.HasPrefix(name, "beats:") || name == "workerbeats":
			k.scores[key] = k.client.ZRangeWithScores(ctx, key, 0, -1).Val()
		case name == "clock" || strings.HasPrefix(name, "worker:"):
			k.hashes[key] = k.client.HGetAll(ctx, key).Val()
		}
	}
	return k
}

// putBack turns the store into a server with another replication ID and the replicated data.
func (k *replicaState) putBack(rt *rapid.T, changes int) {
	pipe, ctx := k.client.Pipeline(), context.Background()
	for key, members := range k.scores {
		pipe.ZAdd(ctx, key, members...)
	}
	for key, fields := range k.hashes {
		for name, value := range fields {
			if _, rest, _ := strings.Cut(value, "\t"); strings.HasSuffix(key, ":clock") && name == "p" {
				value = fmt.Sprintf("%040x\t%s", changes, rest)
			}
			pipe.HSet(ctx, key, name, value)
		}
	}
	if _, err := pipe.Exec(ctx); err != nil {
		rt.Fatal(err)
	}
}

// An upgrade adds fixed keys to a shard whose primary was not recorded: the first sweep treats it as a change, however old the primary
// is. A new shard has had no other primary.
func TestAnOlderShardsFirstSweepIsAChangeOfItsPrimary(t *testing.T) {
	t.Parallel()
	for name, older := range map[string]bool{"older": true, "new": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			trackertest.Contract(t, func(h *trackertest.Harness) {
				a := h.Running()
				if older {
					for shard := range h.Tracker.Store.Shards() {
						k := h.Tracker.Store.Keys[shard]
						if err := h.Store.Client.HDel(h.Ctx, k.Clock, "p").Err(); err != nil {
							h.Fatal(err)
						}
						if err := h.Store.Client.Del(h.Ctx, k.Webhooks).Err(); err != nil {
							h.Fatal(err)
						}
					}
					h.MustTick()
				}
				h.Advance(2100 * time.Millisecond) // its timeout is 2 s
				if r := h.MustSweep(); (r.Zombies == 0) != older {
					h.Errorf("the first sweep ended %d", r.Zombies)
				}
				h.Advance(2100 * time.Millisecond)
				h.MustSweep()
				h.MustSweep()
				if task := h.MustGet(a.TaskID); task.State != model.Failed {
					h.Errorf("it is %s", task.State)
				}
			})
		})
	}
}
