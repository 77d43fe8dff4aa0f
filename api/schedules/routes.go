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
			Summary: "Create a schedule",
			Description: "Each fire creates its task once, no matter how many servers run and when they die: its idempotency key is " +
				"schedule:<id>:<time>, its taskId begins with fire_, and both are reserved. A tenant may have 10,000 schedules; one " +
				"more gets 429.",
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
			Summary:     "Replace a schedule's definition",
			Description: "The schedule continues from its last fire: missed times since then are caught up, up to maxCatchup of them.",
		},
		{
			Method: "PATCH", Pattern: "/v1/schedules/{scheduleId}", Op: "changeSchedule", Handle: h.patch,
			Access: httpapi.ForControl, Needs: httpapi.MayOperate,
			Summary:     "Patch a schedule's definition",
			Description: "Like PUT, but absent fields do not change.",
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
			Summary:     "Pause a schedule",
			Description: "Fires that are pending still create their tasks.",
		},
		{
			Method: "POST", Pattern: "/v1/schedules/{scheduleId}/resume", Op: "resumeSchedule", Handle: h.resume,
			Access: httpapi.ForControl, Needs: httpapi.MayOperate,
			Summary:     "Resume a schedule",
			Description: "Missed fires are caught up, up to maxCatchup of them.",
		},
		{
			Method: "GET", Pattern: "/v1/schedules/{scheduleId}/next", Op: "nextFires", Handle: h.nextFires,
			Access: httpapi.ForControl, Needs: httpapi.MayRead,
			Query:   []string{"count"},
			Summary: "List a schedule's next fires",
		},
		{
			Method: "POST", Pattern: "/v1/schedules/{scheduleId}/fire", Op: "fireSchedule", Handle: h.fire,
			Access: httpapi.ForControl, Needs: httpapi.MayOperate,
			Summary: "Fire a schedule once, now",
			Description: "It fires even if it is paused or its earlier tasks still run. The fire has the time of the current second: " +
				"two calls within one second fire once.",
		},
		{
			Method: "POST", Pattern: "/v1/schedules/{scheduleId}/backfill", Op: "backfillSchedule", Handle: h.backfill,
			Access: httpapi.ForControl, Needs: httpapi.MayOperate,
			Summary: "Fire a schedule for a time in the past",
			Description: "It fires for each scheduled time after from, up to and including to: the newest maxCatchup of them. Times " +
				"that have already fired keep their task.",
		},
	}
}
