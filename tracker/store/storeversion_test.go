package store_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lubdub-io/lubdub/internal/redistest"
	"github.com/lubdub-io/lubdub/tracker"
	"github.com/lubdub-io/lubdub/tracker/beats"
	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/store"
	"github.com/lubdub-io/lubdub/tracker/trackertest"
	"github.com/lubdub-io/lubdub/tracker/workers"
)

const meta = "lubdub:{0}:meta"

// wantSchema compares the stored version, without the shards, with what it should be.
func wantSchema(t testing.TB, s *redistest.Store, when, version, least string) {
	t.Helper()
	got := s.Client.HMGet(t.Context(), meta, "schema", "least").Val()
	if !reflect.DeepEqual(got, []any{version, least}) {
		t.Errorf("%s: schema and least are %v, want %s and %s", when, got, version, least)
	}
}

// After the start, a new store and one from before versions contain their version. Their data is unchanged.
func TestAStoreIsBroughtForwardAtTheStart(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Store) {
		h := trackertest.NewHarness(t, s)
		wantSchema(t, s, "a new store", "3", "0")
		a := h.Running(func(n *model.NewTask) { n.TaskID = "t1" })
		if err := h.Close(h.Ctx); err != nil {
			t.Fatal(err)
		}
		if err := s.Client.HDel(h.Ctx, meta, "schema", "least").Err(); err != nil {
			t.Fatal(err)
		}
		before := s.Dump(t)
		again := trackertest.Open(t, tracker.Options{RedisURL: s.URL, Scripts: s.Scripts, RedisTimeout: 10 * time.Second})
		wantSchema(t, s, "a store from before", "3", "0")
		after := s.Dump(t)
		delete(before, meta)
		delete(after, meta)
		if !reflect.DeepEqual(before, after) {
			t.Errorf("more than the version has changed:\n%v\n%v", before, after)
		}
		b := &beats.Beat{Attempt: a}
		if again.Beats.Beat(b); b.Err != nil {
			t.Errorf("its task is refused: %v", b.Err)
		}
	})
}

// Tasks and workers of a release without lists by queue are listed at the start as this release lists them, in every shard and in any
// number.
func TestWhatQueuesHaveIsListed(t *testing.T) {
	trackertest.Claims(t, func(c *trackertest.Fleet) {
		const many = 230 // more than one script lists
		for i := range many {
			c.Hire(fmt.Sprintf("w%d", i), func(n *model.NewWorker) { n.Labels = map[string]string{"n": fmt.Sprint(i)} })
		}
		do := func(_ any, err error) {
			c.Helper()
			if err != nil {
				c.Fatal(err)
			}
		}
		do(c.Workers.Cordon(c.Ctx, trackertest.Scope, c.IDs["w1"], ""))
		do(c.Workers.Drain(c.Ctx, trackertest.Scope, c.IDs["w2"], workers.Drain{}))
		do(c.Workers.Retire(c.Ctx, trackertest.Scope, c.IDs["w3"], model.WorkerForced, ""))
		for i := range many + 2 {
			c.MustQueue(fmt.Sprint("t", i), "x")
		}
		for i := range many / 5 {
			c.MustClaim(fmt.Sprint("w", 10+i), 5)
		}
		c.MustCreate(func(n *model.NewTask) { n.TaskID = "pushed" })
		first := c.MustClaim("w9", 1)[0].Attempt
		do(c.Beats.Complete(c.Ctx, first, model.Completion{Outcome: model.Succeeded}))
		do(nil, c.Close(c.Ctx))
		before, removed := c.Store.Dump(c), 0
		for shard := range 2 {
			for set, kind := range map[string]string{"ix": "{", "workers": "}"} {
				key := fmt.Sprintf("lubdub:{%d}:%s", shard, set)
				named := redis.ZRangeArgs{Key: key, ByLex: true, Start: "[" + kind, Stop: "(" + kind + "~"}
				for _, entry := range c.Store.Client.ZRangeArgs(c.Ctx, named).Val() {
					c.Remove(key, entry)
					removed++
				}
			}
		}
		if removed != 2*many {
			c.Errorf("%d workers and %d attempts were listed as %d", many, many, removed)
		}
		do(nil, c.Store.Client.HSet(c.Ctx, meta, "schema", 2).Err())
		trackertest.OpenOn(c, c.Store, func(o *tracker.Options) { o.Shards = 2 })
		if after := c.Store.Dump(c); !reflect.DeepEqual(before, after) {
			c.Errorf("listed otherwise than before:\n%v\n%v", before, after)
		}
	})
}

// Each step of this program lets the previous release continue, and is in the documents.
func TestTheStepsOfThisProgram(t *testing.T) {
	names, least := store.SchemaSteps()
	table, err := os.ReadFile("../../docs/upgrades.md")
	if err != nil {
		t.Fatal(err)
	}
	for i, name := range names {
		if row := fmt.Sprintf(" | %d | %d | ", i+1, least[i]); !strings.Contains(string(table), row) {
			t.Errorf("docs/upgrades.md has no release with%s", row)
		}
		if name == "" || least[i] < 0 || least[i] > i || i > 0 && least[i] < least[i-1] {
			t.Errorf("step %d (%q) requires version %d: programs of the version before must continue, and none that an earlier step shut out",
				i+1, name, least[i])
		}
	}
}

// The log has each upgrade step of an older store, and none of a new store.
func TestOnlyAnOlderStoreLogsItsUpgrade(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Store) {
		var log bytes.Buffer
		start := func() int {
			log.Reset()
			tr, err := tracker.Open(t.Context(), tracker.Options{RedisURL: s.URL, Scripts: s.Scripts,
				Logger: slog.New(slog.NewTextHandler(&log, nil))})
			if err == nil {
				err = tr.Close(t.Context())
			}
			if err != nil {
				t.Fatal(err)
			}
			return strings.Count(log.String(), "brought forward")
		}
		if n := start(); n != 0 {
			t.Errorf("a new store: %s", &log)
		}
		if n := start(); n != 0 {
			t.Errorf("one of this version: %s", &log)
		}
		names, _ := store.SchemaSteps()
		if err := s.Client.HDel(t.Context(), meta, "schema", "least").Err(); err != nil {
			t.Fatal(err)
		}
		if n := start(); n != len(names) {
			t.Errorf("%d of %d steps of an older one: %s", n, len(names), &log)
		}
	})
}

// steps returns a list of steps that record their runs.
func steps(ran *[]string, least ...int) (made []store.SchemaStep) {
	for i, l := range least {
		name := fmt.Sprintf("step %d", i+1)
		made = append(made, store.SchemaStep{Name: name, Least: l, Run: func() error { *ran = append(*ran, name); return nil }})
	}
	return made
}

// Steps run in order, once each, from any version of the store; after a failure the failed step is the next to run.
func TestStepsAreDoneInTheirOrder(t *testing.T) {
	trackertest.Contract(t, func(h *trackertest.Harness) {
		var ran []string
		made := steps(&ran, 0, 0, 0, 0, 1)
		settle := func(made []store.SchemaStep, want string) {
			h.Helper()
			ran = nil
			if err := h.Tracker.Store.SettleSchema(h.Ctx, made); err != nil {
				h.Fatal(err)
			}
			if got := strings.Join(ran, ", "); got != want {
				h.Errorf("ran %q, want %q", got, want)
			}
		}
		settle(made[:1], "")
		broken := made[3]
		broken.Run = func() error { return errors.New("the disk is full") }
		err := h.Tracker.Store.SettleSchema(h.Ctx, []store.SchemaStep{made[0], made[1], made[2], broken, made[4]})
		if err == nil || !strings.Contains(err.Error(), "version 4 ") || !strings.Contains(err.Error(), "(step 4): the disk is full") {
			h.Errorf("a step that fails is reported as %v", err)
		}
		wantSchema(h, h.Store, "a step failed", "3", "0")
		settle(made[:4], "step 4")
		wantSchema(h, h.Store, "it was done again", "4", "0")
		settle(made, "step 5")
		settle(made, "")
		settle(made[:2], "")
		wantSchema(h, h.Store, "everything was done, and an older one came", "5", "1")
		if err := h.Tracker.Store.SettleSchema(h.Ctx, nil); err == nil {
			h.Error("a program of version 0 may run where 1 is the least")
		}
		h.Store.Client.HSet(h.Ctx, meta, "schema", 1)
		settle(made[:3], "step 2, step 3")
		wantSchema(h, h.Store, "an older program created it again", "3", "1")
	})
}

// Any number of replicas that start at once bring a store to the same version, and no number decreases on the way.
func TestManyBringAStoreForwardAtOnce(t *testing.T) {
	trackertest.Contract(t, func(h *trackertest.Harness) {
		for round := range 10 {
			h.Store.Client.HDel(h.Ctx, meta, "schema", "least")
			var ran [4]atomic.Int64
			var made []store.SchemaStep
			for i := range ran {
				made = append(made, store.SchemaStep{Name: fmt.Sprint(i), Least: i / 2, Run: func() error {
					for before := range i {
						if ran[before].Load() == 0 {
							return fmt.Errorf("step %d runs before %d", i, before)
						}
					}
					ran[i].Add(1)
					return nil
				}})
			}
			var all sync.WaitGroup
			for n := range 8 {
				all.Go(func() {
					if err := h.Tracker.Store.SettleSchema(h.Ctx, made[:3+n%2]); err != nil {
						h.Errorf("round %d: %v", round, err)
					}
				})
			}
			all.Wait()
			wantSchema(h, h.Store, "all are done", "4", "1")
		}
	})
}

// When the reply to recording a version is lost, the next start finds it recorded, or records it.
func TestALostAnswerOfAStepIsMadeGood(t *testing.T) {
	trackertest.Contract(t, func(h *trackertest.Harness) {
		var ran []string
		made := steps(&ran, 0, 0, 0, 0)
		trackertest.FailCalls(h.Tracker, "schema", true, func(i int) bool { return i == 0 })
		if err := h.Tracker.Store.SettleSchema(h.Ctx, made); model.CodeOf(err) != model.Unavailable {
			h.Errorf("the answer was lost: %v", err)
		}
		if err := h.Tracker.Store.SettleSchema(h.Ctx, made); err != nil {
			h.Error(err)
		}
		wantSchema(h, h.Store, "again", "4", "0")
	})
}

// A store that needs a newer program is refused at the start, with what to do, and stays unchanged.
func TestANewerStoreIsRefused(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Store) {
		h := trackertest.NewHarness(t, s)
		h.MustCreate()
		if err := h.Close(h.Ctx); err != nil {
			t.Fatal(err)
		}
		set := func(fields ...any) map[string]any {
			t.Helper()
			if err := s.Client.HSet(h.Ctx, meta, fields...).Err(); err != nil {
				t.Fatal(err)
			}
			return s.Dump(t)
		}
		refused := func(before map[string]any, words ...string) {
			t.Helper()
			_, err := tracker.Open(t.Context(), tracker.Options{RedisURL: s.URL, Scripts: s.Scripts, Logger: trackertest.Quiet,
				RedisTimeout: trackertest.PatientRedis})
			for _, w := range words {
				if err == nil || !strings.Contains(err.Error(), w) {
					t.Errorf("refused with %q, want %q in it", err, w)
				}
			}
			if after := s.Dump(t); !maps.EqualFunc(before, after, reflect.DeepEqual) {
				t.Errorf("it was changed:\n%v\n%v", before, after)
			}
		}
		refused(set("schema", 7, "least", 6), "version 7", "version 6 or newer", "knows 3", "docs/upgrades.md")
		refused(set("schema", "new"), meta, `"new"`)
		refused(set("schema", 7, "least", -1), meta, `"-1"`)

		set("schema", 7, "least", 1) // programs of this version may continue
		again := trackertest.Open(t, tracker.Options{RedisURL: s.URL, Scripts: s.Scripts, RedisTimeout: 10 * time.Second})
		again.Store.CheckSchema()
		wantSchema(t, s, "a newer one that this one may run on", "7", "1")
		trackertest.NewTask(t, again, "t1")
	})
}

// A replica that a newer program has made obsolete ends: it logs why and what to do, sends nothing more, and its waiting callers are sent
// to other replicas.
func TestAReplicaThatIsLeftBehindEnds(t *testing.T) {
	trackertest.Contract(t, func(h *trackertest.Harness) {
		a := h.Running()
		brought := func(version, least int) {
			h.Helper()
			if err := h.Store.Client.HSet(h.Ctx, meta, "schema", version, "least", least).Err(); err != nil {
				h.Fatal(err)
			}
			h.Tracker.Store.CheckSchema()
		}
		brought(4, 3)
		if err := h.Tracker.Store.BrokenBy(); err != nil {
			h.Fatalf("it ends though it may run: %v", err)
		}
		if b := h.MustBeat(a, ""); b.Err != nil {
			h.Fatal(b.Err)
		}
		brought(5, 4)
		if err := h.Tracker.Store.BrokenBy(); err == nil || !strings.Contains(err.Error(), "version 5 of the stored format") {
			h.Errorf("it ends by %v", err)
		}
		count := trackertest.CountScripts(h.Tracker)
		for _, err := range []error{h.MustBeat(a, "").Err, h.Beats.Tick()} {
			if model.CodeOf(err) != model.Unavailable || !strings.Contains(err.Error(), "newer release") {
				h.Errorf("a later caller gets %v", err)
			}
		}
		if n := len(count()); n > 0 {
			h.Errorf("it still runs %d scripts", n)
		}
	})
}

// A store that was lost or partly deleted while replicas run gets its version again soon after any program has founded it again.
func TestALostStoreGetsItsVersionAgain(t *testing.T) {
	trackertest.Contract(t, func(h *trackertest.Harness) {
		if err := h.Store.Client.FlushDB(h.Ctx).Err(); err != nil {
			h.Fatal(err)
		}
		h.Store.Clock.Set(h.Store.Clock.Now()) // it was in the store
		h.Tracker.Store.CheckSchema()
		if n := h.Store.Client.Exists(h.Ctx, meta).Val(); n > 0 {
			h.Fatal("a version without the number of shards: no program would create the store again")
		}
		h.MustTick()
		h.Tracker.Store.CheckSchema()
		want := map[string]string{"shards": "2", "schema": "3", "least": "0", "id": h.Tracker.Store.Deployment()}
		if got := h.Store.Client.HGetAll(h.Ctx, meta).Val(); !maps.Equal(got, want) {
			h.Errorf("meta is %v", got)
		}
		made := []store.SchemaStep{{}, {}, {}, {Name: "while it is lost", Run: func() error { return h.Store.Client.Del(h.Ctx, meta).Err() }}}
		err := h.Tracker.Store.SettleSchema(h.Ctx, made)
		if err == nil || !strings.Contains(err.Error(), "start again") || h.Store.Client.Exists(h.Ctx, meta).Val() > 0 {
			h.Errorf("lost in a step: %v", err)
		}
	})
}

// A running replica checks the version periodically.
func TestAReplicaChecksTheVersionPeriodically(t *testing.T) {
	trackertest.Contract(t, func(h *trackertest.Harness) {
		if err := h.Store.Client.HSet(h.Ctx, meta, "schema", 4, "least", 4).Err(); err != nil {
			h.Fatal(err)
		}
		select {
		case <-h.Tracker.Store.Broken():
		case <-time.After(time.Minute):
			h.Error("it has not noticed a newer store for a minute")
		}
	})
}

// On Cluster the version is stored with the number of shards.
func TestTheVersionOfACluster(t *testing.T) {
	c := redistest.StartCluster(t, 3, 0, 2*time.Second)
	first := trackertest.Open(t, tracker.Options{RedisURL: c.URL(), Shards: 8, RedisTimeout: 10 * time.Second})
	var ran []string
	if err := first.Store.SettleSchema(t.Context(), steps(&ran, 0, 0, 0, 0, 4)); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(ran, ", "); got != "step 4, step 5" {
		t.Errorf("ran %q", got)
	}
	_, err := tracker.Open(t.Context(), tracker.Options{RedisURL: c.URL(), Logger: trackertest.Quiet, RedisTimeout: trackertest.PatientRedis})
	if err == nil || !strings.Contains(err.Error(), "version 5 of the stored format") {
		t.Errorf("opened: %v", err)
	}
}
