package tasks

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"time"

	"github.com/lubdub-io/lubdub/tracker/beats"
	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/schema"
	"github.com/lubdub-io/lubdub/tracker/store"
)

// Create creates a task. A task without a queue is dispatched at once and comes with its envelope.
//
// With an idempotency key the key is reserved first, with the id that the task will have, and marked after the
// creation; whatever is cut off in between is completed by the repeat, which gets the first answer. A repeat that comes
// after the deadline only finds what there is: it reserves and creates nothing.
func (t *Service) Create(ctx context.Context, n model.NewTask) (*model.Created, error) {
	r := t.CreateBatch(ctx, []model.NewTask{n})[0]
	return r.Created, r.Err
}

// CreateResult is one of CreateBatch's.
type CreateResult struct {
	Created *model.Created
	Err     error
}

// creation is one task on its way through CreateBatch.
type creation struct {
	model.NewTask
	fence string
	err   error
	done  bool // the answer is known, from the reservation
	made  bool // the store was told
	at    time.Time
}

// CreateBatch creates many tasks in as many round trips as one takes; each has a result of its own.
func (t *Service) CreateBatch(ctx context.Context, tasks []model.NewTask) []CreateResult {
	ctx = t.store.Within(ctx, 0)
	batch := make([]*creation, len(tasks))
	for i, n := range tasks {
		if n.TaskID == "" {
			n.TaskID = model.NewID("task_")
		}
		batch[i] = &creation{NewTask: n, fence: model.NewFence()}
	}
	t.checkPins(ctx, batch)
	settle := t.admitBatch(ctx, batch)
	t.reserve(ctx, batch, func(c *creation) bool { return c.err == nil })
	givenBack := t.placeBatch(ctx, batch)
	t.CreateAll(ctx, batch)
	givenBack()
	settle()
	t.reserve(ctx, batch, func(c *creation) bool { return !c.done && c.err == nil })
	results := make([]CreateResult, len(batch))
	for i, c := range batch {
		if c.err != nil {
			results[i].Err = c.err
			continue
		}
		results[i].Created = t.created(c)
	}
	return results
}

// reserve settles what the idempotency keys of those that want it stand for.
func (t *Service) reserve(ctx context.Context, batch []*creation, want func(*creation) bool) {
	var calls []*store.Call
	var asked []*creation
	for _, c := range batch {
		if c.IdempotencyKey == "" || !want(c) {
			continue
		}
		created, life := "", model.Millis(model.IdempotencyRetention)
		switch {
		case !c.at.IsZero():
			created = strconv.FormatInt(c.at.UnixMilli(), 10)
		case c.Late != nil:
			life = 0
		}
		shard := t.store.ShardOf(c.Scope, c.IdempotencyKey)
		key := t.store.Keys[shard].Idempotency(c.Scope, c.IdempotencyKey)
		calls = append(calls, store.NewCall(shard, t.store.Scripts.Get("idempotency_key"), []string{key},
			c.IdempotencyHash, c.TaskID, c.fence, life, created, c.WorkerID))
		asked = append(asked, c)
	}
	t.store.DoDurably(ctx, "create", calls...)
	for i, c := range asked {
		r := calls[i].Reply
		switch {
		case calls[i].Err != nil:
			c.err = calls[i].Err
		case r.Int(0) != 1:
			c.err = &model.Error{Code: model.IdempotencyMismatch, Op: "create", Message: "this idempotency key was used with another body within the last 24 h; use a new key for a new task, or repeat the first body"}
		case r.Str(1) == "":
			c.err = c.Late
		default:
			c.TaskID, c.fence = r.Str(1), r.Str(2)
			if at := schema.ParseMillis(r.Str(3)); !at.IsZero() {
				c.at, c.done, c.WorkerID = at, true, r.Str(4)
			}
		}
	}
}

// CreateAll creates those of a batch that nothing is known of yet.
func (t *Service) CreateAll(ctx context.Context, batch []*creation) {
	var calls []*store.Call
	var asked []*creation
	for _, c := range batch {
		if c.err != nil {
			continue
		}
		if c.RunID == "" {
			if c.RunID = schema.RunOf(c.TaskID); c.RunID == "" {
				sum := sha256.Sum256([]byte(schema.TaskName(c.Scope, c.TaskID))) // too long to name a run after; a repeat must get the same
				c.RunID = "run_" + hex.EncodeToString(sum[:16])
			}
		}
		if !c.done && !c.made {
			c.made = true
			calls = append(calls, t.createCall(c))
			asked = append(asked, c)
		}
	}
	t.store.DoDurably(ctx, "create", calls...)
	for i, c := range asked {
		if c.err = calls[i].Err; c.err != nil {
			continue
		}
		switch calls[i].Reply.Int(0) {
		case schema.CodeNotFound:
			c.err = c.Late
			continue
		case schema.CodeExists:
			c.err = &model.Error{Code: model.Exists, Op: "create", Message: "a task with this id exists in this workspace; choose another taskId, or leave it out and Lubdub makes one"}
			continue
		}
		c.at, c.WorkerID = calls[i].Reply.Time(1), calls[i].Reply.Str(2)
	}
}

func (t *Service) createCall(c *creation) *store.Call {
	shard := t.store.ShardOf(c.Scope, c.TaskID)
	k := t.store.Keys[shard]
	timeout := strconv.FormatInt(model.Millis(c.HeartbeatTimeout), 10)
	keys := k.OfTask(append([]string(nil), k.Fixed...), c.Scope, c.TaskID, c.RunID, timeout)
	keys = append(keys, k.Fences)

	state, start := model.Queued, ""
	if c.Queue == "" {
		state = model.Dispatched
		start = strconv.FormatInt(model.Millis(startTimeout(c.Queue, c.StartTimeout, tokenLife(c.TokenTTL, c.Deadline, time.Now()))), 10)
	}
	letter := schema.Letters(state)
	if c.Late != nil {
		letter = ""
	}
	record := c.record()
	args := []any{c.Scope.String(), c.TaskID, letter, c.fence, timeout, schema.MillisOrEmpty(c.Deadline), start,
		schema.MillisOrEmpty(c.NotBefore), len(record) / 2}
	return store.NewCall(shard, t.store.Scripts.Get("create"), keys, append(append(args, record...), c.document()...)...)
}

// record gives the fields of the task's hash; lua/lib/task.lua names them. Defaults are left out.
func (c *creation) record() []any {
	var f []any
	add := func(name, value, absent string) {
		if value != absent {
			f = append(f, name, value)
		}
	}
	addMs := func(name string, d, absent time.Duration) {
		if d != absent {
			f = append(f, name, model.Millis(d))
		}
	}
	add("u", c.RunID, schema.RunOf(c.TaskID))
	add("k", c.Key, "")
	add("as", c.Asset, "")
	add("q", c.Queue, "")
	add("y", c.Type, "")
	add("rn", c.Runtime, "")
	add("pn", c.WorkerID, "")
	add("pl", c.Placement, "")
	add("wl", schema.LabelsHash(c.WorkerLabels), "")
	addMs("i", c.HeartbeatInterval, model.DefaultHeartbeatInterval)
	addMs("g", c.CancelGrace, model.DefaultCancelGrace)
	addMs("so", c.StartTimeout, 0)
	addMs("rt", c.RunTimeout, 0)
	if c.TokenTTL != 0 {
		f = append(f, "lt", int64(c.TokenTTL/time.Second))
	}
	if life := tokenLife(c.TokenTTL, c.Deadline, time.Now()); c.Queue == "" && life != model.DefaultTokenTTL {
		f = append(f, "l", int64(life/time.Second))
	}
	if c.NoRenewToken {
		f = append(f, "nr", 1)
	}
	add("x", schema.MillisOrEmpty(c.Deadline), "")
	add("nb", schema.MillisOrEmpty(c.NotBefore), "")
	add("n", schema.MillisOrEmpty(c.NotBefore), "")
	if p := c.policy(); p != nil {
		f = append(f, "p", schema.PackPolicy(p))
	}
	return f
}

func (c *creation) policy() *model.RetryPolicy {
	if c.Queue != "" && c.Retry == nil {
		p := model.DefaultRetryPolicy
		return &p
	}
	return c.Retry
}

// document gives what may be long: one long value in the record would cost a kilobyte for each task.
func (c *creation) document() []any {
	var d []any
	d = beats.AppendDoc(d, "payload", string(c.Payload))
	d = beats.AppendDoc(d, "resources", string(c.Resources))
	d = beats.AppendDoc(d, "labels", model.PackLabels(c.Labels))
	d = beats.AppendDoc(d, "workerLabels", model.PackLabels(c.WorkerLabels))
	return d
}

// tokenLife is how long the token of an attempt dispatched now lives.
func tokenLife(asked time.Duration, deadline, now time.Time) time.Duration {
	if asked != 0 {
		return asked
	}
	life := model.DefaultTokenTTL
	if !deadline.IsZero() {
		need := deadline.Sub(now).Truncate(time.Second) + time.Second
		life = min(max(life, need), model.MaxTokenTTL)
	}
	return life
}

// startTimeout is how long a dispatched attempt may stay unheard.
func startTimeout(queue string, asked, tokenLife time.Duration) time.Duration {
	switch {
	case asked != 0:
		return asked
	case queue != "":
		return model.DefaultClaimStartTimeout
	}
	return tokenLife
}

// created makes the answer from the request, the time of creation and the worker that was chosen then, so that a repeat
// gets the same.
func (t *Service) created(c *creation) *model.Created {
	task := &model.Task{
		Scope: c.Scope, ID: c.TaskID, RunID: c.RunID, Key: c.Key, Asset: c.Asset, Type: c.Type, Queue: c.Queue,
		Runtime: c.Runtime, WorkerID: c.WorkerID, State: model.Queued, CreatedAt: c.at, Deadline: c.Deadline, NotBefore: c.NotBefore,
		NextAttemptAt: c.NotBefore, Payload: c.Payload, Resources: c.Resources, Labels: c.Labels,
		WorkerLabels: c.WorkerLabels, HeartbeatInterval: c.HeartbeatInterval, HeartbeatTimeout: c.HeartbeatTimeout,
		CancelGrace: c.CancelGrace, StartTimeout: c.StartTimeout, RunTimeout: c.RunTimeout, TokenTTL: c.TokenTTL,
		NoRenewToken: c.NoRenewToken, Retry: c.policy(),
	}
	if c.Queue != "" {
		return &model.Created{Task: task}
	}
	task.State, task.Attempt, task.DispatchedAt = model.Dispatched, 1, c.at
	return &model.Created{Task: task, Envelope: t.Envelope(task, c.fence, tokenLife(c.TokenTTL, c.Deadline, c.at))}
}

// Envelope names the current attempt of a dispatched task.
func (t *Service) Envelope(task *model.Task, fence string, life time.Duration) *model.Envelope {
	e := &model.Envelope{
		Task: task, TokenTTL: life, RenewToken: !task.NoRenewToken,
		Attempt: t.beats.Attempt(model.Attempt{
			Scope: task.Scope, TaskID: task.ID, RunID: task.RunID, Number: task.Attempt, Fence: fence,
			Timeout: task.HeartbeatTimeout, Interval: task.HeartbeatInterval, IssuedAt: task.DispatchedAt, WorkerID: claimedBy(task),
			Deadline: deadlineMs(task.Deadline),
		}),
	}
	if n := len(task.History); n > 0 && task.History[n-1].LastProgress != (model.Progress{}) {
		p := task.History[n-1].LastProgress
		e.LastProgress = &p
	}
	return e
}

func deadlineMs(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

// claimedBy gives the worker that a queue task was handed to; a pushed task is anyone's who gets its envelope.
func claimedBy(task *model.Task) string {
	if task.Queue == "" {
		return ""
	}
	return task.WorkerID
}
