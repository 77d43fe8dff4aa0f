package workers

import (
	"github.com/lubdub-io/lubdub/api/httpapi"
)

// Routes returns the routes of the package.
func (h *Handlers) Routes() []*httpapi.Route {
	return []*httpapi.Route{
		{Method: "POST", Pattern: "/v1/workers", Op: "registerWorker", Access: httpapi.ForControl, Needs: httpapi.MayEnroll, Handle: h.register},
		{
			Method: "POST", Pattern: "/v1/workers/{workerId}/heartbeat", Op: "workerHeartbeat", Access: httpapi.ForWorker,
			Beats: httpapi.KindWorker, Handle: h.heartbeat,
		},
		{
			Method: "POST", Pattern: "/v1/workers/{workerId}/deregister", Op: "deregisterWorker", Access: httpapi.ForWorker, Needs: httpapi.MayOperate,
			Handle: h.deregister,
		},
		{
			Method: "POST", Pattern: "/v1/workers/{workerId}/drain", Op: "drainWorker", Access: httpapi.ForWorker, Needs: httpapi.MayOperate,
			Handle: h.drain,
		},
		{
			Method: "POST", Pattern: "/v1/workers/{workerId}/resume", Op: "resumeWorker", Access: httpapi.ForControl, Needs: httpapi.MayOperate,
			Handle: h.resume,
		},
		{
			Method: "POST", Pattern: "/v1/workers/{workerId}/offline", Op: "offlineWorker", Access: httpapi.ForControl, Needs: httpapi.MayOperate,
			Handle: h.offline,
		},
		{
			Method: "POST", Pattern: "/v1/workers/{workerId}/cordon", Op: "cordonWorker", Access: httpapi.ForControl, Needs: httpapi.MayOperate,
			Handle: h.cordon,
		},
		{
			Method: "POST", Pattern: "/v1/workers/{workerId}/uncordon", Op: "uncordonWorker", Access: httpapi.ForControl, Needs: httpapi.MayOperate,
			Handle: h.uncordon,
		},
		{
			Method: "POST", Pattern: "/v1/workers:cordon", Op: "cordonWorkers", Access: httpapi.ForControl, Needs: httpapi.MayOperate,
			Handle: h.cordonMany,
		},
		{
			Method: "POST", Pattern: "/v1/workers:uncordon", Op: "uncordonWorkers", Access: httpapi.ForControl, Needs: httpapi.MayOperate,
			Handle: h.uncordonMany,
		},
		{
			Method: "POST", Pattern: "/v1/workers:resume", Op: "resumeWorkers", Access: httpapi.ForControl, Needs: httpapi.MayOperate,
			Handle: h.resumeMany,
		},
		{
			Method: "POST", Pattern: "/v1/workers:offline", Op: "offlineWorkers", Access: httpapi.ForControl, Needs: httpapi.MayOperate,
			Handle: h.offlineMany,
		},
		{
			Method: "POST", Pattern: "/v1/workers:drain", Op: "drainWorkers", Access: httpapi.ForControl, Needs: httpapi.MayOperate,
			Handle: h.drainMany,
		},
		{Method: "POST", Pattern: "/v1/workers:select", Op: "selectWorker", Access: httpapi.ForControl, Needs: httpapi.MayRead, Handle: h.selectOne},
		{Method: "GET", Pattern: "/v1/workers/{workerId}", Op: "getWorker", Access: httpapi.ForControl, Needs: httpapi.MayRead, Handle: h.get},
		{
			Method: "GET", Pattern: "/v1/workers", Op: "listWorkers", Access: httpapi.ForControl, Needs: httpapi.MayRead,
			Repeats: []string{"label"}, Handle: h.list,
			Query: []string{"queue", "status", "type", "runtime", "machineId", "name", "version", "label", "liveness", "schedulable",
				"flapping", "sort", "order", "pageSize", "pageToken"},
		},
		{
			Method: "GET", Pattern: "/v1/machines", Op: "listMachines", Access: httpapi.ForControl, Needs: httpapi.MayRead,
			Handle: h.listMachines,
			Query:  []string{"status", "order", "pageSize", "pageToken"},
		},
		{
			Method: "GET", Pattern: "/v1/machines/{machineId}", Op: "getMachine", Access: httpapi.ForControl, Needs: httpapi.MayRead,
			Handle: h.getMachine,
		},
		{
			Method: "POST", Pattern: "/v1/machines/{machineId}/drain", Op: "drainMachine", Access: httpapi.ForControl, Needs: httpapi.MayOperate,
			Handle: h.drainMachine,
		},
		{
			Method: "POST", Pattern: "/v1/machines/{machineId}/offline", Op: "offlineMachine", Access: httpapi.ForControl, Needs: httpapi.MayOperate,
			Handle: h.offlineMachine,
		},
		{
			Method: "POST", Pattern: "/v1/machines/{machineId}/resume", Op: "resumeMachine", Access: httpapi.ForControl, Needs: httpapi.MayOperate,
			Handle: h.resumeMachine,
		},
	}
}
