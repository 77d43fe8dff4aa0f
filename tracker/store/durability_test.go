package store_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/internal/redistest"
	"github.com/lubdub-io/lubdub/internal/testenv"
	"github.com/lubdub-io/lubdub/tracker"
	"github.com/lubdub-io/lubdub/tracker/beats"
	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/store"
	"github.com/lubdub-io/lubdub/tracker/trackertest"
)

func wantNotConfirmed(t *testing.T, what string, err error) {
	t.Helper()
	if model.CodeOf(err) != model.Unavailable || !strings.Contains(err.Error(), "not confirmed") {
		t.Errorf("%s: %v, want Unavailable: not confirmed", what, err)
	}
}

// A write that replicas do not have is not acknowledged, however often it is repeated; no other call waits for them.
func TestReplicated(t *testing.T) {
	testenv.OnlyAll(t)
	t.Parallel()
	primary := redistest.StartServer(t, "--repl-diskless-sync-delay", "0")
	tr := trackertest.Open(t, tracker.Options{RedisURL: primary.URL(), Durability: store.Replicated, RedisTimeout: 4 * time.Second})
	ctx := t.Context()
	n := model.NewTask{Scope: trackertest.Scope, TaskID: "t1", IdempotencyKey: "k1", IdempotencyHash: "h"}
	if err := n.Validate(time.Now()); err != nil {
		t.Fatal(err)
	}
	_, err := tr.Tasks.Create(ctx, n)
	wantNotConfirmed(t, "a creation without a replica", err)

	replica := redistest.StartReplica(t, primary)
	var created *model.Created
	trackertest.Eventually(t, "the creation is confirmed", func() bool { created, err = tr.Tasks.Create(ctx, n); return err == nil })
	a := created.Envelope.Attempt
	done := model.Completion{Outcome: model.Succeeded}
	calls := map[string]func() error{
		"complete": func() error { _, err := tr.Beats.Complete(ctx, a, done); return err },
		"attempt":  func() error { _, err := tr.Tasks.NextAttempt(ctx, trackertest.Scope, "t2", 1); return err },
		"cancel": func() error {
			_, err := tr.Tasks.Cancel(ctx, trackertest.Scope, "t3", model.CancelRequest{Reason: "because"})
			return err
		},
	}
	patient := trackertest.Open(t, tracker.Options{RedisURL: primary.URL(), RedisTimeout: 10 * time.Second})
	trackertest.NewTask(t, patient, "t2")
	trackertest.NewTask(t, patient, "t3")
	if err := replica.Freeze(); err != nil {
		t.Fatal(err)
	}
	for _, time := range []string{"first", "second"} { // the second finds the work done
		for name, call := range calls {
			wantNotConfirmed(t, time+" "+name, call())
		}
	}
	if task, err := tr.Tasks.Get(ctx, trackertest.Scope, "t1"); err != nil || task.State != model.Succeeded {
		t.Errorf("it is done all the same: %+v %v", task, err)
	}
	b := &beats.Beat{Attempt: a}
	if tr.Beats.Beat(b); model.CodeOf(b.Err) != model.AlreadyTerminal {
		t.Errorf("a beat while the replica is frozen: %v", b.Err)
	}
	if err := replica.Thaw(); err != nil {
		t.Fatal(err)
	}
	for name, call := range calls {
		trackertest.Eventually(t, name+" is confirmed", func() bool { return call() == nil })
	}
}

// Clients that retry at once arrive just after the next flush has begun. They still have time for its end and for their own flush, so
// each gets the missing confirmation as its error, and none gets that Redis is too slow.
func TestWhatWaitsForAReplicaIsNotOverload(t *testing.T) {
	testenv.OnlyAll(t)
	t.Parallel()
	primary := redistest.StartServer(t)
	tr := trackertest.Open(t, tracker.Options{RedisURL: primary.URL(), Durability: store.Replicated, RedisTimeout: 4 * time.Second})
	create := func(client, times int) {
		n := model.NewTask{Scope: trackertest.Scope, TaskID: fmt.Sprint("t", client)}
		if err := n.Validate(time.Now()); err != nil {
			t.Error(err)
			return
		}
		for range times {
			_, err := tr.Tasks.Create(t.Context(), n)
			wantNotConfirmed(t, "a creation without a replica", err)
		}
	}
	create(0, 1) // a script that Redis does not have yet takes two flushes
	var clients sync.WaitGroup
	for client := range 12 {
		clients.Go(func() { create(client, 3) })
	}
	clients.Wait()
}

// Every flush writes, and waits in the pipeline of its writes: only then is the reply about them, and about work that a repeated call
// finds done (since Redis 7.2 WAIT is about the connection's own writes).
func TestWaitIsSentWithItsWrites(t *testing.T) {
	t.Parallel()
	primary := redistest.StartServer(t, "--repl-diskless-sync-delay", "0")
	redistest.StartReplica(t, primary)
	tr := trackertest.Open(t, tracker.Options{RedisURL: primary.URL(), Durability: store.Replicated, RedisTimeout: 10 * time.Second})
	n := model.NewTask{Scope: trackertest.Scope, TaskID: "t1", IdempotencyKey: "k1", IdempotencyHash: "h"}
	if err := n.Validate(time.Now()); err != nil {
		t.Fatal(err)
	}
	var created *model.Created
	trackertest.Eventually(t, "a new replica confirms", func() (ok bool) { // it counts from its first acknowledgement
		var err error
		created, err = tr.Tasks.Create(t.Context(), n)
		return err == nil
	})
	a := created.Envelope.Attempt
	pipelines := tr.Store.RecordPipelines()
	complete := func() {
		t.Helper()
		if _, err := tr.Beats.Complete(t.Context(), a, model.Completion{Outcome: model.Succeeded}); err != nil {
			t.Fatal(err)
		}
	}
	c := primary.Client()
	defer func() { _ = c.Close() }()
	complete()
	complete()
	if err := c.ScriptFlush(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	complete()
	unknown, known := []string{"script", "evalsha", "set", "wait"}, []string{"evalsha", "set", "wait"}
	want := [][]string{known, unknown, known, known, unknown} // the first call of a new script finds it unknown
	if got := pipelines(); !slices.EqualFunc(got, want, slices.Equal[[]string]) {
		t.Errorf("pipelines %v, want %v", got, want)
	}
}

func TestFsync(t *testing.T) {
	t.Parallel()
	s := redistest.StartServer(t)
	c := s.Client()
	defer func() { _ = c.Close() }()
	opts := tracker.Options{RedisURL: s.URL(), Durability: store.Fsync, Logger: trackertest.Quiet, RedisTimeout: 10 * time.Second}
	set := func(name, value string) {
		t.Helper()
		if err := c.ConfigSet(t.Context(), name, value).Err(); err != nil {
			t.Fatal(err)
		}
	}
	hasWaitAOF, err := redistest.HasWAITAOF()
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct{ name, value, missing string }{
		{"appendonly", "no", "appendonly yes"},
		{"appendonly", "yes", "appendfsync always"},
		{"no-appendfsync-on-rewrite", "yes", "no-appendfsync-on-rewrite no"},
	} {
		if hasWaitAOF && step.name+step.value != "appendonlyno" {
			break // WAITAOF waits for the sync, whatever causes it
		}
		set(step.name, step.value)
		tr, err := tracker.Open(t.Context(), opts)
		if err == nil {
			_ = tr.Close(t.Context())
			t.Fatalf("started with %s %s", step.name, step.value)
		}
		if !strings.Contains(err.Error(), step.missing) || !strings.Contains(err.Error(), "redis.conf") {
			t.Errorf("the error lacks what is missing (%s), or the remedy: %v", step.missing, err)
		}
	}
	set("appendonly", "yes")
	set("appendfsync", "always")
	set("no-appendfsync-on-rewrite", "no")
	tr := trackertest.Open(t, opts)
	a := trackertest.NewTask(t, tr, "t1")
	complete := func() error {
		_, err := tr.Beats.Complete(t.Context(), a, model.Completion{Outcome: model.Succeeded})
		return err
	}
	set("appendfsync", "everysec") // as a failover to a server with other settings would
	if hasWaitAOF {
		set("appendonly", "no")
	}
	wantNotConfirmed(t, "with other settings", complete())
	set("appendonly", "yes")
	set("appendfsync", "always")
	if err := complete(); err != nil {
		t.Errorf("again with always: %v", err)
	}
}

func TestDurabilityNeedsARealRedis(t *testing.T) {
	t.Parallel()
	s := redistest.Miniredis(t)
	for _, o := range []tracker.Options{
		{RedisURL: s.URL, Durability: store.Fsync},
		{RedisURL: s.URL, Durability: store.Replicated},
		{RedisURL: s.URL, Durability: "eventual"},
		{RedisURL: s.URL, DurableReplicas: -1},
		{RedisURL: s.URL, DurableReplicas: 17},
	} {
		if tr, err := tracker.Open(t.Context(), o); err == nil {
			_ = tr.Close(t.Context())
			t.Errorf("started with durability %s, replicas %d", o.Durability, o.DurableReplicas)
		}
	}
	trackertest.Open(t, tracker.Options{RedisURL: s.URL})
}
