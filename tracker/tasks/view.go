package tasks

import (
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"github.com/lubdub-io/lubdub/tracker/beats"
	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/schema"
)

// part selects what is read of a task; lua/lib/view.lua defines the parts.
type part string

// The parts that other packages read.
const (
	Whole  part = "all"
	Listed part = "list" // without payload and resources
)

const (
	glance    part = "glance" // state, attempt, worker, queue, type, liveness, reason, end
	andLabels part = "labels" // these and the labels
)

// View is a task at the moment when a script read it, with fields that only the domain needs.
type View struct {
	*model.Task
	Now   time.Time // when it was read
	Fence string
	Life  time.Duration // of the current attempt's token

	Placement string // the strategy by which the task is placed; "": it is not
}

// NewView returns the view of a task, nil if the task does not exist.
func NewView(r *schema.TaskRef, read *ViewReply) *View {
	f := read.Record
	if len(f) == 0 {
		return nil
	}
	task := &model.Task{Scope: r.Scope, ID: r.ID, RunID: r.Run}
	fromRecord(task, f)
	fromDocument(task, read.Document)
	v := &View{Task: task, Now: read.Now, Fence: f[schema.TaskFence], Life: model.DefaultTokenTTL, Placement: f[schema.TaskPlacement]}
	if l := schema.Atoi(f[schema.TaskTokenLife]); l > 0 {
		v.Life = time.Duration(l) * time.Second
	}
	for _, entry := range read.History {
		task.History = append(task.History, readHistory(entry, task, v.Life))
	}
	v.readLiveness(read)
	if n := len(task.History); task.State.Terminal() && n > 0 {
		v.readEnd(&task.History[n-1])
	}
	return v
}

// fromRecord sets the fields from the record of a task.
func fromRecord(task *model.Task, f map[string]string) {
	at := func(field string) time.Time { return schema.ParseMillis(f[field]) }
	span := func(field string, absent time.Duration) time.Duration { return schema.Duration(f[field], absent) }
	task.Key, task.Asset, task.Type, task.Queue = f[schema.TaskKey], f[schema.TaskAsset], f[schema.TaskType], f[schema.TaskQueue]
	task.Trace, task.ScheduleID = f[schema.TaskTrace], f[schema.TaskSchedule]
	task.Runtime, task.WorkerID = f[schema.TaskRuntime], f[schema.TaskWorker]
	task.State, task.Attempt = schema.StateOf(f[schema.TaskState]), schema.Atoi(f[schema.TaskAttempt])
	if task.State == model.Queued {
		task.WorkerID = f[schema.TaskPin] // for which it waits
	}
	task.CreatedAt, task.DispatchedAt = at(schema.TaskCreated), at(schema.TaskDispatched)
	task.StartedAt, task.FinishedAt = at(schema.TaskBegun), at(schema.TaskEnded)
	task.Deadline, task.RunAt, task.NextAttemptAt = at(schema.TaskDeadline), at(schema.TaskRunAt), at(schema.TaskNextAttempt)
	if task.State == model.Queued && f[schema.TaskScheduled] != "" {
		task.State = model.Scheduled
	}
	task.HeartbeatInterval = span(schema.TaskInterval, model.DefaultHeartbeatInterval)
	task.HeartbeatTimeout = span(schema.TaskTimeout, 0)
	task.CancelGrace = span(schema.TaskCancelGrace, model.DefaultCancelGrace)
	task.StartTimeout, task.RunTimeout = span(schema.TaskStartTimeout, 0), span(schema.TaskRunTimeout, 0)
	task.TokenTTL = time.Duration(schema.Atoi(f[schema.TaskRequestedTokenLife])) * time.Second
	task.NoRenewToken, task.CancelRequested = f[schema.TaskNoRenewal] != "", f[schema.TaskCancelRequested] != ""
	task.Failures, task.Losses = schema.Atoi(f[schema.TaskFailures]), schema.Atoi(f[schema.TaskLosses])
	task.Retry = schema.UnpackPolicy(f[schema.TaskRetry])
	if task.State == model.Failed || task.State == model.Cancelled {
		task.Reason = model.Reason(f[schema.TaskReason])
	}
	if task.State == model.Failed {
		task.Error = verdictError(task.Reason)
	}
}

// fromDocument sets the fields that may be long; an error that a worker reported takes precedence over Lubdub's own.
func fromDocument(task *model.Task, doc map[string]string) {
	task.Payload, task.Resources = schema.Raw(doc[schema.DocPayload]), schema.Raw(doc[schema.DocResources])
	task.Output, task.Metrics = schema.Raw(doc[schema.DocOutput]), schema.Raw(doc[schema.DocMetrics])
	if stored := schema.Raw(doc[schema.DocError]); stored != nil {
		task.Error = stored
	}
	task.CancelledDuringPhase, task.PartialProgress = doc[schema.DocPhase], schema.Raw(doc[schema.DocPartial])
	task.Details = schema.Raw(doc[schema.DocDetails])
	schema.Unmarshal(doc[schema.DocLabels], &task.Labels)
	schema.Unmarshal(doc[schema.DocWorkerLabels], &task.WorkerLabels)
	schema.Unmarshal(doc[schema.DocCancelReason], &task.CancelReason)
}

// readEnd sets the fields of a finished task that come from its last attempt.
func (v *View) readEnd(last *model.HistoryEntry) {
	if last.Attempt != v.Attempt {
		return
	}
	v.Progress, v.LastHeartbeatAt, v.CompletedAt = last.LastProgress, last.LastHeartbeatAt, last.CompletedAt
	v.RetriesExhausted = v.State == model.Failed && last.RetriesExhausted
}

// readLiveness sets the fields from the last heartbeat. Liveness uses shard time; times are shown as wall time.
func (v *View) readLiveness(read *ViewReply) {
	report := schema.UnpackReport(read.report)
	v.Progress, v.ReportedAt = report.Progress, report.ReportedAt
	if report.WorkerID != "" && v.Queue == "" { // the worker that claimed a task is known from the record
		v.WorkerID = report.WorkerID
	}
	if v.State != model.Running {
		return
	}
	v.Liveness = model.Lost
	if !read.beating {
		return
	}
	v.LastHeartbeatAt = read.Now.Add(-read.silent - read.credit)
	switch {
	case v.HeartbeatTimeout > 0 && read.silent > v.HeartbeatTimeout:
	case 2*read.silent > 3*v.HeartbeatInterval:
		v.Liveness = model.Late
	default:
		v.Liveness = model.Fresh
	}
}

// readHistory reads an entry that pack_ended in lua/lib/history.lua packed.
func readHistory(entry string, task *model.Task, life time.Duration) model.HistoryEntry {
	const fields = 23 // an entry of an earlier version has fewer
	p := strings.SplitN(entry, schema.PackSep, fields)
	for len(p) < fields {
		p = append(p, "")
	}
	h := model.HistoryEntry{
		Attempt: schema.Atoi(p[0]), WorkerID: p[2],
		DispatchedAt: schema.ParseMillis(p[3]), StartedAt: schema.ParseMillis(p[4]), EndedAt: schema.ParseMillis(p[5]),
		Outcome: p[6], Reason: model.Reason(p[7]), WillRetry: p[8] == "1", RetriesExhausted: p[8] == "x",
		LastProgress: model.Progress{Pct: p[15], Message: p[16]}, Error: schema.Raw(p[17]),
		LastHeartbeatAt: schema.ParseMillis(p[18]), CompletedAt: schema.ParseMillis(p[19]), Metrics: schema.Raw(p[22]),
	}
	if sweeper := p[14]; sweeper != "" {
		lag := schema.Duration(p[13], 0)
		h.Evidence = &model.Evidence{
			LastHeartbeatAt: schema.ParseMillis(p[9]), Silent: schema.Duration(p[10], 0), Timeout: schema.Duration(p[11], 0),
			OutageCredit: schema.Duration(p[12], 0), DetectedAt: h.EndedAt, DetectionLag: lag, Sweeper: sweeper,
			WorkerReason: model.WorkerReason(p[20]), MassExpiryHeld: p[21] == "1",
		}
		if h.Evidence.LastHeartbeatAt.After(h.LastHeartbeatAt) { // the heartbeat of its worker, which kept it alive
			h.LastHeartbeatAt = h.Evidence.LastHeartbeatAt
		}
		if h.Reason == model.StartTimeout && h.Evidence.Timeout == 0 {
			h.Evidence.Timeout = startTimeout(task.Queue, task.StartTimeout, life)
		}
	}
	return h
}

// verdictError is the error of a task that Lubdub itself failed, in the contract's categories.
func verdictError(r model.Reason) json.RawMessage {
	category, retryable := "TIMEOUT", true
	switch r {
	case model.HeartbeatTimeout, model.WorkerLost:
		category = "INFRASTRUCTURE"
	case model.CancelTimeout:
		category, retryable = "CANCELLED", false
	case model.DeadlineExceeded:
		retryable = false
	case model.RunTimeout, model.StartTimeout:
	default:
		return nil
	}
	return json.RawMessage(`{"category":"` + category + `","message":"` + beats.EndedMessage(r) + `","retryable":` +
		strconv.FormatBool(retryable) + `}`)
}
