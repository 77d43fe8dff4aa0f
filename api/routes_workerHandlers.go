package api

// Routes returns the routes of the package.
func (h *workerHandlers) Routes() []*route {
	return []*route{
		{method: "POST", pattern: "/v1/workers", op: "registerWorker", access: forControl, needs: mayEnroll, handle: h.registerWorker},
		{
			method: "POST", pattern: "/v1/workers/{workerId}/heartbeat", op: "workerHeartbeat", access: forWorker,
			beats: kindWorker, handle: h.workerHeartbeat,
		},
		{
			method: "POST", pattern: "/v1/workers/{workerId}/deregister", op: "deregisterWorker", access: forWorker, needs: mayOperate,
			handle: h.deregisterWorker,
		},
		{
			method: "POST", pattern: "/v1/workers/{workerId}/drain", op: "drainWorker", access: forWorker, needs: mayOperate,
			handle: h.drainWorker,
		},
		{
			method: "POST", pattern: "/v1/workers/{workerId}/resume", op: "resumeWorker", access: forControl, needs: mayOperate,
			handle: h.resumeWorker,
		},
		{
			method: "POST", pattern: "/v1/workers/{workerId}/offline", op: "offlineWorker", access: forControl, needs: mayOperate,
			handle: h.offlineWorker,
		},
		{
			method: "POST", pattern: "/v1/workers/{workerId}/cordon", op: "cordonWorker", access: forControl, needs: mayOperate,
			handle: h.cordonWorker,
		},
		{
			method: "POST", pattern: "/v1/workers/{workerId}/uncordon", op: "uncordonWorker", access: forControl, needs: mayOperate,
			handle: h.uncordonWorker,
		},
		{
			method: "POST", pattern: "/v1/workers:cordon", op: "cordonWorkers", access: forControl, needs: mayOperate,
			handle: h.cordonWorkers,
		},
		{
			method: "POST", pattern: "/v1/workers:uncordon", op: "uncordonWorkers", access: forControl, needs: mayOperate,
			handle: h.uncordonWorkers,
		},
		{
			method: "POST", pattern: "/v1/workers:resume", op: "resumeWorkers", access: forControl, needs: mayOperate,
			handle: h.resumeWorkers,
		},
		{
			method: "POST", pattern: "/v1/workers:offline", op: "offlineWorkers", access: forControl, needs: mayOperate,
			handle: h.offlineWorkers,
		},
		{
			method: "POST", pattern: "/v1/workers:drain", op: "drainWorkers", access: forControl, needs: mayOperate,
			handle: h.drainWorkers,
		},
		{method: "POST", pattern: "/v1/workers:select", op: "selectWorker", access: forControl, needs: mayRead, handle: h.selectWorker},
		{method: "GET", pattern: "/v1/workers/{workerId}", op: "getWorker", access: forControl, needs: mayRead, handle: h.getWorker},
		{
			method: "GET", pattern: "/v1/workers", op: "listWorkers", access: forControl, needs: mayRead,
			repeats: []string{"label"}, handle: h.listWorkers,
			query: []string{"queue", "status", "type", "runtime", "machineId", "name", "version", "label", "liveness", "schedulable",
				"flapping", "sort", "order", "pageSize", "pageToken"},
		},
		{
			method: "GET", pattern: "/v1/machines", op: "listMachines", access: forControl, needs: mayRead,
			handle: h.listMachines,
			query:  []string{"status", "order", "pageSize", "pageToken"},
		},
		{
			method: "GET", pattern: "/v1/machines/{machineId}", op: "getMachine", access: forControl, needs: mayRead,
			handle: h.getMachine,
		},
		{
			method: "POST", pattern: "/v1/machines/{machineId}/drain", op: "drainMachine", access: forControl, needs: mayOperate,
			handle: h.drainMachine,
		},
		{
			method: "POST", pattern: "/v1/machines/{machineId}/offline", op: "offlineMachine", access: forControl, needs: mayOperate,
			handle: h.offlineMachine,
		},
		{
			method: "POST", pattern: "/v1/machines/{machineId}/resume", op: "resumeMachine", access: forControl, needs: mayOperate,
			handle: h.resumeMachine,
		},
	}
}
