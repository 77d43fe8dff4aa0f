package events

import (
	"slices"
	"strings"

	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/schema"
	"github.com/lubdub-io/lubdub/tracker/store"
)

// Filter selects events. Zero fields do not filter.
type Filter struct {
	Tenant    string // "": all tenants, and events without a scope
	Workspace string // of the tenant, or of each tenant
	Types     []string
	Subject   string
	RunID     string
	Queue     string
	TaskType  string
	WorkerID  string
	MachineID string
}

// Validate returns an error for unknown event types. IDs are not checked.
func (f *Filter) Validate() error { return model.CheckEventTypes("type", f.Types) }

// Match reports whether an event passes the filter. Call Resolve on the event first.
func (f *Filter) Match(e *Event) bool {
	return f.matchStored(e) && (f.MachineID == "" || e.MachineID == f.MachineID)
}

// matchStored is Match for the fields in the entry itself: all but the machine.
func (f *Filter) matchStored(e *Event) bool {
	return (f.Tenant == "" || f.Tenant == e.Scope.Tenant) && (f.Workspace == "" || f.Workspace == e.Scope.Workspace) &&
		(f.Subject == "" || f.Subject == e.Subject) && (f.RunID == "" || f.RunID == e.RunID) &&
		(f.Queue == "" || f.Queue == e.Queue) && (f.TaskType == "" || f.TaskType == e.TaskType) &&
		(f.WorkerID == "" || f.WorkerID == e.WorkerID) && (len(f.Types) == 0 || slices.ContainsFunc(f.Types, e.is))
}

// sought returns the one field by which Redis may select entries, so that it replies with few that do not match: the most selective one
// of the filter. An entry shows what a machine's workers do only once the workers were looked up, and a run may be known only by the name
// of its task.
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

// is reports whether the event has this type, or belongs to this family, such as task.*.
func (e *Event) is(kind string) bool {
	family, whole := strings.CutSuffix(kind, "*")
	return e.Type == kind || whole && strings.HasPrefix(e.Type, family)
}

// shards returns the shards that may have matching events; nil: all. A subject is in one shard, which follows from its name and scope.
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
