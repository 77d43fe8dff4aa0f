package workers

import (
	"github.com/lubdub-io/lubdub/api/httpapi"
)

// Routes returns the routes of the package.
func (h *Handlers) Routes() []*httpapi.Route {
	return []*httpapi.Route{
		{
			Method: "POST", Pattern: "/v1/workers", Op: "registerWorker", Handle: h.register,
			Access: httpapi.ForControl, Needs: httpapi.MayEnroll,
		},
		{
			Method: "POST", Pattern: "/v1/workers/{workerId}/heartbeat", Op: "workerHeartbeat", Handle: h.heartbeat,
			Access: httpapi.ForWorker, Beats: httpapi.KindWorker,
		},
		{
			Method: "POST", Pattern: "/v1/workers/{workerId}/deregister", Op: "deregisterWorker", Handle: h.deregister,
			Access: httpapi.ForWorker, Needs: httpapi.MayOperate,
		},
		{
			Method: "POST", Pattern: "/v1/workers/{workerId}/drain", Op: "drainWorker", Handle: h.drain,
			Access: httpapi.ForWorker, Needs: httpapi.MayOperate,
		},
		{
			Method: "POST", Pattern: "/v1/workers/{workerId}/resume", Op: "resumeWorker", Handle: h.resume,
			Access: httpapi.ForControl, Needs: httpapi.MayOperate,
		},
		{
			Method: "POST", Pattern: "/v1/workers/{workerId}/offline", Op: "offlineWorker", Handle: h.offline,
			Access: httpapi.ForControl, Needs: httpapi.MayOperate,
		},
		{
			Method: "POST", Pattern: "/v1/workers/{workerId}/cordon", Op: "cordonWorker", Handle: h.cordon,
			Access: httpapi.ForControl, Needs: httpapi.MayOperate,
		},
		{
			Method: "POST", Pattern: "/v1/workers/{workerId}/uncordon", Op: "uncordonWorker", Handle: h.uncordon,
			Access: httpapi.ForControl, Needs: httpapi.MayOperate,
		},
		{
			Method: "POST", Pattern: "/v1/workers:cordon", Op: "cordonWorkers", Handle: h.cordonMany,
			Access: httpapi.ForControl, Needs: httpapi.MayOperate,
		},
		{
			Method: "POST", Pattern: "/v1/workers:uncordon", Op: "uncordonWorkers", Handle: h.uncordonMany,
			Access: httpapi.ForControl, Needs: httpapi.MayOperate,
		},
		{
			Method: "POST", Pattern: "/v1/workers:resume", Op: "resumeWorkers", Handle: h.resumeMany,
			Access: httpapi.ForControl, Needs: httpapi.MayOperate,
		},
		{
			Method: "POST", Pattern: "/v1/workers:offline", Op: "offlineWorkers", Handle: h.offlineMany,
			Access: httpapi.ForControl, Needs: httpapi.MayOperate,
		},
		{
			Method: "POST", Pattern: "/v1/workers:drain", Op: "drainWorkers", Handle: h.drainMany,
			Access: httpapi.ForControl, Needs: httpapi.MayOperate,
		},
		{
			Method: "POST", Pattern: "/v1/workers:select", Op: "selectWorker", Handle: h.selectOne,
			Access: httpapi.ForControl, Needs: httpapi.MayRead,
		},
		{
			Method: "GET", Pattern: "/v1/workers/{workerId}", Op: "getWorker", Handle: h.get,
			Access: httpapi.ForControl, Needs: httpapi.MayRead,
		},
		{
			Method: "GET", Pattern: "/v1/workers", Op: "listWorkers", Handle: h.list,
			Access: httpapi.ForControl, Needs: httpapi.MayRead, Repeats: []string{"label"},
			Query: []string{"queue", "status", "type", "runtime", "machineId", "name", "version", "label", "liveness", "schedulable",
				"flapping", "sort", "order", "pageSize", "pageToken"},
		},
		{
			Method: "GET", Pattern: "/v1/machines", Op: "listMachines", Handle: h.listMachines,
			Access: httpapi.ForControl, Needs: httpapi.MayRead,
			Query: []string{"status", "order", "pageSize", "pageToken"},
		},
		{
			Method: "GET", Pattern: "/v1/machines/{machineId}", Op: "getMachine", Handle: h.getMachine,
			Access: httpapi.ForControl, Needs: httpapi.MayRead,
		},
		{
			Method: "POST", Pattern: "/v1/machines/{machineId}/drain", Op: "drainMachine", Handle: h.drainMachine,
			Access: httpapi.ForControl, Needs: httpapi.MayOperate,
		},
		{
			Method: "POST", Pattern: "/v1/machines/{machineId}/offline", Op: "offlineMachine", Handle: h.offlineMachine,
			Access: httpapi.ForControl, Needs: httpapi.MayOperate,
		},
		{
			Method: "POST", Pattern: "/v1/machines/{machineId}/resume", Op: "resumeMachine", Handle: h.resumeMachine,
			Access: httpapi.ForControl, Needs: httpapi.MayOperate,
		},
	}
}
