package schema

import (
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"strings"
	"time"

	"github.com/lubdub-io/lubdub/tracker/model"
)

// Kinds of entries in the index of tasks besides <scope>/<state letter>/<task>, by the character with which they begin: all lie
// behind the names of scopes (lua/lib/task.lua).
const (
	RunningEntry = "{" // <scope>/<queue>/<task>: an attempt of a queue's task is dispatched or runs
	EndEntry     = "|" // <scope>/<state letter>/<ended wall ms>/<task>
	VerdictEntry = "}" // <scope>/<wall ms>/<task>/<attempt>/<reason>/<queue>/<type>/<worker>
	SizeEntry    = "~" // <tenant>/<class of size>/<workspace>/<task>
)

// IndexKinds are all of them.
const IndexKinds = RunningEntry + EndEntry + VerdictEntry + SizeEntry

// Kinds of entries in the index of workers besides <scope>/<status letter>/<worker> and <scope>/M/<machine> (lua/lib/worker.lua).
const (
	MachineByStatus = "{" // <scope>/m/<status letter>/<machine>
	LateWorker      = "|" // <scope>/<worker>
	WorkerOfQueue   = "}" // <scope>/<queue>/<status letter>/<ability>/<worker>
	LostWorker      = "~" // <scope>/<ended wall ms>/<worker>
)

// Cordoned is the status letter, among workers by queue, of one that is ONLINE and cordoned.
const Cordoned = "C"

// Ability returns what stands among workers by queue for what a worker can run: the same for all that can run the same.
func Ability(types, runtimes []string, labels map[string]string) string {
	text := strings.Join(types, ",") + PackSep + strings.Join(runtimes, ",") + PackSep + model.PackLabels(labels)
	sum := sha1.Sum([]byte(text)) // which scripts know too; it guards nothing
	return hex.EncodeToString(sum[:])[:16]
}

// Sortable returns a time as entries that are sorted by time have it: wall ms in 13 digits.
func Sortable(t time.Time) string { return fmt.Sprintf("%013d", max(0, t.UnixMilli())) }

// Verdict is one verdict of Lubdub's upon an attempt, as the index keeps it.
type Verdict struct {
	At       time.Time
	TaskID   string
	Attempt  int // 0: the task had none yet
	Reason   model.Reason
	Queue    string // "": the task was pushed
	Type     string // "": it has none
	WorkerID string // "": no worker had the attempt
}

// ParseVerdict reads what stands behind the scope of an entry.
func ParseVerdict(text string) (v Verdict, ok bool) {
	p := strings.Split(text, "/")
	if len(p) != 7 {
		return v, false
	}
	return Verdict{
		At: ParseMillis(p[0]), TaskID: p[1], Attempt: Atoi(p[2]), Reason: model.Reason(p[3]), Queue: p[4], Type: p[5], WorkerID: p[6],
	}, true
}
