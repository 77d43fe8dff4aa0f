package api

// Routes returns the routes of the package.
func (h *beatHandlers) Routes() []*route {
	return []*route{
		{
			method: "POST", pattern: "/v1/tasks/{taskId}/heartbeat", op: "heartbeat", access: forBeat,
			beats: kindTask, handle: h.heartbeat,
		},
		{method: "POST", pattern: "/v1/heartbeats", op: "heartbeats", access: forItems, beats: kindTask, handle: h.heartbeats},
	}
}
