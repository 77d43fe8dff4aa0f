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
			Summary: "Register a worker",
			Description: "Registering counts as the first heartbeat. A registration with the same queue, machine, name, hostname and " +
				"pid replaces the earlier one, which becomes OFFLINE with the reason SUPERSEDED and is named in superseded; processes " +
				"that keep replacing each other cause the event worker.identity_conflict. With a registrationId or an Idempotency-Key " +
				"a repeated request gets the first answer and replaces no worker. A token that is bound to a queue can register for " +
				"that queue only. While an operator holds the worker's identity (queue, machine and name; without a name queue, " +
				"machine, hostname and pid) or its machine offline, the request is rejected with 409 worker_held_offline, which names " +
				"the workerId or machineId that is held and the remedy. On a drained machine the answer has shouldDrain. A " +
				"registration may have up to 8 KiB.",
		},
		{
			Method: "POST", Pattern: "/v1/workers/{workerId}/heartbeat", Op: "workerHeartbeat", Handle: h.heartbeat,
			Access: httpapi.ForWorker, Beats: httpapi.KindWorker,
			Summary: "Send a worker's heartbeat",
			Description: "It keeps the worker alive, and every task that the worker has claimed and that has no separate timeout. On " +
				"410 stop all tasks; the reason says whether to register again. In the last third of its token's life the worker gets " +
				"a new token.",
		},
		{
			Method: "POST", Pattern: "/v1/workers/{workerId}/deregister", Op: "deregisterWorker", Handle: h.deregister,
			Access: httpapi.ForWorker, Needs: httpapi.MayOperate,
			Summary: "Deregister a worker",
			Description: "The worker is OFFLINE at once, and the tasks that it holds return to their queues without counting as lost. " +
				"With drain it is OFFLINE when it has finished what it holds.",
		},
		{
			Method: "POST", Pattern: "/v1/workers/{workerId}/drain", Op: "drainWorker", Handle: h.drain,
			Access: httpapi.ForWorker, Needs: httpapi.MayOperate,
			Summary: "Drain a worker",
			Description: "The worker claims no more tasks and finishes those that it holds. It is OFFLINE when it has finished them and " +
				"has received the drain, or at the deadline, when the tasks that it still holds return to their queues.",
		},
		{
			Method: "POST", Pattern: "/v1/workers/{workerId}/resume", Op: "resumeWorker", Handle: h.resume,
			Access: httpapi.ForControl, Needs: httpapi.MayOperate,
			Summary: "Undo a drain or a hold",
			Description: "A draining worker is ONLINE again. A worker that is held offline stays OFFLINE, and its identity may be " +
				"registered again.",
		},
		{
			Method: "POST", Pattern: "/v1/workers/{workerId}/offline", Op: "offlineWorker", Handle: h.offline,
			Access: httpapi.ForControl, Needs: httpapi.MayOperate,
			Summary: "Take a worker offline and hold it there",
			Description: "The worker is OFFLINE at once, and the tasks that it holds are lost, as if it had died; its heartbeats and " +
				"claims get 410 worker_offline with the reason FORCED_OFFLINE. Registrations with its identity (queue, machine and " +
				"name; without a name queue, machine, hostname and pid) are rejected until the worker is resumed, for 30 days at most. " +
				"A worker that is OFFLINE already is held too, unless another has replaced it.",
		},
		{
			Method: "POST", Pattern: "/v1/workers/{workerId}/cordon", Op: "cordonWorker", Handle: h.cordon,
			Access: httpapi.ForControl, Needs: httpapi.MayOperate,
			Summary: "Cordon a worker",
			Description: "The worker stays ONLINE, continues with what it holds and does not end when it is idle; its claims wait and " +
				"get nothing, and selection skips it. Tasks that were placed on it and wait are placed again. Heartbeats, drains and " +
				"resumes do not change the cordon, and a registration that replaces the worker inherits it. Cordoning a cordoned " +
				"worker changes nothing.",
		},
		{
			Method: "POST", Pattern: "/v1/workers/{workerId}/uncordon", Op: "uncordonWorker", Handle: h.uncordon,
			Access: httpapi.ForControl, Needs: httpapi.MayOperate,
			Summary:     "Undo a cordon",
			Description: "Waiting claims of the worker can get tasks at once.",
		},
		{
			Method: "POST", Pattern: "/v1/workers:cordon", Op: "cordonWorkers", Handle: h.cordonMany,
			Access: httpapi.ForControl, Needs: httpapi.MayOperate,
			Summary:     "Cordon all workers that match a selector",
			Description: "All conditions of the selector must match. If no worker matches, the answer is 404.",
		},
		{
			Method: "POST", Pattern: "/v1/workers:uncordon", Op: "uncordonWorkers", Handle: h.uncordonMany,
			Access: httpapi.ForControl, Needs: httpapi.MayOperate,
			Summary:     "Undo the cordons of all workers that match a selector",
			Description: "All conditions of the selector must match. If no worker matches, the answer is 404.",
		},
		{
			Method: "POST", Pattern: "/v1/workers:resume", Op: "resumeWorkers", Handle: h.resumeMany,
			Access: httpapi.ForControl, Needs: httpapi.MayOperate,
			Summary: "Undo the drains and holds of all workers that match a selector",
			Description: "All conditions of the selector must match. If no worker matches, the answer is 404. A drained machine stays " +
				"drained. Workers that are held offline match too, and may register again.",
		},
		{
			Method: "POST", Pattern: "/v1/workers:offline", Op: "offlineWorkers", Handle: h.offlineMany,
			Access: httpapi.ForControl, Needs: httpapi.MayOperate,
			Summary: "Take offline all workers that match a selector or have been silent",
			Description: "The workers are OFFLINE at once and held there, and the tasks that they hold are lost, as if the workers had " +
				"died. If a repeated call finds no worker left to take offline, the answer is 200.",
		},
		{
			Method: "POST", Pattern: "/v1/workers:drain", Op: "drainWorkers", Handle: h.drainMany,
			Access: httpapi.ForControl, Needs: httpapi.MayOperate,
			Summary:     "Drain all workers that match a selector",
			Description: "All conditions of the selector must match. If no worker matches, the answer is 404.",
		},
		{
			Method: "POST", Pattern: "/v1/workers:select", Op: "selectWorker", Handle: h.selectOne,
			Access: httpapi.ForControl, Needs: httpapi.MayRead,
			Summary: "Choose a worker",
			Description: "The workers of the queue are filtered by runtime, type, labels, status, cordon, freshness and capacity, in " +
				"this order; rejected counts each worker at the first filter that it fails. A worker that is OFFLINE because it was " +
				"silent counts as stale, whether or not a sweep has found it. The choice reserves nothing: to reserve, use placement " +
				"when you create the task.",
		},
		{
			Method: "GET", Pattern: "/v1/workers/{workerId}", Op: "getWorker", Handle: h.get,
			Access: httpapi.ForControl, Needs: httpapi.MayRead,
			Summary: "Read a worker",
		},
		{
			Method: "GET", Pattern: "/v1/workers", Op: "listWorkers", Handle: h.list,
			Access: httpapi.ForControl, Needs: httpapi.MayRead, Repeats: []string{"label"},
			Query: []string{"queue", "status", "type", "runtime", "machineId", "name", "version", "label", "liveness", "schedulable",
				"flapping", "sort", "order", "pageSize", "pageToken"},
			Summary: "List workers",
			Description: "Workers are in the order of registration, or of their last heartbeats. totalCount is the total of all pages, " +
				"with any filter.",
		},
		{
			Method: "GET", Pattern: "/v1/machines", Op: "listMachines", Handle: h.listMachines,
			Access: httpapi.ForControl, Needs: httpapi.MayRead,
			Query:       []string{"status", "order", "pageSize", "pageToken"},
			Summary:     "List machines",
			Description: "Machines are in the order of their ids.",
		},
		{
			Method: "GET", Pattern: "/v1/machines/{machineId}", Op: "getMachine", Handle: h.getMachine,
			Access: httpapi.ForControl, Needs: httpapi.MayRead,
			Summary: "Read a machine",
		},
		{
			Method: "POST", Pattern: "/v1/machines/{machineId}/drain", Op: "drainMachine", Handle: h.drainMachine,
			Access: httpapi.ForControl, Needs: httpapi.MayOperate,
			Summary: "Drain a machine",
			Description: "Each of its workers drains as with its own call. Until the machine is resumed, a worker that registers on it " +
				"is DRAINING from the start: its heartbeats get shouldDrain, its claims are rejected with 409, and it stays so even if " +
				"it is idle. A repeated call may set another deadline and reason.",
		},
		{
			Method: "POST", Pattern: "/v1/machines/{machineId}/offline", Op: "offlineMachine", Handle: h.offlineMachine,
			Access: httpapi.ForControl, Needs: httpapi.MayOperate,
			Summary: "Take a machine offline and hold it there",
			Description: "Its workers are OFFLINE at once with FORCED_OFFLINE, and the tasks that they hold are lost and retried. Until " +
				"the machine is resumed, registrations on it are rejected with 409 worker_held_offline. The hold ends 30 days after " +
				"the last record of a worker on the machine was deleted.",
		},
		{
			Method: "POST", Pattern: "/v1/machines/{machineId}/resume", Op: "resumeMachine", Handle: h.resumeMachine,
			Access: httpapi.ForControl, Needs: httpapi.MayOperate,
			Summary: "Undo a machine's drain and hold",
			Description: "Workers may register on a machine that was held offline; workers that were taken offline individually stay " +
				"held. Workers that drain with the machine, or that registered on it meanwhile, are ONLINE again; workers that were " +
				"drained individually continue to drain. A machine that is not drained does not change.",
		},
	}
}
