package tasks

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lubdub-io/lubdub/tracker/beats"
	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/schema"
	"github.com/lubdub-io/lubdub/tracker/store"
)

// namesAtOnce is how many refs one script resolves.
const namesAtOnce = 200

// NameCalls makes the calls that resolve refs; call the result when they have run.
func (t *Service) NameCalls(refs []*schema.TaskRef) (calls []*store.Call, resolve func()) {
	byShard := map[int][]*schema.TaskRef{}
	for _, r := range refs {
		byShard[r.Shard] = append(byShard[r.Shard], r)
	}
	var groups [][]*schema.TaskRef
	for shard, ofShard := range byShard {
		for group := range slices.Chunk(ofShard, namesAtOnce) {
			keys := make([]string, len(group))
			for i, r := range group {
				keys[i] = t.store.Keys[shard].Task(schema.TaskName(r.Scope, r.ID))
			}
			calls = append(calls, store.NewCall(shard, t.store.Scripts.Get("names"), keys))
			groups = append(groups, group)
		}
	}
	return calls, func() {
		for g, group := range groups {
			for i, r := range group {
				if calls[g].Err == nil {
					r.Resolve(calls[g].Reply.Str(2*i), calls[g].Reply.Str(2*i+1))
				}
			}
		}
	}
}

// lookUp resolves one ref; a task that does not exist is NotFound.
func (t *Service) lookUp(ctx context.Context, op string, r *schema.TaskRef) error {
	calls, resolve := t.NameCalls([]*schema.TaskRef{r})
	t.store.DoAll(ctx, op, calls)
	if calls[0].Err != nil {
		return calls[0].Err
	}
	resolve()
	if !r.Exists {
		return NoTask(op)
	}
	return nil
}

func NoTask(op string) error {
	return &model.Error{Code: model.NotFound, Op: op, Message: "no task with this id in this tenant and workspace; finished tasks are removed at the end of their retention"}
}

// KeysOf gives the keys of a resolved ref as task scripts declare them.
func (t *Service) KeysOf(r *schema.TaskRef) []string {
	k := t.store.Keys[r.Shard]
	return k.OfTask(append(make([]string, 0, len(k.Fixed)+5), k.Fixed...), r.Scope, r.ID, r.Run, r.TimeoutMs)
}

// part is what of a task is read; lua/lib/view.lua tells what is in each.
type part string

const (
	Whole     part = "all"
	Listed    part = "list"   // without payload and resources
	glance    part = "glance" // state, attempt, worker, queue, type, liveness
	andLabels part = "labels" // these and the labels
)

func (t *Service) GetCall(r *schema.TaskRef, p part) *store.Call {
	return store.NewCall(r.Shard, t.store.Scripts.Get("get"), t.KeysOf(r), r.Scope.String(), r.ID, string(p))
}

// View is a task as get.lua read it at one moment, with what only the domain needs.
type View struct {
	*model.Task
	Fence string
	Life  time.Duration // of the current attempt's token

	Placement string // strategy by which the task is placed; "": it is not
}

// ReadTask makes the view from the reply of get.lua; nil when the task is not there.
func ReadTask(r *schema.TaskRef, re store.Reply) *View {
	f := store.Pairs(re.List(1))
	if len(f) == 0 {
		return nil
	}
	doc := store.Pairs(re.List(2))
	now := re.Time(0)
	task := &model.Task{
		Scope: r.Scope, ID: r.ID, RunID: r.Run, Key: f["k"], Asset: f["as"], Type: f["y"], Queue: f["q"], Runtime: f["rn"],
		State: schema.StateOf(f["s"]), Attempt: schema.Atoi(f["a"]), WorkerID: f["w"],
		CreatedAt: schema.ParseMillis(f["c"]), DispatchedAt: schema.ParseMillis(f["d"]), StartedAt: schema.ParseMillis(f["b"]), FinishedAt: schema.ParseMillis(f["e"]),
		Deadline: schema.ParseMillis(f["x"]), NotBefore: schema.ParseMillis(f["nb"]), NextAttemptAt: schema.ParseMillis(f["n"]),
		CancelRequested: f["cr"] != "",
		Payload:         schema.Raw(doc["payload"]), Resources: schema.Raw(doc["resources"]), Output: schema.Raw(doc["output"]), Metrics: schema.Raw(doc["metrics"]),
		Error: schema.Raw(doc["error"]), CancelledDuringPhase: doc["phase"], PartialProgress: schema.Raw(doc["partial"]),
		HeartbeatInterval: schema.Duration(f["i"], model.DefaultHeartbeatInterval), HeartbeatTimeout: schema.Duration(f["t"], 0),
		CancelGrace: schema.Duration(f["g"], model.DefaultCancelGrace), StartTimeout: schema.Duration(f["so"], 0), RunTimeout: schema.Duration(f["rt"], 0),
		TokenTTL: time.Duration(schema.Atoi(f["lt"])) * time.Second, NoRenewToken: f["nr"] != "",
		Failures: schema.Atoi(f["nf"]), Losses: schema.Atoi(f["nl"]), Retry: schema.UnpackPolicy(f["p"]),
	}
	schema.Unmarshal(doc["labels"], &task.Labels)
	schema.Unmarshal(doc["workerLabels"], &task.WorkerLabels)
	schema.Unmarshal(doc["cancelReason"], &task.CancelReason)
	v := &View{Task: task, Fence: f["f"], Life: model.DefaultTokenTTL, Placement: f["pl"]}
	if task.State == model.Queued {
		task.WorkerID = f["pn"] // for whom it waits
	}
	if l := schema.Atoi(f["l"]); l > 0 {
		v.Life = time.Duration(l) * time.Second
	}
	if task.State == model.Failed {
		task.Reason = model.Reason(f["r"])
		if task.Error == nil {
			task.Error = verdictError(task.Reason)
		}
	}
	for _, entry := range re.List(3).Strings() {
		task.History = append(task.History, readHistory(entry, task, v.Life))
	}
	v.readLiveness(now, re)
	if n := len(task.History); task.State.Terminal() && n > 0 {
		v.readEnd(&task.History[n-1])
	}
	return v
}

// readEnd fills in what a finished task had when its last attempt ended.
func (v *View) readEnd(last *model.HistoryEntry) {
	if last.Attempt != v.Attempt {
		return
	}
	v.Progress, v.LastHeartbeatAt, v.CompletedAt = last.LastProgress, last.LastHeartbeatAt, last.CompletedAt
	v.RetriesExhausted = v.State == model.Failed && last.RetriesExhausted
}

// readLiveness fills in what the last beat tells. Liveness is judged in shard time, times are shown as wall time.
func (v *View) readLiveness(now time.Time, re store.Reply) {
	report := schema.UnpackReport(re.Str(4))
	v.Progress, v.ReportedAt = report.Progress, report.ReportedAt
	if report.WorkerID != "" && v.Queue == "" { // who claimed a task is known better
		v.WorkerID = report.WorkerID
	}
	if v.State != model.Running {
		return
	}
	v.Liveness = model.Lost
	if re.Str(5) == "" {
		return
	}
	silent := time.Duration(re.Int(5)) * time.Millisecond
	v.LastHeartbeatAt = now.Add(-silent - time.Duration(re.Int(6))*time.Millisecond)
	switch {
	case v.HeartbeatTimeout > 0 && silent > v.HeartbeatTimeout:
	case 2*silent > 3*v.HeartbeatInterval:
		v.Liveness = model.Late
	default:
		v.Liveness = model.Fresh
	}
}

// readHistory reads an entry as pack_ended in lua/lib/history.lua packs it.
func readHistory(entry string, task *model.Task, life time.Duration) model.HistoryEntry {
	const fields = 23 // an entry of a version before has fewer
	p := strings.SplitN(entry, schema.PackSep, fields)
	for len(p) < fields {
		p = append(p, "")
	}
	h := model.HistoryEntry{
		Attempt: schema.Atoi(p[0]), WorkerID: p[2], DispatchedAt: schema.ParseMillis(p[3]), StartedAt: schema.ParseMillis(p[4]), EndedAt: schema.ParseMillis(p[5]),
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
		if h.Evidence.LastHeartbeatAt.After(h.LastHeartbeatAt) { // its worker's, by which it lived
			h.LastHeartbeatAt = h.Evidence.LastHeartbeatAt
		}
		if h.Reason == model.StartTimeout && h.Evidence.Timeout == 0 {
			h.Evidence.Timeout = startTimeout(task.Queue, task.StartTimeout, life)
		}
	}
	return h
}

// verdictError is the error of a task that Lubdub failed itself, in seed categories.
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
	return json.RawMessage(`{"category":"` + category + `","message":"` + beats.EndedMessage(r) + `","retryable":` + strconv.FormatBool(retryable) + `}`)
}
