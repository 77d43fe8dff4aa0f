package schedules

import (
	"github.com/lubdub-io/lubdub/api/httpapi"
)

// Routes returns the routes of the package.
func (h *Handlers) Routes() []*httpapi.Route {
	return []*httpapi.Route{
		{
			Method: "POST", Pattern: "/v1/schedules", Op: "createSchedule", Access: httpapi.ForControl, Needs: httpapi.MayOperate,
			Handle: h.create,
		},
		{
			Method: "GET", Pattern: "/v1/schedules", Op: "listSchedules", Access: httpapi.ForControl, Needs: httpapi.MayRead,
			Handle: h.list,
			Query:  []string{"order", "pageSize", "pageToken"},
		},
		{
			Method: "GET", Pattern: "/v1/schedules/{scheduleId}", Op: "getSchedule", Access: httpapi.ForControl, Needs: httpapi.MayRead,
			Handle: h.get,
		},
		{
			Method: "PUT", Pattern: "/v1/schedules/{scheduleId}", Op: "replaceSchedule", Access: httpapi.ForControl, Needs: httpapi.MayOperate,
			Handle: h.put,
		},
		{
			Method: "PATCH", Pattern: "/v1/schedules/{scheduleId}", Op: "changeSchedule", Access: httpapi.ForControl, Needs: httpapi.MayOperate,
			Handle: h.patch,
		},
		{
			Method: "DELETE", Pattern: "/v1/schedules/{scheduleId}", Op: "deleteSchedule", Access: httpapi.ForControl, Needs: httpapi.MayOperate,
			Handle: h.remove,
		},
		{
			Method: "POST", Pattern: "/v1/schedules/{scheduleId}/pause", Op: "pauseSchedule", Access: httpapi.ForControl, Needs: httpapi.MayOperate,
			Handle: h.pause,
		},
		{
			Method: "POST", Pattern: "/v1/schedules/{scheduleId}/resume", Op: "resumeSchedule", Access: httpapi.ForControl, Needs: httpapi.MayOperate,
			Handle: h.resume,
		},
		{
			Method: "GET", Pattern: "/v1/schedules/{scheduleId}/next", Op: "nextFires", Access: httpapi.ForControl, Needs: httpapi.MayRead,
			Handle: h.nextFires,
			Query:  []string{"count"},
		},
		{
			Method: "POST", Pattern: "/v1/schedules/{scheduleId}/fire", Op: "fireSchedule", Access: httpapi.ForControl, Needs: httpapi.MayOperate,
			Handle: h.fire,
		},
		{
			Method: "POST", Pattern: "/v1/schedules/{scheduleId}/backfill", Op: "backfillSchedule",
			Access: httpapi.ForControl, Needs: httpapi.MayOperate, Handle: h.backfill,
		},
	}
}
