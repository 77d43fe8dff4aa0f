package tasks

import (
	"encoding/json"
	"strconv"
	"time"

	"github.com/lubdub-io/lubdub/lua"
	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/schema"
	"github.com/lubdub-io/lubdub/tracker/store"
)

// scripts are the Lua scripts of this package. The positions of their arguments and of the values in their replies are known in
// this file only.
type scripts struct {
	await, cancel, create, get, idempotencyKey, names, nextAttempt, states *lua.Script
}

func newScripts(set *lua.Set) *scripts {
	return &scripts{
		await: set.Get("await"), cancel: set.Get("cancel"), create: set.Get("create"), get: set.Get("get"),
		idempotencyKey: set.Get("idempotency_key"), names: set.Get("names"), nextAttempt: set.Get("next_attempt"), states: set.Get("states"),
	}
}

// KeysOf returns the keys of a resolved ref, as scripts about one task declare them.
func (s *Service) KeysOf(r *schema.TaskRef) []string {
	k := s.store.Keys[r.Shard]
	return k.OfTask(append(make([]string, 0, len(k.Fixed)+6), k.Fixed...), r.Scope, r.ID, r.Run, r.TimeoutMs)
}

// fields are alternating names and values of a hash.
type fields []any

// add adds a field unless its value is the default, `absent`.
func (f *fields) add(name, value, absent string) {
	if value != absent {
		*f = append(*f, name, value)
	}
}

func (f *fields) addMillis(name string, d, absent time.Duration) {
	if d != absent {
		*f = append(*f, name, model.Millis(d))
	}
}

func (f *fields) addSeconds(name string, d, absent time.Duration) {
	if d != absent {
		*f = append(*f, name, int64(d/time.Second))
	}
}

// bytes returns the total length of the text values.
func (f fields) bytes() (n int64) {
	for i := 1; i < len(f); i += 2 {
		n += int64(len(f[i].(string)))
	}
	return n
}

// createArgs are the arguments of create.lua about a task.
type createArgs struct {
	state        model.State // DISPATCHED or QUEUED; "": only look up the task
	fence        string      // of the creation
	deadline     time.Time
	startTimeout time.Duration // of a dispatched task; else 0
	notBefore    string        // wall ms, or + and ms from now; "": at once
	record       fields
	document     fields

	// The idempotency key to reserve and mark; "": none, or it has been reserved.
	key, bodyHash string
}

// createCall creates the task that r names.
func (s *Service) createCall(r *schema.TaskRef, a *createArgs) *store.Call {
	start := ""
	if a.startTimeout != 0 {
		start = strconv.FormatInt(model.Millis(a.startTimeout), 10)
	}
	state := ""
	if a.state != "" {
		state = schema.Letters(a.state)
	}
	args := []any{r.Scope.String(), r.ID, state, a.fence, r.TimeoutMs, schema.MillisOrEmpty(a.deadline), start,
		a.notBefore, a.bodyHash, model.Millis(model.IdempotencyRetention), len(a.record) / 2}
	keys := append(s.KeysOf(r), s.store.Keys[r.Shard].Fences)
	if a.key != "" {
		keys = append(keys, s.store.Keys[r.Shard].Idempotency(r.Scope, a.key))
	}
	return store.NewCall(r.Shard, s.scripts.create, keys, append(append(args, a.record...), a.document...)...)
}

// createReply is the reply of create.lua. With CodeExists it describes the existing task.
type createReply struct {
	code       int64 // CodeOK, CodeRepeated, CodeExists, CodeNotFound or CodeKeyKnown
	createdAt  time.Time
	workerID   string           // for which it waits; "": none
	scheduleID string           // of whose fire it is; "": none, or not known
	adopted    bool             // the store lost it, and a token restored it without all its fields
	known      idempotencyReply // with CodeKeyKnown, nothing else
}

func readCreate(re store.Reply) createReply {
	if re.Int(0) == schema.CodeKeyKnown {
		return createReply{code: schema.CodeKeyKnown, known: readIdempotency(re, 1)}
	}
	r := createReply{code: re.Int(0), createdAt: re.Time(1), workerID: re.Str(2)}
	if r.code == schema.CodeExists {
		r.scheduleID, r.adopted = re.Str(3), re.Str(4) == ""
	}
	return r
}

// isFireOf reports whether the existing task was created by the schedule's fire that is about to create it. The ID identifies the
// fire, and no request can choose such an ID.
func (r *createReply) isFireOf(scheduleID string) bool {
	return scheduleID != "" && (r.scheduleID == scheduleID || r.adopted)
}

// idempotencyArgs are the arguments of idempotency_key.lua.
type idempotencyArgs struct {
	bodyHash  string
	taskID    string // to reserve, with its fence
	fence     string
	life      time.Duration // of the reservation; 0: reserve nothing
	createdAt time.Time     // zero: not known yet
	workerID  string        // that was chosen then; "": none
	trace     string        // to reserve; "": none
}

func (s *Service) idempotencyCall(scope model.Scope, key string, a *idempotencyArgs) *store.Call {
	shard := s.store.ShardOf(scope, key)
	return store.NewCall(shard, s.scripts.idempotencyKey, []string{s.store.Keys[shard].Idempotency(scope, key)},
		a.bodyHash, a.taskID, a.fence, model.Millis(a.life), schema.MillisOrEmpty(a.createdAt), a.workerID, a.trace)
}

// idempotencyReply is what an idempotency key identifies.
type idempotencyReply struct {
	sameBody  bool
	taskID    string // "": the key is not known, and none was reserved
	fence     string
	createdAt time.Time // zero: not known yet
	workerID  string
	trace     string
}

// readIdempotency reads the values that begin at a position of a reply.
func readIdempotency(re store.Reply, at int) idempotencyReply {
	return idempotencyReply{
		sameBody: re.Int(at) == 1, taskID: re.Str(at + 1), fence: re.Str(at + 2), createdAt: schema.ParseMillis(re.Str(at + 3)),
		workerID: re.Str(at + 4), trace: re.Str(at + 5),
	}
}

// namesAtOnce is how many refs one script resolves.
const namesAtOnce = 200

// namesCall reads what identifies the other keys of tasks of one shard, and further fields of their records.
func (s *Service) namesCall(refs []*schema.TaskRef, fields ...any) *store.Call {
	return store.NewCall(refs[0].Shard, s.scripts.names, s.recordsOf(refs), fields...)
}

// readNames resolves the refs of the call and returns the values of the further fields of each.
func readNames(re store.Reply, refs []*schema.TaskRef, fields int) (values [][]string) {
	values = make([][]string, len(refs))
	for i, r := range refs {
		at := i * (2 + fields)
		r.Resolve(re.Str(at), re.Str(at+1))
		for j := range fields {
			values[i] = append(values[i], re.Str(at+2+j))
		}
	}
	return values
}

// statesCall reads the states of tasks of one shard.
func (s *Service) statesCall(refs []*schema.TaskRef) *store.Call {
	return store.NewCall(refs[0].Shard, s.scripts.states, s.recordsOf(refs))
}

// awaitCall reads them too, and has the ends of unfinished tasks announced.
func (s *Service) awaitCall(refs []*schema.TaskRef) *store.Call {
	return store.NewCall(refs[0].Shard, s.scripts.await, s.recordsOf(refs))
}

// recordsOf returns the keys of the records of tasks of one shard.
func (s *Service) recordsOf(refs []*schema.TaskRef) []string {
	keys := make([]string, len(refs))
	for i, r := range refs {
		keys[i] = s.store.Keys[r.Shard].Task(schema.TaskName(r.Scope, r.ID))
	}
	return keys
}

// readStates returns the state of each of them.
func readStates(re store.Reply) []TaskState {
	states := make([]TaskState, len(re)/2)
	for i := range states {
		if states[i].State = schema.StateOf(re.Str(2 * i)); states[i].State == model.Failed {
			states[i].Reason = model.Reason(re.Str(2*i + 1))
		}
	}
	return states
}

// How many tasks of a shard one script reads, and the average size of their documents and histories: larger tasks are read
// separately.
const (
	readAtOnce = 8
	readBytes  = 16 << 10
)

// GetCall reads a part of the task of a resolved ref; ReadTask reads the reply.
func (s *Service) GetCall(r *schema.TaskRef, p part) *store.Call {
	return s.getCall([]*schema.TaskRef{r}, p, "")
}

// getTogether reads a part of tasks of one shard, given resolved refs, except for tasks that are too large.
func (s *Service) getTogether(refs []*schema.TaskRef, p part) *store.Call {
	return s.getCall(refs, p, strconv.Itoa(readBytes*len(refs)))
}

func (s *Service) getCall(refs []*schema.TaskRef, p part, limit string) *store.Call {
	k := s.store.Keys[refs[0].Shard]
	keys, args := make([]string, 0, 3+4*len(refs)), make([]any, 0, 2+len(refs))
	keys, args = append(keys, k.Clock, k.Outages, k.Progress), append(args, string(p), limit)
	for _, r := range refs {
		name := schema.TaskName(r.Scope, r.ID)
		keys = append(keys, k.Task(name), k.Doc(name), k.History(name), k.Beats(r.TimeoutMs))
		args = append(args, name)
	}
	return store.NewCall(refs[0].Shard, s.scripts.get, keys, args...)
}

// wasRead reports whether the i-th task of a call fit, and returns its reply.
func wasRead(re store.Reply, i int) (store.Reply, bool) {
	reply := re.List(i)
	return reply, len(reply) > 0
}

// ViewReply is a task as lua/lib/view.lua replies it, or the part of it that a script reads.
type ViewReply struct {
	Now      time.Time         // by Redis's clock
	Record   map[string]string // empty: the task does not exist
	Document map[string]string
	History  []string // packed entries

	report  string        // packed
	beating bool          // its attempt has a recorded heartbeat
	silent  time.Duration // since then, in shard time
	credit  time.Duration // for outages since then
}

func readView(re store.Reply) *ViewReply {
	return &ViewReply{
		Now: re.Time(0), Record: store.Pairs(re.List(1)), Document: store.Pairs(re.List(2)), History: re.List(3).Strings(),
		report: re.Str(4), beating: re.Str(5) != "",
		silent: time.Duration(re.Int(5)) * time.Millisecond, credit: time.Duration(re.Int(6)) * time.Millisecond,
	}
}

// ReadTask returns the task in the reply to GetCall, nil if it does not exist.
func ReadTask(r *schema.TaskRef, re store.Reply) *View { return NewView(r, readView(re.List(0))) }

// cancelCall requests the cancellation of a task.
func (s *Service) cancelCall(r *schema.TaskRef, how *model.CancelRequest) *store.Call {
	grace := ""
	switch {
	case how.Now:
		grace = "0"
	case how.Grace != 0:
		grace = strconv.FormatInt(model.Millis(how.Grace), 10)
	}
	return store.NewCall(r.Shard, s.scripts.cancel, s.KeysOf(r), r.Scope.String(), r.ID, asJSON(how.Reason),
		model.Millis(model.DefaultCancelGrace), model.Millis(s.opts.FinishedRetention), grace)
}

// asJSON encodes a reason as it is stored; empty stays empty.
func asJSON(reason string) string {
	if reason == "" {
		return ""
	}
	b, _ := json.Marshal(reason) // cannot fail for a string
	return string(b)
}

// cancelReply is the reply of cancel.lua.
type cancelReply struct {
	code  int64       // CodeOK, CodeTerminal or CodeNotFound
	state model.State // for CodeTerminal
}

func readCancel(re store.Reply) cancelReply {
	return cancelReply{code: re.Int(0), state: schema.StateOf(re.Str(1))}
}

// attemptArgs are the arguments of next_attempt.lua.
type attemptArgs struct {
	from         int    // the attempt before
	fence        string // of the new one
	tokenLife    time.Duration
	startTimeout time.Duration
}

func (s *Service) nextAttemptCall(r *schema.TaskRef, a *attemptArgs) *store.Call {
	return store.NewCall(r.Shard, s.scripts.nextAttempt, s.KeysOf(r), r.Scope.String(), r.ID,
		a.from, a.fence, int64(a.tokenLife/time.Second), model.Millis(a.startTimeout))
}

// attemptReply is the reply of next_attempt.lua.
type attemptReply struct {
	code     int64       // CodeOK, CodeRepeated, CodeMismatch, CodeTerminal, CodeRefused or CodeNotFound
	task     *View       // for CodeOK and CodeRepeated
	current  int         // attempt, for CodeMismatch
	state    model.State // for CodeTerminal
	deadline bool        // for CodeRefused: its deadline has passed; else a cancel is pending
}

func readNextAttempt(r *schema.TaskRef, re store.Reply) attemptReply {
	reply := attemptReply{code: re.Int(0)}
	switch reply.code {
	case schema.CodeOK, schema.CodeRepeated:
		reply.task = NewView(r, readView(re.List(2)))
	case schema.CodeMismatch:
		reply.current = int(re.Int(2))
	case schema.CodeTerminal:
		reply.state = schema.StateOf(re.Str(2))
	default:
		reply.deadline = re.Str(2) == "deadline"
	}
	return reply
}
