package tasks

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"time"

	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/schema"
	"github.com/lubdub-io/lubdub/tracker/store"
)

// Create creates a task. A task without a queue is dispatched at once and returned with its envelope.
//
// A repeat with the same idempotency key gets the first result. If Lubdub chooses the task's ID, it chooses one in the shard of the
// key, and one script creates the task and marks the key. Otherwise the key is reserved first, with the ID that the task will have,
// and marked after the creation; a repeat completes whatever is cut off in between. A repeat after the deadline only finds what
// exists: it reserves and creates nothing.
func (s *Service) Create(ctx context.Context, n model.NewTask) (*model.Created, error) {
	r := s.CreateBatch(ctx, []model.NewTask{n})[0]
	return r.Created, r.Err
}

// CreateResult is the result of one task of a CreateBatch.
type CreateResult struct {
	Created *model.Created
	Err     error
}

// creation is one task in CreateBatch.
type creation struct {
	model.NewTask
	fence string
	err   error
	joint bool // its idempotency key is marked by the creation
	done  bool // the result is known from the idempotency key
	made  bool // the task was sent to the store
	at    time.Time
}

// CreateBatch creates many tasks in as many round trips as one takes and returns a result for each.
func (s *Service) CreateBatch(ctx context.Context, tasks []model.NewTask) []CreateResult {
	ctx = s.store.Within(ctx, 0)
	batch := make([]*creation, len(tasks))
	for i, n := range tasks {
		c := &creation{NewTask: n, fence: model.NewFence()}
		if n.TaskID == "" {
			s.chooseID(c)
		}
		batch[i] = c
	}
	s.checkPins(ctx, batch)
	settle := s.admitBatch(ctx, batch)
	s.reserve(ctx, batch, func(c *creation) bool { return !c.joint && c.err == nil })
	release := s.placeBatch(ctx, batch)
	s.createAll(ctx, batch)
	release()
	settle()
	s.reserve(ctx, batch, func(c *creation) bool { return !c.done && !c.joint && c.err == nil })
	results := make([]CreateResult, len(batch))
	for i, c := range batch {
		if c.err != nil {
			results[i].Err = c.err
			continue
		}
		results[i].Created = s.created(c)
	}
	return results
}

// maxDraws bounds how many IDs are drawn until one is in the shard of the idempotency key.
const maxDraws = 64

// chooseID chooses the ID of a task, in the shard of its idempotency key, unless the key must be looked up before a worker is chosen, or
// there are so many shards that such an ID is not found.
func (s *Service) chooseID(c *creation) {
	c.TaskID = model.NewID("task_")
	if c.IdempotencyKey == "" || c.Placement != "" {
		return
	}
	of := s.store.ShardOf(c.Scope, c.IdempotencyKey)
	for range maxDraws {
		if c.joint = s.store.ShardOf(c.Scope, c.TaskID) == of; c.joint {
			return
		}
		c.TaskID = model.NewID("task_")
	}
}

// reserve looks up or reserves the idempotency keys of the selected creations.
func (s *Service) reserve(ctx context.Context, batch []*creation, want func(*creation) bool) {
	var calls []*store.Call
	var pending []*creation
	for _, c := range batch {
		if c.IdempotencyKey == "" || !want(c) {
			continue
		}
		life := model.IdempotencyRetention
		if c.at.IsZero() && c.AdmissionErr != nil {
			life = 0
		}
		calls = append(calls, s.idempotencyCall(c.Scope, c.IdempotencyKey, &idempotencyArgs{
			bodyHash: c.IdempotencyHash, taskID: c.TaskID, fence: c.fence, life: life, createdAt: c.at, workerID: c.WorkerID, trace: c.Trace,
		}))
		pending = append(pending, c)
	}
	s.store.DoDurably(ctx, "create", calls...)
	for i, c := range pending {
		if c.err = calls[i].Err; c.err != nil {
			continue
		}
		c.apply(readIdempotency(calls[i].Reply, 0))
	}
}

// apply takes over what the idempotency key identifies.
func (c *creation) apply(first idempotencyReply) {
	switch {
	case !first.sameBody:
		c.err = &model.Error{Code: model.IdempotencyMismatch, Op: "create", Message: "this idempotency key was used with another body " +
			"within the last 24 h; use a new key for a new task, or repeat the first body"}
	case first.taskID == "":
		c.err = c.AdmissionErr
	default:
		c.TaskID, c.fence, c.Trace = first.taskID, first.fence, first.trace
		if !first.createdAt.IsZero() {
			c.at, c.done, c.WorkerID = first.createdAt, true, first.workerID
		}
	}
}

// createAll creates the tasks of a batch that have no result yet.
func (s *Service) createAll(ctx context.Context, batch []*creation) {
	var calls []*store.Call
	var pending []*creation
	for _, c := range batch {
		if c.err != nil {
			continue
		}
		if !c.done && !c.made {
			c.made = true
			calls = append(calls, s.createCall(s.refOf(c), c.args(time.Now())))
			pending = append(pending, c)
		}
	}
	s.store.DoDurably(ctx, "create", calls...)
	again := false
	for i, c := range pending {
		if c.err = calls[i].Err; c.err != nil {
			continue
		}
		switch reply := readCreate(calls[i].Reply); reply.code {
		case schema.CodeNotFound:
			c.err = c.AdmissionErr
		case schema.CodeKeyKnown:
			c.joint = false
			c.apply(reply.known)
			c.made = c.done // else its creation was cut off after the key was reserved
			again = again || !c.made
		case schema.CodeExists:
			if reply.isFireOf(c.ScheduleID) {
				c.at, c.WorkerID = reply.createdAt, reply.workerID
				continue
			}
			c.err = &model.Error{Code: model.Exists, Op: "create",
				Message: "a task with this id exists in this workspace; choose another taskId, or omit it and " +
					"Lubdub generates one. To make retries of a creation safe, send the first request and its retries with the same " +
					"Idempotency-Key"}
		default:
			c.at, c.WorkerID = reply.createdAt, reply.workerID
		}
	}
	if again {
		s.createAll(ctx, batch)
	}
}

// run returns the run that the task names, or its own.
func (c *creation) run() string {
	if c.RunID != "" {
		return c.RunID
	}
	return ownRunOf(c.Scope, c.TaskID)
}

// ownRunOf returns the run of a task that names none. A repeat must get the same.
func ownRunOf(scope model.Scope, taskID string) string {
	if run := schema.RunOf(taskID); run != "" {
		return run
	}
	sum := sha256.Sum256([]byte(schema.TaskName(scope, taskID))) // it is too long to name a run after
	return "run_" + hex.EncodeToString(sum[:16])
}

// created builds the result from the request, the time of creation and the worker that was chosen then, so that a repeat gets the
// same.
func (s *Service) created(c *creation) *model.Created {
	task := &model.Task{
		Scope: c.Scope, ID: c.TaskID, RunID: c.run(), Key: c.Key, Asset: c.Asset, Trace: c.Trace, Type: c.Type, Queue: c.Queue,
		ScheduleID: c.ScheduleID,
		Runtime:    c.Runtime, WorkerID: c.WorkerID, State: model.Queued, CreatedAt: c.at, Deadline: c.Deadline, RunAt: c.RunAt,
		Payload: c.Payload, Resources: c.Resources, Labels: c.Labels,
		WorkerLabels: c.WorkerLabels, HeartbeatInterval: c.HeartbeatInterval, HeartbeatTimeout: c.HeartbeatTimeout,
		CancelGrace: c.CancelGrace, StartTimeout: c.StartTimeout, RunTimeout: c.RunTimeout, TokenTTL: c.TokenTTL,
		NoRenewToken: c.NoRenewToken, Retry: c.policy(),
	}
	if c.Delay > 0 {
		task.RunAt = c.at.Add(c.Delay)
	}
	if task.RunAt.After(c.at) {
		task.State, task.NextAttemptAt = model.Scheduled, task.RunAt
	}
	if c.Queue != "" {
		return &model.Created{Task: task}
	}
	task.State, task.Attempt, task.DispatchedAt = model.Dispatched, 1, c.at
	return &model.Created{Task: task, Envelope: s.Envelope(task, c.fence, tokenLife(c.TokenTTL, c.Deadline, c.at))}
}
