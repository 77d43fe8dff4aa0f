package tracker

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"strconv"
	"time"
)

// Create creates a task. A task without a queue is dispatched at once and comes with its envelope.
//
// With an idempotency key the key is reserved first, with the id that the task will have, and marked after the
// creation; whatever is cut off in between is completed by the repeat, which gets the first answer. A repeat that comes
// after the deadline only finds what there is: it reserves and creates nothing.
func (t *Tracker) Create(ctx context.Context, n NewTask) (*Created, error) {
	r := t.CreateBatch(ctx, []NewTask{n})[0]
	return r.Created, r.Err
}

// CreateResult is one of CreateBatch's.
type CreateResult struct {
	Created *Created
	Err     error
}

// creation is one task on its way through CreateBatch.
type creation struct {
	NewTask
	fence string
	err   error
	done  bool // the answer is known, from the reservation
	made  bool // the store was told
	at    time.Time
}

// CreateBatch creates many tasks in as many round trips as one takes; each has a result of its own.
func (t *Tracker) CreateBatch(ctx context.Context, tasks []NewTask) []CreateResult {
	t = t.within(ctx, 0)
	batch := make([]*creation, len(tasks))
	for i, n := range tasks {
		if n.TaskID == "" {
			n.TaskID = newID("task_")
		}
		batch[i] = &creation{NewTask: n, fence: newFence()}
	}
	t.checkPins(batch)
	settle := t.admitBatch(batch)
	t.reserve(batch, func(c *creation) bool { return c.err == nil })
	givenBack := t.placeBatch(batch)
	t.create(batch)
	givenBack()
	settle()
	t.reserve(batch, func(c *creation) bool { return !c.done && c.err == nil })
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
func (t *Tracker) reserve(batch []*creation, want func(*creation) bool) {
	var calls []*call
	var asked []*creation
	for _, c := range batch {
		if c.IdempotencyKey == "" || !want(c) {
			continue
		}
		created, life := "", ms(IdempotencyRetention)
		switch {
		case !c.at.IsZero():
			created = strconv.FormatInt(c.at.UnixMilli(), 10)
		case c.late != nil:
			life = 0
		}
		shard := t.store.shardOf(c.Scope, c.IdempotencyKey)
		key := t.store.keys[shard].idempotency(c.Scope, c.IdempotencyKey)
		calls = append(calls, newCall(shard, t.store.scripts.Get("idempotency_key"), []string{key},
			c.IdempotencyHash, c.TaskID, c.fence, life, created, c.WorkerID))
		asked = append(asked, c)
	}
	t.store.doDurably("create", calls...)
	for i, c := range asked {
		r := calls[i].reply
		switch {
		case calls[i].err != nil:
			c.err = calls[i].err
		case r.int(0) != 1:
			c.err = &Error{Code: IdempotencyMismatch, Op: "create", Message: "this idempotency key was used with another body within the last 24 h; use a new key for a new task, or repeat the first body"}
		case r.str(1) == "":
			c.err = c.late
		default:
			c.TaskID, c.fence = r.str(1), r.str(2)
			if at := parseMs(r.str(3)); !at.IsZero() {
				c.at, c.done, c.WorkerID = at, true, r.str(4)
			}
		}
	}
}

// create creates those of a batch that nothing is known of yet.
func (t *Tracker) create(batch []*creation) {
	var calls []*call
	var asked []*creation
	for _, c := range batch {
		if c.err != nil {
			continue
		}
		if c.RunID == "" {
			if c.RunID = runOf(c.TaskID); c.RunID == "" {
				sum := sha256.Sum256([]byte(taskName(c.Scope, c.TaskID))) // too long to name a run after; a repeat must get the same
				c.RunID = "run_" + hex.EncodeToString(sum[:16])
			}
		}
		if !c.done && !c.made {
			c.made = true
			calls = append(calls, t.createCall(c))
			asked = append(asked, c)
		}
	}
	t.store.doDurably("create", calls...)
	for i, c := range asked {
		if c.err = calls[i].err; c.err != nil {
			continue
		}
		switch calls[i].reply.int(0) {
		case codeNotFound:
			c.err = c.late
			continue
		case codeExists:
			c.err = &Error{Code: Exists, Op: "create", Message: "a task with this id exists in this workspace; choose another taskId, or leave it out and Lubdub makes one"}
			continue
		}
		c.at, c.WorkerID = calls[i].reply.time(1), calls[i].reply.str(2)
	}
}

func (t *Tracker) createCall(c *creation) *call {
	shard := t.store.shardOf(c.Scope, c.TaskID)
	k := t.store.keys[shard]
	timeout := strconv.FormatInt(ms(c.HeartbeatTimeout), 10)
	keys := k.ofTask(append([]string(nil), k.fixed...), c.Scope, c.TaskID, c.RunID, timeout)
	keys = append(keys, k.fences)

	state, start := Queued, ""
	if c.Queue == "" {
		state = Dispatched
		start = strconv.FormatInt(ms(startTimeout(c.Queue, c.StartTimeout, tokenLife(c.TokenTTL, c.Deadline, time.Now()))), 10)
	}
	letter := letters(state)
	if c.late != nil {
		letter = ""
	}
	record := c.record()
	args := []any{c.Scope.String(), c.TaskID, letter, c.fence, timeout, msOrEmpty(c.Deadline), start,
		msOrEmpty(c.NotBefore), len(record) / 2}
	return newCall(shard, t.store.scripts.Get("create"), keys, append(append(args, record...), c.document()...)...)
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
			f = append(f, name, ms(d))
		}
	}
	add("u", c.RunID, runOf(c.TaskID))
	add("k", c.Key, "")
	add("as", c.Asset, "")
	add("q", c.Queue, "")
	add("y", c.Type, "")
	add("rn", c.Runtime, "")
	add("pn", c.WorkerID, "")
	add("pl", c.Placement, "")
	add("wl", labelsHash(c.WorkerLabels), "")
	addMs("i", c.HeartbeatInterval, DefaultHeartbeatInterval)
	addMs("g", c.CancelGrace, DefaultCancelGrace)
	addMs("so", c.StartTimeout, 0)
	addMs("rt", c.RunTimeout, 0)
	if c.TokenTTL != 0 {
		f = append(f, "lt", int64(c.TokenTTL/time.Second))
	}
	if life := tokenLife(c.TokenTTL, c.Deadline, time.Now()); c.Queue == "" && life != DefaultTokenTTL {
		f = append(f, "l", int64(life/time.Second))
	}
	if c.NoRenewToken {
		f = append(f, "nr", 1)
	}
	add("x", msOrEmpty(c.Deadline), "")
	add("nb", msOrEmpty(c.NotBefore), "")
	add("n", msOrEmpty(c.NotBefore), "")
	if p := c.policy(); p != nil {
		f = append(f, "p", p.pack())
	}
	return f
}

func (c *creation) policy() *RetryPolicy {
	if c.Queue != "" && c.Retry == nil {
		p := DefaultRetryPolicy
		return &p
	}
	return c.Retry
}

// document gives what may be long: one long value in the record would cost a kilobyte for each task.
func (c *creation) document() []any {
	var d []any
	d = appendDoc(d, "payload", string(c.Payload))
	d = appendDoc(d, "resources", string(c.Resources))
	d = appendDoc(d, "labels", packLabels(c.Labels))
	d = appendDoc(d, "workerLabels", packLabels(c.WorkerLabels))
	return d
}

func packLabels(labels map[string]string) string {
	if len(labels) == 0 {
		return ""
	}
	b, _ := json.Marshal(labels) // strings only: cannot fail
	return string(b)
}

// labelsHash is the same for equal labels: those of one class are told by it. No labels have none.
func labelsHash(labels map[string]string) string {
	if len(labels) == 0 {
		return ""
	}
	sum := sha256.Sum256([]byte(packLabels(labels))) // keys come out sorted
	return base64.RawURLEncoding.EncodeToString(sum[:15])
}

func msOrEmpty(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return strconv.FormatInt(t.UnixMilli(), 10)
}

// tokenLife is how long the token of an attempt dispatched now lives.
func tokenLife(asked time.Duration, deadline, now time.Time) time.Duration {
	if asked != 0 {
		return asked
	}
	life := DefaultTokenTTL
	if !deadline.IsZero() {
		need := deadline.Sub(now).Truncate(time.Second) + time.Second
		life = min(max(life, need), MaxTokenTTL)
	}
	return life
}

// startTimeout is how long a dispatched attempt may stay unheard.
func startTimeout(queue string, asked, tokenLife time.Duration) time.Duration {
	switch {
	case asked != 0:
		return asked
	case queue != "":
		return DefaultClaimStartTimeout
	}
	return tokenLife
}

// created makes the answer from the request, the time of creation and the worker that was chosen then, so that a repeat
// gets the same.
func (t *Tracker) created(c *creation) *Created {
	task := &Task{
		Scope: c.Scope, ID: c.TaskID, RunID: c.RunID, Key: c.Key, Asset: c.Asset, Type: c.Type, Queue: c.Queue,
		Runtime: c.Runtime, WorkerID: c.WorkerID, State: Queued, CreatedAt: c.at, Deadline: c.Deadline, NotBefore: c.NotBefore,
		NextAttemptAt: c.NotBefore, Payload: c.Payload, Resources: c.Resources, Labels: c.Labels,
		WorkerLabels: c.WorkerLabels, HeartbeatInterval: c.HeartbeatInterval, HeartbeatTimeout: c.HeartbeatTimeout,
		CancelGrace: c.CancelGrace, StartTimeout: c.StartTimeout, RunTimeout: c.RunTimeout, TokenTTL: c.TokenTTL,
		NoRenewToken: c.NoRenewToken, Retry: c.policy(),
	}
	if c.Queue != "" {
		return &Created{Task: task}
	}
	task.State, task.Attempt, task.DispatchedAt = Dispatched, 1, c.at
	return &Created{Task: task, Envelope: t.envelope(task, c.fence, tokenLife(c.TokenTTL, c.Deadline, c.at))}
}

// envelope names the current attempt of a dispatched task.
func (t *Tracker) envelope(task *Task, fence string, life time.Duration) *Envelope {
	e := &Envelope{
		Task: task, TokenTTL: life, RenewToken: !task.NoRenewToken,
		Attempt: t.Attempt(Attempt{
			Scope: task.Scope, TaskID: task.ID, RunID: task.RunID, Number: task.Attempt, Fence: fence,
			Timeout: task.HeartbeatTimeout, Interval: task.HeartbeatInterval, IssuedAt: task.DispatchedAt, WorkerID: claimedBy(task),
			Deadline: deadlineMs(task.Deadline),
		}),
	}
	if n := len(task.History); n > 0 && task.History[n-1].LastProgress != (Progress{}) {
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
func claimedBy(task *Task) string {
	if task.Queue == "" {
		return ""
	}
	return task.WorkerID
}

func (p *RetryPolicy) pack() string {
	return strconv.Itoa(p.MaxAttempts) + ":" + strconv.Itoa(p.MaxLosses) + ":" + strconv.FormatInt(ms(p.InitialBackoff), 10) +
		":" + strconv.FormatFloat(p.Multiplier, 'f', -1, 64) + ":" + strconv.FormatInt(ms(p.MaxBackoff), 10)
}
