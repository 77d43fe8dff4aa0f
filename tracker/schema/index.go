package schema

import (
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"strings"
	"time"

	"github.com/lubdub-io/lubdub/tracker/model"
)

// These are the kinds of entries in the index of tasks other than <scope>/<state letter>/<task>, by their first character: all sort
// behind the names of scopes (lua/lib/task.lua).
const (
	RunningEntry = "{"                // <scope>/<queue>/<task>: an attempt of a queued task is dispatched or runs
	EndEntry     = "|"                // <scope>/<state letter>/<ended wall ms>/<task>
	VerdictEntry = "}"                // <scope>/<wall ms>/<task>/<attempt>/<reason>/<queue>/<type>/<worker>
	FailureEntry = VerdictEntry + "!" // <scope>/…/<worker>/<error>: like a verdict, but reported by the worker
	SizeEntry    = "~"                // <tenant>/<class of size>/<workspace>/<task>
)

// MaxFailures is how many entries of reported failures a shard has of a scope, the newest (complete.lua).
const MaxFailures = 1000

// IndexKinds are the characters of all these kinds.
const IndexKinds = RunningEntry + EndEntry + FailureEntry + SizeEntry

// These are the kinds of entries in the index of workers other than <scope>/<status letter>/<worker> and <scope>/M/<machine>
// (lua/lib/worker.lua).
const (
	MachineByStatus = "{" // <scope>/m/<status letter>/<machine>
	LateWorker      = "|" // <scope>/<worker>
	WorkerOfQueue   = "}" // <scope>/<queue>/<status letter>/<ability>/<worker>
	LostWorker      = "~" // <scope>/<ended wall ms>/<worker>
)

// Cordoned is the status letter of an ONLINE, cordoned worker among the workers by queue.
const Cordoned = "C"

// Ability returns the hash of what a worker can run, for the entries of workers by queue. It is equal for workers that can run the same.
func Ability(types, runtimes []string, labels map[string]string) string {
	text := strings.Join(types, ",") + PackSep + strings.Join(runtimes, ",") + PackSep + model.PackLabels(labels)
	sum := sha1.Sum([]byte(text)) // scripts have it too; it protects nothing
	return hex.EncodeToString(sum[:])[:16]
}

// Sortable returns a time in the form of entries that are sorted by time: wall ms in 13 digits.
func Sortable(t time.Time) string { return fmt.Sprintf("%013d", max(0, t.UnixMilli())) }

// Verdict is a verdict of Lubdub on an attempt, or a failure that a worker reported, as the index stores it.
type Verdict struct {
	At       time.Time
	TaskID   string
	Attempt  int // 0: the task had none
	Reason   model.Reason
	Queue    string // "": the task was pushed
	Type     string // "": none
	WorkerID string // "": none
	Error    string // of a reported failure, as ErrorGroup returns it
}

// ParseVerdict parses the part behind the scope of an entry; ok is false if it is malformed.
func ParseVerdict(text string) (v Verdict, ok bool) {
	const parts = 7
	p := strings.SplitN(text, "/", parts+1)
	if len(p) < parts {
		return v, false
	}
	return Verdict{
		At: ParseMillis(p[0]), TaskID: p[1], Attempt: Atoi(p[2]), Reason: model.Reason(p[3]), Queue: p[4], Type: p[5], WorkerID: p[6],
		Error: strings.Join(p[parts:], ""),
	}, true
}
