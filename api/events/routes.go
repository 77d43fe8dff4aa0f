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
