package model

import (
	"fmt"
	"slices"
	"strings"
)

// EventTypes are all types of events, grouped by family. Every event that a script or a program writes has its type here.
var EventTypes = []string{
	"task.created", "task.dispatched", "task.started", "task.cancel_requested", "task.zombie", "task.retrying",
	"task.succeeded", "task.failed", "task.cancelled",
	"worker.registered", "worker.late", "worker.fresh", "worker.cordoned", "worker.uncordoned", "worker.draining", "worker.resumed",
	"worker.offline", "worker.held_offline", "worker.tasks_recovered", "worker.recovered", // the same under its old name, for one release
	"worker.flapping", "worker.identity_conflict",
	"machine.online", "machine.draining", "machine.offline", "machine.drained", "machine.held_offline", "machine.resumed",
	"machine.flapping",
	"queue.paused", "queue.resumed",
	"schedule.created", "schedule.changed", "schedule.paused", "schedule.resumed", "schedule.deleted", "schedule.fired", "schedule.skipped",
	"system.shard_started", "system.outage_credited", "system.mass_expiry_held", "system.released", "system.swept",
	"system.tokens_revoked", "system.adopted", "system.repaired",
	"webhook.created", "webhook.updated", "webhook.disabled", "webhook.dropped", "webhook.deleted",
}

// WithoutScope are the types of events that belong to no tenant and workspace.
var WithoutScope = []string{"system.shard_started", "system.outage_credited", "system.swept", "system.tokens_revoked"}

// CheckEventTypes returns an error for values that are neither a type of event nor a family such as task.*.
func CheckEventTypes(field string, types []string) error {
	for _, a := range types {
		family, whole := strings.CutSuffix(a, ".*")
		known := slices.ContainsFunc(EventTypes, func(t string) bool {
			return t == a || whole && family != "" && strings.HasPrefix(t, family+".")
		})
		if !known {
			return &Error{Code: Invalid, Op: "validate", Cause: &FieldError{field}, Message: fmt.Sprintf(
				"%s names %.64q, which is no type of events; use these, or a family such as task.*: %s", field, a, strings.Join(EventTypes, ", "))}
		}
	}
	return nil
}
