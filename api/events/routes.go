package events

import (
	"github.com/lubdub-io/lubdub/api/httpapi"
)

// Routes returns the routes of the package.
func (h *Handlers) Routes() []*httpapi.Route {
	return []*httpapi.Route{
		{
			Method: "GET", Pattern: "/v1/events", Op: "listEvents", Handle: h.get,
			Access: httpapi.ForControl, Needs: httpapi.MayRead, Repeats: []string{"type"},
			Query:   []string{"type", "subject", "runId", "queue", "taskType", "workerId", "machineId", "after", "order", "pageSize"},
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
