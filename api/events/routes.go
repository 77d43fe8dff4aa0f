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
			Summary: "What has happened",
			Description: "A page of events of all shards, or, where Accept asks for text/event-stream, a stream of them. The " +
				"cursor resumes both: nothing is missed, and what comes twice has the same id. Where events are not kept any more " +
				"a page has a gap, and a stream an event of that name. Pages may be short, or empty, where little passes the " +
				"filter: more says whether there may be more. A stream says every 15 s that it is alive, and where it is. It ends " +
				"with an event and the cursor to go on from: lagged, when its client does not keep up, or end, with a reason: " +
				"draining, token_expired or token_revoked.",
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
		Description: "Oldest or newest first; then after is where to go back from. A cursor goes on in its own order.",
	}
	lastEventID = httpapi.Param{
		Name: "Last-Event-ID", Schema: httpapi.Of("string"),
		Description: "Of a stream: the id of the last event that the client has seen, from which it goes on; it goes before after.",
	}
)
