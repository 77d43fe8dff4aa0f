package events

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/schema"
)

// Event is one thing that has happened. Unknown fields are empty. The machine and version of a task's worker are set by Resolve.
type Event struct {
	Shard int
	At    Position // of its entry
	Ms    int64    // when it happened, wall time

	Type      string
	Scope     model.Scope // zero: the event is about the system
	Subject   string      // the name of the task, worker, machine or other thing it is about
	Attempt   int         // 0: it is about no attempt
	RunID     string
	Queue     string
	TaskType  string
	WorkerID  string
	MachineID string
	Version   string // of the worker
	Cause     string // the reason of a verdict, such as HEARTBEAT_TIMEOUT
	By        string // the actor
	Trace     string // traceparent of the task's creation
	Data      string // all other fields, as a JSON object
}

// ID returns the permanent ID of the event: an event that is read twice has the same one.
func (e *Event) ID() string { return fmt.Sprintf("evt_%03x_%d_%d", e.Shard, e.At.Ms, e.At.Seq) }

// parse reads an entry of a stream. It returns nil for an entry that is not an event.
func parse(shard int, entry storedEvent) *Event {
	ms, seq, ok := parseID(entry.id)
	if !ok {
		return nil
	}
	e := &Event{Shard: shard, At: Position{Ms: ms, Seq: seq, kind: atEntry}}
	mark, about := fnvBasis, false
	for i := 0; i+1 < len(entry.words); i += 2 {
		name, value := entry.words[i], entry.words[i+1]
		mark = fnv(mark, value)
		switch name {
		case "type":
			e.Type = value
		case "time":
			e.Ms, _ = strconv.ParseInt(value, 10, 64)
		case "scope":
			e.Scope.Tenant, e.Scope.Workspace, _ = strings.Cut(value, "/")
		case "subject":
			e.Subject = value
		case "attempt":
			about = value != ""
			e.Attempt, _ = strconv.Atoi(value)
		case "run":
			e.RunID = value
		case "queue":
			e.Queue = value
		case "kind":
			e.TaskType = value
		case "worker":
			e.WorkerID = value
		case "machine":
			e.MachineID = value
		case "by":
			e.By = value
		case "trace":
			e.Trace = value
		case "data":
			e.Data = value
		}
	}
	e.At.Mark = uint16(mark ^ mark>>16)
	if about && e.RunID == "" {
		e.RunID = schema.RunOf(e.Subject)
	}
	e.Cause = causeOf(e)
	return e
}

// The hash of an entry's values is FNV-1a.
const fnvBasis uint32 = 2166136261

func fnv(h uint32, s string) uint32 {
	for i := 0; i < len(s); i++ {
		h = (h ^ uint32(s[i])) * 16777619
	}
	return (h ^ 0xff) * 16777619 // a byte that no text contains separates two values
}

// systemReason are the types whose reason Lubdub sets; that of other types comes from a user.
var systemReason = map[string]bool{
	"task.zombie": true, "task.retrying": true, "task.failed": true, "task.cancelled": true, "worker.offline": true,
}

// causeOf returns the reason in the data, which is its first member.
func causeOf(e *Event) string {
	rest, ok := strings.CutPrefix(e.Data, `{"reason":"`)
	if !ok || !systemReason[e.Type] {
		return ""
	}
	cause, _, _ := strings.Cut(rest, `"`)
	return cause
}
