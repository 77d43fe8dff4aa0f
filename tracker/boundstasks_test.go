package tracker_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lubdub-io/lubdub/tracker"
	"github.com/lubdub-io/lubdub/tracker/trackertest"
)

// longest is an id of as many bytes as one may have, unlike all others.
func longest(name string, i int) string {
	id := fmt.Sprintf("%s-%06d-", name, i)
	return id + strings.Repeat("x", tracker.MaxIDBytes-len(id))
}

// big is a scope with the longest name.
var big = tracker.Scope{Tenant: longest("tenant", 0), Workspace: longest("workspace", 0)}

// large makes a task as large as one can be.
func large(n *tracker.NewTask) {
	n.Scope, n.Key, n.Asset = big, strings.Repeat("k", tracker.MaxKeyBytes), longest("asset", 0)
	n.Payload = trackertest.Text(1<<20 - 2)
	n.Resources = json.RawMessage(`{"a":` + string(trackertest.Text(60<<10)) + `}`)
	n.Labels = map[string]string{}
	for i := range tracker.MaxLabels {
		n.Labels[longest("label", i)] = strings.Repeat("v", tracker.MaxLabelValBytes)
	}
}

// longReport is as long as a report may be.
var longReport = tracker.AppendReport(nil, storyBegins.UnixMilli(), []byte(longest("worker", 0)), []byte("99.999999999"),
	trackertest.Text(tracker.MaxMessageBytes-2))

const larges = 40 // large tasks, all in one shard

// largeTasks go through everything that happens to a task by its clients.
func (b *bounds) largeTasks() {
	b.Helper()
	queue, kind := longest("queue", 0), longest("type", 0)
	worker := b.registered(func(n *tracker.NewWorker) {
		n.Scope, n.Queue, n.Types, n.MaxConcurrent = big, queue, []string{kind}, 1000
	})
	var ids []string
	for i := 0; len(ids) < larges; i++ {
		id := longest("large", i)
		if b.ShardOf(big, id) != 0 {
			continue
		}
		ids = append(ids, id)
		b.MustCreate(large, func(n *tracker.NewTask) {
			n.TaskID, n.RunID, n.Queue, n.Type, n.HeartbeatTimeout = id, longest("run", 0), queue, kind, 0
			n.Retry = &tracker.RetryPolicy{MaxAttempts: tracker.MaxRetryAttempts, MaxLosses: 3, Multiplier: 1}
		})
		if len(ids) == 1 {
			b.failOften(id, queue, worker)
		} else {
			b.copyHistory(ids[0], id)
		}
	}
	for claimed := 0; claimed < larges; {
		got, err := b.Claim(b.Ctx, tracker.ClaimRequest{Scope: big, WorkerID: worker, Queue: queue, Max: tracker.MaxClaim})
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
		task, err := b.Get(b.Ctx, big, id)
		b.check("get", err)
		own, err := b.Owned(b.Ctx, big, worker, []tracker.OwnedAttempt{{TaskID: id, Number: task.Attempt}})
		b.check("owned", err)
		_, err = b.Complete(b.Ctx, own[0], tracker.Completion{Outcome: tracker.Succeeded, Output: trackertest.Text(250 << 10)})
		b.check("complete", err)
	}
}

// failOften fails a task, the only one in its queue, until its history is full.
func (b *bounds) failOften(id, queue, worker string) {
	b.Helper()
	var first *tracker.Attempt
	for n := range tracker.MaxHistory + 1 {
		got, err := b.Claim(b.Ctx, tracker.ClaimRequest{Scope: big, WorkerID: worker, Queue: queue, Max: 1})
		if err != nil || len(got) != 1 || got[0].Task.ID != id {
			b.Fatalf("failure %d: claimed %v (%v), want %s", n, trackertest.IDs(got), err, id)
		}
		a := got[0].Attempt
		b.MustBeat(a, string(longReport))
		_, err = b.Complete(b.Ctx, a, tracker.Completion{Outcome: tracker.Failed,
			Error: json.RawMessage(`{"category":"TIMEOUT","message":` + string(trackertest.Text(150<<10)) +
				`}`), Metrics: manyMetrics(100 << 10), Retryable: true})
		b.check("complete", err)
		if n == 1 {
			first = a
		}
	}
	_, err := b.Complete(b.Ctx, first, tracker.Completion{Outcome: tracker.Failed}) // looked for among the oldest
	b.check("complete again", err)
}

// manyMetrics is an object of about so many bytes.
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
	for _, f := range []tracker.TaskFilter{{}, {Type: "none"}, {Labels: map[string]string{"a": "b"}}, {Liveness: tracker.Fresh},
		{RunID: longest("run", 0)}, {FinishedBefore: b.Store.Clock.Now(), Descending: true}, {Descending: true}} {
		f.Scope, f.PageSize = big, 100
		_, err := b.List(b.Ctx, f)
		b.check("list", err)
	}
	b.check("look", b.lookAtAll())
	_, err := b.Verdicts(b.Ctx, tracker.VerdictQuery{Scope: big, Since: 365 * 24 * time.Hour, By: tracker.VerdictGroups})
	b.check("newest", err)
	var names []tracker.OwnedAttempt
	for i := range 1000 { // the oldest that are kept, and some before them
		names = append(names, tracker.OwnedAttempt{TaskID: ids[i%len(ids)], Number: i / len(ids)})
	}
	_, err = b.Owned(b.Ctx, big, worker, names)
	b.check("owned", err)
}

// herd is so many running attempts with long names, each with the longest report and a cancel with the longest reason
// pending, beaten in one batch; then all of them die at once.
func (b *bounds) herdOfTasks() {
	b.Helper()
	const n = 1000
	beats := make([]*tracker.Beat, 0, n)
	for i := range n {
		a := b.MustCreate(func(t *tracker.NewTask) { t.Scope, t.TaskID, t.RunID = big, longest("herd", i), longest("run", 1) }).Envelope.Attempt
		_, err := b.Start(b.Ctx, a, tracker.Report{})
		b.check("start", err)
		beats = append(beats, &tracker.Beat{Attempt: a, Report: string(longReport)})
	}
	why := tracker.CancelRequest{Reason: strings.Repeat("<", tracker.MaxReasonBytes)} // six times as long in JSON
	_, err := b.CancelRun(b.Ctx, big, longest("run", 1), why)
	b.check("cancel run", err)
	b.Beats(beats)
	for _, beat := range beats {
		if beat.Err != nil || beat.Cancel == nil {
			b.Fatalf("%+v", beat)
		}
	}
	for i := range n { // as if each had failed often
		if i%5 == 0 && b.ShardOf(big, longest("herd", i)) == 0 {
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
		if b.ShardOf(big, longest("large", i)) == 0 {
			return i
		}
	}
}

// everythingEnds lets all retention pass at once.
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
