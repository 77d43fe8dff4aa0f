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
			Description: "Counts as its first beat. The same queue, machine, name, hostname and pid again take the place of the " +
				"registration before, which is OFFLINE then, SUPERSEDED, and is named by superseded; processes that keep doing " +
				"that to each other are told as worker.identity_conflict. With a registrationId or an Idempotency-Key a repeat " +
				"gets the first answer and supersedes nobody. A token that is tied to a queue registers for that one only. While " +
				"an operator holds the worker's identity (queue, machine and name; without a name queue, machine, hostname and " +
				"pid) or its machine offline it is refused with 409 worker_held_offline, with the workerId or machineId that is " +
				"held and the remedy. On a drained machine the answer has shouldDrain. All that a registration says may take 8 KiB.",
		},
		{
			Method: "POST", Pattern: "/v1/workers/{workerId}/heartbeat", Op: "workerHeartbeat", Handle: h.heartbeat,
			Access: httpapi.ForWorker, Beats: httpapi.KindWorker,
			Summary: "The worker is alive",
			Description: "And with it every task that it has claimed and that has no timeout of its own. On 410 stop everything; " +
				"the reason says whether to register again. In the last third of its token's life it gets a fresh one.",
		},
		{
			Method: "POST", Pattern: "/v1/workers/{workerId}/deregister", Op: "deregisterWorker", Handle: h.deregister,
			Access: httpapi.ForWorker, Needs: httpapi.MayOperate,
			Summary: "The worker goes",
			Description: "At once, and what it holds goes back to its queues without counting as lost; or, with drain, when it has " +
				"finished what it holds.",
		},
		{
			Method: "POST", Pattern: "/v1/workers/{workerId}/drain", Op: "drainWorker", Handle: h.drain,
			Access: httpapi.ForWorker, Needs: httpapi.MayOperate,
			Summary: "Let a worker finish and go",
			Description: "It claims nothing more, finishes what it holds, and is OFFLINE when it has and knows that it drains; or " +
				"at the deadline, when what it still holds goes back to its queues.",
		},
		{
			Method: "POST", Pattern: "/v1/workers/{workerId}/resume", Op: "resumeWorker", Handle: h.resume,
			Access: httpapi.ForControl, Needs: httpapi.MayOperate,
			Summary: "Take a drain or a hold back",
			Description: "A worker that drains is ONLINE again. One that is held offline stays OFFLINE, and its identity may be " +
				"registered again.",
		},
		{
			Method: "POST", Pattern: "/v1/workers/{workerId}/offline", Op: "offlineWorker", Handle: h.offline,
			Access: httpapi.ForControl, Needs: httpapi.MayOperate,
			Summary: "Take a worker offline and hold it so",
			Description: "It is OFFLINE at once and what it holds is lost, as if it had died; its beats and claims are 410 " +
				"worker_offline with the reason FORCED_OFFLINE. Its identity (queue, machine and name; without a name queue, " +
				"machine, hostname and pid) is refused registration until the worker is resumed, for 30 days at most. A worker " +
				"that is OFFLINE already is held, too, unless another has taken its place.",
		},
		{
			Method: "POST", Pattern: "/v1/workers/{workerId}/cordon", Op: "cordonWorker", Handle: h.cordon,
			Access: httpapi.ForControl, Needs: httpapi.MayOperate,
			Summary: "Let a worker take nothing new",
			Description: "It stays ONLINE, goes on with what it holds and does not end when it is idle; its claims wait and get " +
				"nothing, and selection passes over it. What was placed on it and waits is placed anew. Beats, drains and resumes " +
				"leave the cordon as it is, and whoever registers in the worker's place inherits it. Again it changes nothing.",
		},
		{
			Method: "POST", Pattern: "/v1/workers/{workerId}/uncordon", Op: "uncordonWorker", Handle: h.uncordon,
			Access: httpapi.ForControl, Needs: httpapi.MayOperate,
			Summary:     "Take a cordon back",
			Description: "Its claims that wait go on at once.",
		},
		{
			Method: "POST", Pattern: "/v1/workers:cordon", Op: "cordonWorkers", Handle: h.cordonMany,
			Access: httpapi.ForControl, Needs: httpapi.MayOperate,
			Summary:     "Cordon all workers that a selector names",
			Description: "All that the selector says must match. One that matches nothing is told so with 404.",
		},
		{
			Method: "POST", Pattern: "/v1/workers:uncordon", Op: "uncordonWorkers", Handle: h.uncordonMany,
			Access: httpapi.ForControl, Needs: httpapi.MayOperate,
			Summary:     "Take the cordons of all workers back that a selector names",
			Description: "All that the selector says must match. One that matches nothing is told so with 404.",
		},
		{
			Method: "POST", Pattern: "/v1/workers:resume", Op: "resumeWorkers", Handle: h.resumeMany,
			Access: httpapi.ForControl, Needs: httpapi.MayOperate,
			Summary: "Take the drains of all workers back that a selector names",
			Description: "All that the selector says must match. One that matches nothing is told so with 404. A drained machine " +
				"stays drained. Workers that are held offline match, too, and may register again.",
		},
		{
			Method: "POST", Pattern: "/v1/workers:offline", Op: "offlineWorkers", Handle: h.offlineMany,
			Access: httpapi.ForControl, Needs: httpapi.MayOperate,
			Summary: "Give up all workers that a selector names, or that have been silent",
			Description: "They are OFFLINE at once and held so, and what they hold is lost, as if they had died. The same call " +
				"again may find that nobody is left to give up, and says so with 200.",
		},
		{
			Method: "POST", Pattern: "/v1/workers:drain", Op: "drainWorkers", Handle: h.drainMany,
			Access: httpapi.ForControl, Needs: httpapi.MayOperate,
			Summary:     "Drain all workers that a selector names",
			Description: "All that the selector says must match. One that matches nothing is told so with 404.",
		},
		{
			Method: "POST", Pattern: "/v1/workers:select", Op: "selectWorker", Handle: h.selectOne,
			Access: httpapi.ForControl, Needs: httpapi.MayRead,
			Summary: "Choose a worker",
			Description: "Workers of the queue are asked for runtime, type, labels, status, cordon, freshness and capacity, in " +
				"this order; rejected counts them at the first that they fail. A worker that went OFFLINE by its silence counts as " +
				"stale, whether or not a sweep has come by. Choosing reserves nothing: use placement at creation for that.",
		},
		{
			Method: "GET", Pattern: "/v1/workers/{workerId}", Op: "getWorker", Handle: h.get,
			Access: httpapi.ForControl, Needs: httpapi.MayRead,
			Summary: "One worker",
		},
		{
			Method: "GET", Pattern: "/v1/workers", Op: "listWorkers", Handle: h.list,
			Access: httpapi.ForControl, Needs: httpapi.MayRead, Repeats: []string{"label"},
			Query: []string{"queue", "status", "type", "runtime", "machineId", "name", "version", "label", "liveness", "schedulable",
				"flapping", "sort", "order", "pageSize", "pageToken"},
			Summary:     "List workers",
			Description: "In the order of registration, or of last heartbeats. totalCount is that of all pages, whatever the filter.",
		},
		{
			Method: "GET", Pattern: "/v1/machines", Op: "listMachines", Handle: h.listMachines,
			Access: httpapi.ForControl, Needs: httpapi.MayRead,
			Query:       []string{"status", "order", "pageSize", "pageToken"},
			Summary:     "List machines",
			Description: "In the order of their ids.",
		},
		{
			Method: "GET", Pattern: "/v1/machines/{machineId}", Op: "getMachine", Handle: h.getMachine,
			Access: httpapi.ForControl, Needs: httpapi.MayRead,
			Summary: "One machine",
		},
		{
			Method: "POST", Pattern: "/v1/machines/{machineId}/drain", Op: "drainMachine", Handle: h.drainMachine,
			Access: httpapi.ForControl, Needs: httpapi.MayOperate,
			Summary: "Drain a machine",
			Description: "Its workers drain as by calls of their own. Until the machine is resumed a worker that registers on it " +
				"is DRAINING from the start: its beats are told shouldDrain, its claims are refused with 409, and it stays so " +
				"however idle it is. Again it may set another deadline and reason.",
		},
		{
			Method: "POST", Pattern: "/v1/machines/{machineId}/offline", Op: "offlineMachine", Handle: h.offlineMachine,
			Access: httpapi.ForControl, Needs: httpapi.MayOperate,
			Summary: "Take a machine offline and hold it so",
			Description: "Its workers are OFFLINE at once with FORCED_OFFLINE, and what they hold is lost and tried again. Until " +
				"the machine is resumed every registration on it is refused with 409 worker_held_offline. The hold ends 30 days " +
				"after the machine's last worker was forgotten.",
		},
		{
			Method: "POST", Pattern: "/v1/machines/{machineId}/resume", Op: "resumeMachine", Handle: h.resumeMachine,
			Access: httpapi.ForControl, Needs: httpapi.MayOperate,
			Summary: "Take a machine's drain and hold back",
			Description: "Workers may register on a machine that was taken offline; those that were taken offline individually " +
				"stay held. Workers that drain with it, or that registered on it meanwhile, are ONLINE again; those whose drain " +
				"was asked for by itself go on draining. A machine that is not drained is left as it is.",
		},
	}
}
