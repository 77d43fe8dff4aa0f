package api

// Routes returns the routes of the package.
func (h *eventHandlers) Routes() []*route {
	return []*route{
		{
			method: "GET", pattern: "/v1/events", op: "listEvents", access: forControl, needs: mayRead,
			repeats: []string{"type"}, handle: h.events,
			query: []string{"type", "subject", "runId", "queue", "taskType", "workerId", "machineId", "after", "order", "pageSize"},
		},
	}
}
