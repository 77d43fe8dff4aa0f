package tracker_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lubdub-io/lubdub/tracker/beats"
	"github.com/lubdub-io/lubdub/tracker/holdings"
	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/queues"
	"github.com/lubdub-io/lubdub/tracker/schema"
	"github.com/lubdub-io/lubdub/tracker/stats"
	"github.com/lubdub-io/lubdub/tracker/trackertest"
)

// longest returns a unique ID of the largest length.
func longest(name string, i int) string {
	id := fmt.Sprintf("%s-%06d-", name, i)
	return id + strings.Repeat("x", model.MaxIDBytes-len(id))
}

// big is a scope with the longest name.
var big = model.Scope{Tenant: longest("tenant", 0), Workspace: longest("workspace", 0)}

// large makes a task as large as possible.
func large(n *model.NewTask) {
	n.Scope, n.Key, n.Asset = big, strings.Repeat("k", model.MaxKeyBytes), longest("asset", 0)
	n.Payload = trackertest.Text(1<<20 - 2)
	n.Resources = json.RawMessage(`{"a":` + string(trackertest.Text(60<<10)) + `}`)
	n.Labels = map[string]string{}
	for i := range model.MaxLabels {
		n.Labels[longest("label", i)] = strings.Repeat("v", model.MaxLabelValBytes)
	}
}

// longReport is the longest possible report.
var longReport = schema.AppendReport(nil, storyBegins.UnixMilli(), []byte(longest("worker", 0)), []byte("99.999999999"),
	trackertest.Text(model.MaxMessageBytes-2))

const larges = 40 // large tasks, all in one shard

// largeTasks does everything that clients can do to a task.
func (b *bounds) largeTasks() {
	b.Helper()
	queue, kind := longest("queue", 0), longest("type", 0)
	worker := b.registered(func(n *model.NewWorker) {
		n.Scope, n.Queue, n.Types, n.MaxConcurrent = big, queue, []string{kind}, 1000
	})
	var ids []string
	for i := 0; len(ids) < larges; i++ {
		id := longest("large", i)
		if b.Tracker.Store.ShardOf(big, id) != 0 {
			continue
		}
		ids = append(ids, id)
		b.MustCreate(large, func(n *model.NewTask) {
			n.TaskID, n.RunID, n.Queue, n.Type, n.HeartbeatTimeout = id, longest("run", 0), queue, kind, 0
			n.Retry = &model.RetryPolicy{MaxAttempts: model.MaxRetryAttempts, MaxLosses: 3, Multiplier: 1}
		})
		if len(ids) == 1 {
			b.failOften(id, queue, worker)
		} else {
			b.copyHistory(ids[0], id)
		}
	}
	for claimed := 0; claimed < larges; {
		got, err := b.Queues.Claim(b.Ctx, queues.ClaimRequest{Scope: big, WorkerID: worker, Queue: queue, Max: queues.MaxClaim})
		if err != nil || len(got) == 0 {
			b.Fatalf("%d claimed: %v", claimed, err)
		}
		claimed += len(got)
		for _, e := range got {
			b.MustBeat(e.Attempt, string(longReport))
		}
	}
	b.readLarge(ids, worker)
	for _, id := range ids {
		task, err := b.Tasks.Get(b.Ctx, big, id)
		b.check("get", err)
		own, err := b.Holdings.Owned(b.Ctx, big, worker, []holdings.OwnedAttempt{{TaskID: id, Number: task.Attempt}})
		b.check("owned", err)
		_, err = b.Beats.Complete(b.Ctx, own[0], model.Completion{Outcome: model.Succeeded, Output: trackertest.Text(250 << 10)})
		b.check("complete", err)
	}
}

// failOften fails a task, the only one in its queue, until its history is full.
func (b *bounds) failOften(id, queue, worker string) {
	b.Helper()
	var first *model.Attempt
	for n := range model.MaxHistory + 1 {
		got, err := b.Queues.Claim(b.Ctx, queues.ClaimRequest{Scope: big, WorkerID: worker, Queue: queue, Max: 1})
		if err != nil || len(got) != 1 || got[0].Task.ID != id {
			b.Fatalf("failure %d: claimed %v (%v), want %s", n, trackertest.IDs(got), err, id)
		}
		a := got[0].Attempt
		b.MustBeat(a, string(longReport))
		_, err = b.Beats.Complete(b.Ctx, a, model.Completion{Outcome: model.Failed,
			Error: json.RawMessage(`{"category":"TIMEOUT","message":` + string(trackertest.Text(150<<10)) +
				`}`), Metrics: manyMetrics(100 << 10), Retryable: true})
		b.check("complete", err)
		if n == 1 {
			first = a
		}
	}
	_, err := b.Beats.Complete(b.Ctx, first, model.Completion{Outcome: model.Failed}) // must be found among the oldest
	b.check("complete again", err)
}

// manyMetrics returns an object of about that many bytes.
func manyMetrics(size int) json.RawMessage {
	m := []byte(`{"m":0`)
	for i := 0; len(m) < size; i++ {
		m = fmt.Appendf(m, `,"metric-%d":%d`, i, i)
	}
	return append(m, '}')
}

func (b *bounds) copyHistory(from, to string) {
	b.Helper()
	key := func(id string) string {
		return strings.Replace(trackertest.TaskRecord(b.Tracker, big, id), ":task:", ":history:", 1)
	}
	b.check("copy", b.Store.Client.Copy(b.Ctx, key(from), key(to), 0, true).Err())
}

func (b *bounds) readLarge(ids []string, worker string) {
	b.Helper()
	for _, f := range []model.TaskFilter{{}, {Type: "none"}, {Labels: map[string]string{"a": "b"}}, {Liveness: model.Fresh},
		{RunID: longest("run", 0)}, {FinishedBefore: b.Store.Clock.Now(), Descending: true}, {Descending: true}} {
		f.Scope, f.PageSize = big, 100
		_, err := b.Tasks.List(b.Ctx, f)
		b.check("list", err)
	}
	b.check("look", b.readStats())
	_, err := b.Stats.Verdicts(b.Ctx, stats.VerdictQuery{Scope: big, Since: 365 * 24 * time.Hour, By: stats.VerdictGroups})
	b.check("newest", err)
	var names []holdings.OwnedAttempt
	for i := range 1000 { // the oldest ones stored, and some before them
		names = append(names, holdings.OwnedAttempt{TaskID: ids[i%len(ids)], Number: i / len(ids)})
	}
	_, err = b.Holdings.Owned(b.Ctx, big, worker, names)
	b.check("owned", err)
}

// herdOfTasks creates running attempts with long names, each with the longest report and a pending cancel with the longest reason, sends
// beats for all in one batch, and then lets all die at once.
func (b *bounds) herdOfTasks() {
	b.Helper()
	const n = 1000
	batch := make([]*beats.Beat, 0, n)
	for i := range n {
		a := b.MustCreate(func(t *model.NewTask) { t.Scope, t.TaskID, t.RunID = big, longest("herd", i), longest("run", 1) }).Envelope.Attempt
		_, err := b.Beats.Start(b.Ctx, a, model.Report{})
		b.check("start", err)
		detailed := &beats.Beat{Attempt: a, Report: string(longReport), Details: strings.Repeat("1", model.MaxDetailsBytes)}
		b.Beats.Beat(detailed)
		b.check("start", detailed.Err)
		batch = append(batch, &beats.Beat{Attempt: a, Report: string(longReport)})
	}
	why := model.CancelRequest{Reason: strings.Repeat("<", model.MaxReasonBytes)} // six times as long in JSON
	_, err := b.Tasks.CancelRun(b.Ctx, big, longest("run", 1), why)
	b.check("cancel run", err)
	b.Beats.BeatMany(batch)
	for _, beat := range batch {
		if beat.Err != nil || beat.Cancel == nil {
			b.Fatalf("%+v", beat)
		}
	}
	for i := range n { // as if each had failed often
		if i%5 == 0 && b.Tracker.Store.ShardOf(big, longest("herd", i)) == 0 {
			b.copyHistory(longest("large", b.firstLarge()), longest("herd", i))
		}
	}
	for range 2 { // the brake holds them once
		b.Advance(3 * time.Second)
		b.MustSweep()
	}
}

func (b *bounds) firstLarge() int {
	for i := 0; ; i++ {
		if b.Tracker.Store.ShardOf(big, longest("large", i)) == 0 {
			return i
		}
	}
}

// everythingEnds lets all retention times pass at once.
func (b *bounds) everythingEnds() {
	b.Helper()
	b.Store.Clock.Advance(25 * time.Hour)
	b.MustTick()
	b.MustSweep()
	if left, err := b.Store.Client.Exists(b.Ctx, trackertest.TaskRecord(b.Tracker, big,
		longest("large", b.firstLarge()))).Result(); err != nil && err != redis.Nil || left != 0 {
		b.Fatalf("%d large tasks are left: %v", left, err)
	}
}
