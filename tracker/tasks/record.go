package tasks

import (
	"strconv"
	"time"

	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/schema"
)

// refOf returns the reference of the task of a creation, which need not exist yet.
func (s *Service) refOf(c *creation) *schema.TaskRef {
	r := s.store.Ref(c.Scope, c.TaskID)
	r.Resolve(c.run(), strconv.FormatInt(model.Millis(c.HeartbeatTimeout), 10))
	return r
}

// args returns the arguments for a task that is created now.
func (c *creation) args(now time.Time) *createArgs {
	life := tokenLife(c.TokenTTL, c.Deadline, now)
	a := &createArgs{fence: c.fence, deadline: c.Deadline, record: c.record(life), document: c.document()}
	switch {
	case c.Delay > 0:
		a.notBefore = "+" + strconv.FormatInt(model.Millis(c.Delay), 10)
	case !c.RunAt.IsZero():
		a.notBefore = schema.MillisOrEmpty(c.RunAt)
	}
	if c.joint {
		a.key, a.bodyHash = c.IdempotencyKey, c.IdempotencyHash
	}
	if c.Queue == "" {
		a.startTimeout = startTimeout(c.Queue, c.StartTimeout, life)
	}
	switch {
	case c.AdmissionErr != nil:
	case c.Queue == "":
		a.state = model.Dispatched
	default:
		a.state = model.Queued
	}
	return a
}

// record returns the fields of the task's hash, without defaults.
func (c *creation) record(life time.Duration) fields {
	var f fields
	f.add(schema.TaskRun, c.run(), schema.RunOf(c.TaskID))
	f.add(schema.TaskKey, c.Key, "")
	f.add(schema.TaskAsset, c.Asset, "")
	f.add(schema.TaskTrace, c.Trace, "")
	f.add(schema.TaskQueue, c.Queue, "")
	f.add(schema.TaskType, c.Type, "")
	f.add(schema.TaskSchedule, c.ScheduleID, "")
	f.add(schema.TaskRuntime, c.Runtime, "")
	f.add(schema.TaskPin, c.WorkerID, "")
	f.add(schema.TaskPlacement, c.Placement, "")
	f.add(schema.TaskRequiredLabels, schema.LabelsHash(c.WorkerLabels), "")
	f.addMillis(schema.TaskInterval, c.HeartbeatInterval, model.DefaultHeartbeatInterval)
	f.addMillis(schema.TaskCancelGrace, c.CancelGrace, model.DefaultCancelGrace)
	f.addMillis(schema.TaskStartTimeout, c.StartTimeout, 0)
	f.addMillis(schema.TaskRunTimeout, c.RunTimeout, 0)
	f.addSeconds(schema.TaskRequestedTokenLife, c.TokenTTL, 0)
	if c.Queue == "" {
		f.addSeconds(schema.TaskTokenLife, life, model.DefaultTokenTTL)
	}
	if c.NoRenewToken {
		f.add(schema.TaskNoRenewal, "1", "")
	}
	f.add(schema.TaskDeadline, schema.MillisOrEmpty(c.Deadline), "")
	if p := c.policy(); p != nil {
		f.add(schema.TaskRetry, schema.PackPolicy(p), "")
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

// document returns the fields that may be long: one long value in the record would cost a kilobyte for each task.
func (c *creation) document() fields {
	var f fields
	f.add(schema.DocPayload, string(c.Payload), "")
	f.add(schema.DocResources, string(c.Resources), "")
	f.add(schema.DocLabels, model.PackLabels(c.Labels), "")
	f.add(schema.DocWorkerLabels, model.PackLabels(c.WorkerLabels), "")
	return f
}
