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
		},
		{
			Method: "GET", Pattern: "/v1/schedules", Op: "listSchedules", Handle: h.list,
			Access: httpapi.ForControl, Needs: httpapi.MayRead,
			Query: []string{"order", "pageSize", "pageToken"},
		},
		{
			Method: "GET", Pattern: "/v1/schedules/{scheduleId}", Op: "getSchedule", Handle: h.get,
			Access: httpapi.ForControl, Needs: httpapi.MayRead,
		},
		{
			Method: "PUT", Pattern: "/v1/schedules/{scheduleId}", Op: "replaceSchedule", Handle: h.put,
			Access: httpapi.ForControl, Needs: httpapi.MayOperate,
		},
		{
			Method: "PATCH", Pattern: "/v1/schedules/{scheduleId}", Op: "changeSchedule", Handle: h.patch,
			Access: httpapi.ForControl, Needs: httpapi.MayOperate,
		},
		{
			Method: "DELETE", Pattern: "/v1/schedules/{scheduleId}", Op: "deleteSchedule", Handle: h.remove,
			Access: httpapi.ForControl, Needs: httpapi.MayOperate,
		},
		{
			Method: "POST", Pattern: "/v1/schedules/{scheduleId}/pause", Op: "pauseSchedule", Handle: h.pause,
			Access: httpapi.ForControl, Needs: httpapi.MayOperate,
		},
		{
			Method: "POST", Pattern: "/v1/schedules/{scheduleId}/resume", Op: "resumeSchedule", Handle: h.resume,
			Access: httpapi.ForControl, Needs: httpapi.MayOperate,
		},
		{
			Method: "GET", Pattern: "/v1/schedules/{scheduleId}/next", Op: "nextFires", Handle: h.nextFires,
			Access: httpapi.ForControl, Needs: httpapi.MayRead,
			Query: []string{"count"},
		},
		{
			Method: "POST", Pattern: "/v1/schedules/{scheduleId}/fire", Op: "fireSchedule", Handle: h.fire,
			Access: httpapi.ForControl, Needs: httpapi.MayOperate,
		},
		{
			Method: "POST", Pattern: "/v1/schedules/{scheduleId}/backfill", Op: "backfillSchedule", Handle: h.backfill,
			Access: httpapi.ForControl, Needs: httpapi.MayOperate,
		},
	}
}
