package schedules

import (
	"github.com/lubdub-io/lubdub/api/httpapi"
)

// Routes returns the routes of the package.
func (h *Handlers) Routes() []*httpapi.Route {
	return []*httpapi.Route{
		{
			Method: "POST", Pattern: "/v1/schedules", Op: "createSchedule", Handle: h.create,
			Access: httpapi.ForControl, Needs: httpapi.MayOperate,
			Summary: "Create tasks by the clock",
			Description: "Each fire creates its task once, however many servers there are and whenever they die: its idempotency " +
				"key is schedule:<id>:<time>, its taskId begins with fire_, and both are reserved. A tenant may have 10,000 " +
				"schedules; one beyond is answered 429.",
		},
		{
			Method: "GET", Pattern: "/v1/schedules", Op: "listSchedules", Handle: h.list,
			Access: httpapi.ForControl, Needs: httpapi.MayRead,
			Query:   []string{"order", "pageSize", "pageToken"},
			Summary: "List schedules",
		},
		{
			Method: "GET", Pattern: "/v1/schedules/{scheduleId}", Op: "getSchedule", Handle: h.get,
			Access: httpapi.ForControl, Needs: httpapi.MayRead,
			Summary: "Read a schedule",
		},
		{
			Method: "PUT", Pattern: "/v1/schedules/{scheduleId}", Op: "replaceSchedule", Handle: h.put,
			Access: httpapi.ForControl, Needs: httpapi.MayOperate,
			Summary: "Replace what a schedule says",
			Description: "It goes on from the last fire: times since then at which it would have fired are caught up, maxCatchup " +
				"of them.",
		},
		{
			Method: "PATCH", Pattern: "/v1/schedules/{scheduleId}", Op: "changeSchedule", Handle: h.patch,
			Access: httpapi.ForControl, Needs: httpapi.MayOperate,
			Summary:     "Change a part of what a schedule says",
			Description: "As PUT, and what is absent stays as it is.",
		},
		{
			Method: "DELETE", Pattern: "/v1/schedules/{scheduleId}", Op: "deleteSchedule", Handle: h.remove,
			Access: httpapi.ForControl, Needs: httpapi.MayOperate,
			Summary:     "Delete a schedule",
			Description: "Its tasks stay.",
		},
		{
			Method: "POST", Pattern: "/v1/schedules/{scheduleId}/pause", Op: "pauseSchedule", Handle: h.pause,
			Access: httpapi.ForControl, Needs: httpapi.MayOperate,
			Summary:     "Stop new fires",
			Description: "Fires that are pending still create their tasks.",
		},
		{
			Method: "POST", Pattern: "/v1/schedules/{scheduleId}/resume", Op: "resumeSchedule", Handle: h.resume,
			Access: httpapi.ForControl, Needs: httpapi.MayOperate,
			Summary:     "Let a schedule go on",
			Description: "What it has missed is caught up, maxCatchup fires.",
		},
		{
			Method: "GET", Pattern: "/v1/schedules/{scheduleId}/next", Op: "nextFires", Handle: h.nextFires,
			Access: httpapi.ForControl, Needs: httpapi.MayRead,
			Query:   []string{"count"},
			Summary: "When a schedule fires next",
		},
		{
			Method: "POST", Pattern: "/v1/schedules/{scheduleId}/fire", Op: "fireSchedule", Handle: h.fire,
			Access: httpapi.ForControl, Needs: httpapi.MayOperate,
			Summary: "Fire now, once",
			Description: "Also when it is paused, and whatever still runs. The fire has the time of the present second: twice " +
				"within one is once.",
		},
		{
			Method: "POST", Pattern: "/v1/schedules/{scheduleId}/backfill", Op: "backfillSchedule", Handle: h.backfill,
			Access: httpapi.ForControl, Needs: httpapi.MayOperate,
			Summary: "Make up for a time that is over",
			Description: "Fires for each time after from, up to and with to: the newest maxCatchup of them. Those that have fired " +
				"keep their one task.",
		},
	}
}
