package api

// Routes returns the routes of the package.
func (h *scheduleHandlers) Routes() []*route {
	return []*route{
		{
			method: "POST", pattern: "/v1/schedules", op: "createSchedule", access: forControl, needs: mayOperate,
			handle: h.createSchedule,
		},
		{
			method: "GET", pattern: "/v1/schedules", op: "listSchedules", access: forControl, needs: mayRead,
			handle: h.listSchedules,
			query:  []string{"order", "pageSize", "pageToken"},
		},
		{
			method: "GET", pattern: "/v1/schedules/{scheduleId}", op: "getSchedule", access: forControl, needs: mayRead,
			handle: h.getSchedule,
		},
		{
			method: "PUT", pattern: "/v1/schedules/{scheduleId}", op: "replaceSchedule", access: forControl, needs: mayOperate,
			handle: h.putSchedule,
		},
		{
			method: "PATCH", pattern: "/v1/schedules/{scheduleId}", op: "changeSchedule", access: forControl, needs: mayOperate,
			handle: h.patchSchedule,
		},
		{
			method: "DELETE", pattern: "/v1/schedules/{scheduleId}", op: "deleteSchedule", access: forControl, needs: mayOperate,
			handle: h.deleteSchedule,
		},
		{
			method: "POST", pattern: "/v1/schedules/{scheduleId}/pause", op: "pauseSchedule", access: forControl, needs: mayOperate,
			handle: h.pauseSchedule,
		},
		{
			method: "POST", pattern: "/v1/schedules/{scheduleId}/resume", op: "resumeSchedule", access: forControl, needs: mayOperate,
			handle: h.resumeSchedule,
		},
		{
			method: "GET", pattern: "/v1/schedules/{scheduleId}/next", op: "nextFires", access: forControl, needs: mayRead,
			handle: h.nextFires,
			query:  []string{"count"},
		},
		{
			method: "POST", pattern: "/v1/schedules/{scheduleId}/fire", op: "fireSchedule", access: forControl, needs: mayOperate,
			handle: h.fireSchedule,
		},
		{
			method: "POST", pattern: "/v1/schedules/{scheduleId}/backfill", op: "backfillSchedule",
			access: forControl, needs: mayOperate, handle: h.backfillSchedule,
		},
	}
}
