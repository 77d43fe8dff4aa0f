package api

// Routes returns the routes of the package.
func (h *queueHandlers) Routes() []*route {
	return []*route{
		{method: "POST", pattern: "/v1/queues/{queue}/claim", op: "claimTasks", access: forWorker, waits: true, handle: h.claimTasks},
		{
			method: "GET", pattern: "/v1/queues", op: "listQueues", access: forControl, needs: mayRead,
			handle: h.listQueues,
			query:  []string{"order"},
		},
		{method: "GET", pattern: "/v1/queues/{queue}", op: "getQueue", access: forControl, needs: mayRead, handle: h.getQueue},
		{
			method: "POST", pattern: "/v1/queues/{queue}/pause", op: "pauseQueue", access: forControl, needs: mayOperate,
			handle: h.pauseQueue,
		},
		{
			method: "POST", pattern: "/v1/queues/{queue}/resume", op: "resumeQueue", access: forControl, needs: mayOperate,
			handle: h.resumeQueue,
		},
	}
}
