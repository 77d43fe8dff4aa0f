package tracker

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"
)

// taskRef is a task and the fields of it that never change and name its other keys.
type taskRef struct {
	scope     Scope
	id        string
	shard     int
	run       string
	timeoutMs string
	exists    bool
}

func (t *Tracker) ref(scope Scope, id string) *taskRef {
	return &taskRef{scope: scope, id: id, shard: t.store.shardOf(scope, id)}
}

// namesAtOnce is how many refs one script resolves.
const namesAtOnce = 200

// nameCalls makes the calls that resolve refs; call the result when they have run.
func (t *Tracker) nameCalls(refs []*taskRef) (calls []*call, resolve func()) {
	byShard := map[int][]*taskRef{}
	for _, r := range refs {
		byShard[r.shard] = append(byShard[r.shard], r)
	}
	var groups [][]*taskRef
	for shard, ofShard := range byShard {
		for group := range slices.Chunk(ofShard, namesAtOnce) {
			keys := make([]string, len(group))
			for i, r := range group {
				keys[i] = t.store.keys[shard].task(taskName(r.scope, r.id))
			}
			calls = append(calls, newCall(shard, t.store.scripts.Get("names"), keys))
			groups = append(groups, group)
		}
	}
	return calls, func() {
		for g, group := range groups {
			for i, r := range group {
				if calls[g].err == nil {
					r.resolve(calls[g].reply.str(2*i), calls[g].reply.str(2*i+1))
				}
			}
		}
	}
}

func (r *taskRef) resolve(run, timeoutMs string) {
	r.exists = timeoutMs != ""
	r.timeoutMs = timeoutMs
	if r.run = run; run == "" {
		r.run = runOf(r.id)
	}
}

// lookUp resolves one ref; a task that does not exist is NotFound.
func (t *Tracker) lookUp(op string, r *taskRef) error {
	calls, resolve := t.nameCalls([]*taskRef{r})
	t.store.doAll(op, calls)
	if calls[0].err != nil {
		return calls[0].err
	}
	resolve()
	if !r.exists {
		return notFound(op)
	}
	return nil
}

func notFound(op string) error {
	return &Error{Code: NotFound, Op: op, Message: "no task with this id in this tenant and workspace; finished tasks are removed at the end of their retention"}
}

// keysOf gives the keys of a resolved ref as task scripts declare them.
func (t *Tracker) keysOf(r *taskRef) []string {
	k := t.store.keys[r.shard]
	return k.ofTask(append(make([]string, 0, len(k.fixed)+5), k.fixed...), r.scope, r.id, r.run, r.timeoutMs)
}

// part is what of a task is read; lua/lib/view.lua tells what is in each.
type part string

const (
	whole     part = "all"
	listed    part = "list"   // without payload and resources
	glance    part = "glance" // state, attempt, worker, queue, type, liveness
	andLabels part = "labels" // these and the labels
)

func (t *Tracker) getCall(r *taskRef, p part) *call {
	return newCall(r.shard, t.store.scripts.Get("get"), t.keysOf(r), r.scope.String(), r.id, string(p))
}

// view is a task as get.lua read it at one moment, with what only the domain needs.
type view struct {
	*Task
	fence string
	life  time.Duration // of the current attempt's token

	placement string // strategy by which the task is placed; "": it is not
}

// readTask makes the view from the reply of get.lua; nil when the task is not there.
func readTask(r *taskRef, re reply) *view {
	f := pairs(re.list(1))
	if len(f) == 0 {
		return nil
	}
	doc := pairs(re.list(2))
	now := re.time(0)
	task := &Task{
		Scope: r.scope, ID: r.id, RunID: r.run, Key: f["k"], Asset: f["as"], Type: f["y"], Queue: f["q"], Runtime: f["rn"],
		State: stateOf(f["s"]), Attempt: atoi(f["a"]), WorkerID: f["w"],
		CreatedAt: parseMs(f["c"]), DispatchedAt: parseMs(f["d"]), StartedAt: parseMs(f["b"]), FinishedAt: parseMs(f["e"]),
		Deadline: parseMs(f["x"]), NotBefore: parseMs(f["nb"]), NextAttemptAt: parseMs(f["n"]),
		CancelRequested: f["cr"] != "",
		Payload:         raw(doc["payload"]), Resources: raw(doc["resources"]), Output: raw(doc["output"]), Metrics: raw(doc["metrics"]),
		Error: raw(doc["error"]), CancelledDuringPhase: doc["phase"], PartialProgress: raw(doc["partial"]),
		HeartbeatInterval: duration(f["i"], DefaultHeartbeatInterval), HeartbeatTimeout: duration(f["t"], 0),
		CancelGrace: duration(f["g"], DefaultCancelGrace), StartTimeout: duration(f["so"], 0), RunTimeout: duration(f["rt"], 0),
		TokenTTL: time.Duration(atoi(f["lt"])) * time.Second, NoRenewToken: f["nr"] != "",
		Failures: atoi(f["nf"]), Losses: atoi(f["nl"]), Retry: unpackPolicy(f["p"]),
	}
	unmarshal(doc["labels"], &task.Labels)
	unmarshal(doc["workerLabels"], &task.WorkerLabels)
	unmarshal(doc["cancelReason"], &task.CancelReason)
	v := &view{Task: task, fence: f["f"], life: DefaultTokenTTL, placement: f["pl"]}
	if task.State == Queued {
		task.WorkerID = f["pn"] // for whom it waits
	}
	if l := atoi(f["l"]); l > 0 {
		v.life = time.Duration(l) * time.Second
	}
	if task.State == Failed {
		task.Reason = Reason(f["r"])
		if task.Error == nil {
			task.Error = verdictError(task.Reason)
		}
	}
	for _, entry := range re.list(3).strings() {
		task.History = append(task.History, readHistory(entry, task, v.life))
	}
	v.readLiveness(now, re)
	if n := len(task.History); task.State.Terminal() && n > 0 {
		v.readEnd(&task.History[n-1])
	}
	return v
}

// readEnd fills in what a finished task had when its last attempt ended.
func (v *view) readEnd(last *HistoryEntry) {
	if last.Attempt != v.Attempt {
		return
	}
	v.Progress, v.LastHeartbeatAt, v.CompletedAt = last.LastProgress, last.LastHeartbeatAt, last.CompletedAt
	v.RetriesExhausted = v.State == Failed && last.RetriesExhausted
}

// readLiveness fills in what the last beat tells. Liveness is judged in shard time, times are shown as wall time.
func (v *view) readLiveness(now time.Time, re reply) {
	report := unpackReport(re.str(4))
	v.Progress, v.ReportedAt = report.Progress, report.ReportedAt
	if report.WorkerID != "" && v.Queue == "" { // who claimed a task is known better
		v.WorkerID = report.WorkerID
	}
	if v.State != Running {
		return
	}
	v.Liveness = Lost
	if re.str(5) == "" {
		return
	}
	silent := time.Duration(re.int(5)) * time.Millisecond
	v.LastHeartbeatAt = now.Add(-silent - time.Duration(re.int(6))*time.Millisecond)
	switch {
	case v.HeartbeatTimeout > 0 && silent > v.HeartbeatTimeout:
	case 2*silent > 3*v.HeartbeatInterval:
		v.Liveness = Late
	default:
		v.Liveness = Fresh
	}
}

// readHistory reads an entry as pack_ended in lua/lib/history.lua packs it.
func readHistory(entry string, task *Task, life time.Duration) HistoryEntry {
	const fields = 23 // an entry of a version before has fewer
	p := strings.SplitN(entry, packSep, fields)
	for len(p) < fields {
		p = append(p, "")
	}
	h := HistoryEntry{
		Attempt: atoi(p[0]), WorkerID: p[2], DispatchedAt: parseMs(p[3]), StartedAt: parseMs(p[4]), EndedAt: parseMs(p[5]),
		Outcome: p[6], Reason: Reason(p[7]), WillRetry: p[8] == "1", RetriesExhausted: p[8] == "x",
		LastProgress: Progress{Pct: p[15], Message: p[16]}, Error: raw(p[17]),
		LastHeartbeatAt: parseMs(p[18]), CompletedAt: parseMs(p[19]), Metrics: raw(p[22]),
	}
	if sweeper := p[14]; sweeper != "" {
		lag := duration(p[13], 0)
		h.Evidence = &Evidence{
			LastHeartbeatAt: parseMs(p[9]), Silent: duration(p[10], 0), Timeout: duration(p[11], 0),
			OutageCredit: duration(p[12], 0), DetectedAt: h.EndedAt, DetectionLag: lag, Sweeper: sweeper,
			WorkerReason: WorkerReason(p[20]), MassExpiryHeld: p[21] == "1",
		}
		if h.Evidence.LastHeartbeatAt.After(h.LastHeartbeatAt) { // its worker's, by which it lived
			h.LastHeartbeatAt = h.Evidence.LastHeartbeatAt
		}
		if h.Reason == StartTimeout && h.Evidence.Timeout == 0 {
			h.Evidence.Timeout = startTimeout(task.Queue, task.StartTimeout, life)
		}
	}
	return h
}

// verdictError is the error of a task that Lubdub failed itself, in seed categories.
func verdictError(r Reason) json.RawMessage {
	category, retryable := "TIMEOUT", true
	switch r {
	case HeartbeatTimeout, WorkerLost:
		category = "INFRASTRUCTURE"
	case CancelTimeout:
		category, retryable = "CANCELLED", false
	case DeadlineExceeded:
		retryable = false
	case RunTimeout, StartTimeout:
	default:
		return nil
	}
	return json.RawMessage(`{"category":"` + category + `","message":"` + endedMessage(r) + `","retryable":` + strconv.FormatBool(retryable) + `}`)
}

func pairs(r reply) map[string]string {
	m := make(map[string]string, len(r)/2)
	for i := 0; i+1 < len(r); i += 2 {
		m[r.str(i)] = r.str(i + 1)
	}
	return m
}

func atoi(s string) int {
	n, _ := strconv.Atoi(s)
	return n
}

func raw(s string) json.RawMessage {
	if s == "" {
		return nil
	}
	return json.RawMessage(s)
}

func unmarshal(s string, into any) {
	if s != "" {
		_ = json.Unmarshal([]byte(s), into) // written by this package, so it is JSON
	}
}

func duration(msText string, absent time.Duration) time.Duration {
	if msText == "" {
		return absent
	}
	n, _ := strconv.ParseInt(msText, 10, 64)
	return time.Duration(n) * time.Millisecond
}

func unpackPolicy(s string) *RetryPolicy {
	p := strings.Split(s, ":")
	if len(p) != 5 {
		return nil
	}
	multiplier, _ := strconv.ParseFloat(p[3], 64)
	return &RetryPolicy{
		MaxAttempts: atoi(p[0]), MaxLosses: atoi(p[1]), InitialBackoff: duration(p[2], 0), Multiplier: multiplier, MaxBackoff: duration(p[4], 0),
	}
}
