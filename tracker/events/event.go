package events

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/schema"
)

// Event is one thing that has happened. What is not known of it is empty. Machine and version of a task's worker are known
// once they were looked up, by Resolve.
type Event struct {
	Shard int
	At    Position // of its entry
	Ms    int64    // when it happened, wall time

	Type      string
	Scope     model.Scope // zero: it is about the system
	Subject   string      // the task, worker, machine or whatever it is about
	Attempt   int         // 0: it is about none
	RunID     string
	Queue     string
	TaskType  string
	WorkerID  string
	MachineID string
	Version   string // of the worker
	Cause     string // why: the reason of a verdict, such as HEARTBEAT_TIMEOUT
	By        string // who did it
	Trace     string // traceparent of the task's creation
	Data      string // the rest, as JSON object
}

// ID names the event for good: what is read twice has the same.
func (e *Event) ID() string { return fmt.Sprintf("evt_%03x_%d_%d", e.Shard, e.At.Ms, e.At.Seq) }

// parse reads an entry of a stream. What is no event of ours is nil.
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

// FNV-1a, of the values of an entry.
const fnvBasis uint32 = 2166136261

func fnv(h uint32, s string) uint32 {
	for i := 0; i < len(s); i++ {
		h = (h ^ uint32(s[i])) * 16777619
	}
	return (h ^ 0xff) * 16777619 // a byte that no text has, between two values
}

// judged are the types whose reason is one of ours; that of others is what a user has given.
var judged = map[string]bool{
	"task.zombie": true, "task.retrying": true, "task.failed": true, "task.cancelled": true, "worker.offline": true,
}

// causeOf takes the reason out of the data, of which it is the first member.
func causeOf(e *Event) string {
	rest, ok := strings.CutPrefix(e.Data, `{"reason":"`)
	if !ok || !judged[e.Type] {
		return ""
	}
	cause, _, _ := strings.Cut(rest, `"`)
	return cause
}
