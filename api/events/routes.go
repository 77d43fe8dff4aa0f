package events

import (
	"github.com/lubdub-io/lubdub/api/httpapi"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

// Routes returns the routes of the package.
func (h *Handlers) Routes() []*httpapi.Route {
	return []*httpapi.Route{
		{
			Method: "GET", Pattern: "/v1/events", Op: "listEvents", Handle: h.get,
			Query: []httpapi.Param{tenantID, httpapi.ParamWorkspaceID, eventType, subject, runID, httpapi.ParamQueue, taskType, workerID, machineID,
				after, order, httpapi.ParamPageSize},
			Headers: []httpapi.Param{lastEventID},
			Tag:     "events", Answers: map[int]any{200: v1.EventList{}},
			Access: httpapi.ForControl, Needs: httpapi.MayRead,
			Summary: "List or stream events",
			Description: "A page of events of all shards, or a stream of them if Accept is text/event-stream. The cursor resumes both: " +
				"no event is missed, and a repeated event has the same id. If events are no longer kept, a page has a gap, and a " +
				"stream an event of that name. Pages may be short or empty if few events pass the filter: more says whether there may " +
				"be more. Every 15 s a stream sends a sign of life with its position. It ends with an event that has the cursor from " +
				"which to continue: lagged, if its client does not keep up, or end, with a reason: draining, token_expired or " +
				"token_revoked.",
		},
	}
}

// The parameters of the route.
var (
	tenantID = httpapi.Param{
		Name: "tenantId", Schema: httpapi.IDSchema,
		Description: "Half of the scope. Default: the token's; where that says *, of all, and what has no scope.",
	}
	eventType = httpapi.Param{
		Name: "type", Schema: httpapi.ListOf(httpapi.Of("string")), Repeats: true, Commas: true,
		Description: "Only events of this type, or family of types such as task.*. Several with commas.",
	}
	subject = httpapi.Param{
		Name: "subject", Schema: httpapi.IDSchema,
		Description: "Only what is about this task, worker, machine or the like: its timeline. One shard is read.",
	}
	runID     = httpapi.Param{Name: "runId", Schema: httpapi.IDSchema, Description: "Only what is about tasks of this run."}
	taskType  = httpapi.Param{Name: "taskType", Schema: httpapi.IDSchema, Description: "Only what is about tasks of this type."}
	workerID  = httpapi.Param{Name: "workerId", Schema: httpapi.IDSchema, Description: "Only what is about this worker and its attempts."}
	machineID = httpapi.Param{
		Name: "machineId", Schema: httpapi.IDSchema, Description: "Only what is about this machine, its workers and their attempts.",
	}
	after = httpapi.Param{
		Name: "after", Schema: httpapi.Of("string"),
		Description: "Where to begin, exclusive: the next of a page or the id of a streamed event, now, or a time in RFC 3339. Default: " +
			"with the first event that is kept, the newest in descending order; a stream begins now.",
	}
	order = httpapi.Param{
		Name: "order", Schema: httpapi.OneOf("asc", "desc").With("default", "asc"),
		Description: "Oldest or newest first; with newest first, after is the event from which to go back. A cursor continues in its own order.",
	}
	lastEventID = httpapi.Param{
		Name: "Last-Event-ID", Schema: httpapi.Of("string"),
		Description: "For a stream: the id of the last event that the client has received, from which it continues; it overrides after.",
	}
)
