package events

import (
	"slices"
	"strings"

	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/schema"
	"github.com/lubdub-io/lubdub/tracker/store"
)

// Filter chooses events. Zero fields do not filter.
type Filter struct {
	Tenant    string // "": of all, and what has no scope
	Workspace string // of the tenant, or of each tenant
	Types     []string
	Subject   string
	RunID     string
	Queue     string
	TaskType  string
	WorkerID  string
	MachineID string
}

// Validate refuses types of events that there are not. Ids are not checked.
func (f *Filter) Validate() error { return model.CheckEventTypes("type", f.Types) }

// Match reports whether an event, which was resolved, is one that the filter asks for.
func (f *Filter) Match(e *Event) bool {
	return f.matchStored(e) && (f.MachineID == "" || e.MachineID == f.MachineID)
}

// matchStored is Match as far as the entry itself tells: without the machine.
func (f *Filter) matchStored(e *Event) bool {
	return (f.Tenant == "" || f.Tenant == e.Scope.Tenant) && (f.Workspace == "" || f.Workspace == e.Scope.Workspace) &&
		(f.Subject == "" || f.Subject == e.Subject) && (f.RunID == "" || f.RunID == e.RunID) &&
		(f.Queue == "" || f.Queue == e.Queue) && (f.TaskType == "" || f.TaskType == e.TaskType) &&
		(f.WorkerID == "" || f.WorkerID == e.WorkerID) && (len(f.Types) == 0 || slices.ContainsFunc(f.Types, e.is))
}

// sought returns what Redis may look at, so that little is replied that does not match: one field that the filter asks for, that
// which fewest events have. What a machine's workers do is known of their entries only once the workers were looked up, and a run
// may be known by the name of its task alone.
func (f *Filter) sought() sought {
	kind := ""
	if len(f.Types) == 1 && !strings.HasSuffix(f.Types[0], "*") {
		kind = f.Types[0]
	}
	for _, of := range []sought{
		{field: "subject", text: f.Subject}, {field: "worker", text: f.WorkerID}, {field: "machine", text: f.MachineID, other: "worker"},
		{field: "type", text: kind}, {field: "kind", text: f.TaskType}, {field: "queue", text: f.Queue},
	} {
		if of.text != "" {
			return of
		}
	}
	return sought{}
}

// is reports whether the event has a type, or is of a family such as task.*.
func (e *Event) is(kind string) bool {
	family, whole := strings.CutSuffix(kind, "*")
	return e.Type == kind || whole && strings.HasPrefix(e.Type, family)
}

// shards returns where events may be that the filter asks for; nil: anywhere. A subject lives in one shard, which its
// name tells together with its scope.
func (f *Filter) shards(s *store.Store) []int {
	if f.Subject == "" || f.Tenant == "" || f.Workspace == "" {
		return nil
	}
	scope := model.Scope{Tenant: f.Tenant, Workspace: f.Workspace}
	if shard, ok := s.WorkerShard(f.Subject); ok {
		return []int{shard}
	}
	return []int{schema.ShardOf(s.Shards(), scope, f.Subject)}
}
