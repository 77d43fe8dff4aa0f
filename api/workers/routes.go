package workers

import (
	"github.com/lubdub-io/lubdub/api/httpapi"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

// Routes returns the routes of the package.
func (h *Handlers) Routes() []*httpapi.Route {
	return []*httpapi.Route{
		{
			Method: "POST", Pattern: "/v1/workers", Op: "registerWorker", Handle: h.register, IdempotentBy: "registrationId",
			Tag: "workers", Body: v1.RegisterWorkerRequest{}, Answers: map[int]any{201: v1.RegisterWorkerResponse{}}, Errors: []int{409},
			Examples: map[string]string{"mailer": `{"queue":"default","types":["send_email"],"name":"mailer-1","hostname":"host-7",` +
				`"pid":4711,"version":"1.2.3","maxConcurrent":10,"labels":{"region":"us-east-1"},` +
				`"registrationId":"01HGW5N7XHJM4GX29KZRXQP6N9"}`},
			Headers: []httpapi.Param{httpapi.IdempotencyKey("Makes a repeat safe for 24 hours, or for as long as OFFLINE workers are kept " +
				"where that is shorter: the same request again gets the first answer and supersedes no worker, another one 409. Use a new " +
				"one for each registration.")},
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
			Tag: "workers", Body: v1.WorkerHeartbeatRequest{}, OptionalBody: true,
			Answers: map[int]any{200: v1.WorkerHeartbeatResponse{}}, Errors: []int{404, 410},
			Examples: map[string]string{"beat": `{"activeCount":2,"seq":17,"completedDelta":5,"failedDelta":1}`},
			Access:   httpapi.ForWorker, Beats: httpapi.KindWorker,
			Summary: "Send a worker's heartbeat",
			Description: "It keeps the worker alive, and every task that the worker has claimed and that has no separate timeout. On " +
				"410 stop all tasks; the reason says whether to register again. In the last third of its token's life the worker gets " +
				"a new token.",
		},
		{
			Method: "POST", Pattern: "/v1/workers/{workerId}/deregister", Op: "deregisterWorker", Handle: h.deregister,
			Tag: "workers", Body: v1.DeregisterRequest{}, OptionalBody: true, Answers: map[int]any{200: v1.Worker{}},
			Errors: []int{404, 410},
			Access: httpapi.ForWorker, Needs: httpapi.MayOperate,
			Summary: "Deregister a worker",
			Description: "The worker is OFFLINE at once, and the tasks that it holds return to their queues without counting as lost. " +
				"With drain it is OFFLINE when it has finished what it holds.",
		},
		{
			Method: "POST", Pattern: "/v1/workers/{workerId}/drain", Op: "drainWorker", Handle: h.drain,
			Tag: "workers", Body: v1.DrainRequest{}, OptionalBody: true, Answers: map[int]any{200: v1.Worker{}}, Errors: []int{404, 410},
			Examples: map[string]string{"deploy": `{"reason":"deploy","deadlineMs":300000}`},
			Access:   httpapi.ForWorker, Needs: httpapi.MayOperate,
			Summary: "Drain a worker",
			Description: "The worker claims no more tasks and finishes those that it holds. It is OFFLINE when it has finished them and " +
				"has received the drain, or at the deadline, when the tasks that it still holds return to their queues.",
		},
		{
			Method: "POST", Pattern: "/v1/workers/{workerId}/resume", Op: "resumeWorker", Handle: h.resume,
			Tag: "workers", Body: v1.ReasonRequest{}, OptionalBody: true, Answers: map[int]any{200: v1.Worker{}}, Errors: []int{404, 410},
			Access: httpapi.ForControl, Needs: httpapi.MayOperate,
			Summary: "Undo a drain or a hold",
			Description: "A draining worker is ONLINE again. A worker that is held offline stays OFFLINE, and its identity may be " +
				"registered again.",
		},
		{
			Method: "POST", Pattern: "/v1/workers/{workerId}/offline", Op: "offlineWorker", Handle: h.offline,
			Tag: "workers", Body: v1.ReasonRequest{}, OptionalBody: true, Answers: map[int]any{200: v1.Worker{}}, Errors: []int{404},
			Examples: map[string]string{"reason": `{"reason":"its host is gone"}`},
			Access:   httpapi.ForControl, Needs: httpapi.MayOperate,
			Summary: "Take a worker offline until it is resumed",
			Description: "The worker is OFFLINE at once, and the tasks that it holds are lost, as if it had died; its heartbeats and " +
				"claims get 410 worker_offline with the reason FORCED_OFFLINE. Registrations with its identity (queue, machine and " +
				"name; without a name queue, machine, hostname and pid) are rejected until the worker is resumed, for 30 days at most. " +
				"A worker that is OFFLINE already is held too, unless another has replaced it.",
		},
		{
			Method: "POST", Pattern: "/v1/workers/{workerId}/cordon", Op: "cordonWorker", Handle: h.cordon,
			Tag: "workers", Body: v1.ReasonRequest{}, OptionalBody: true, Answers: map[int]any{200: v1.Worker{}}, Errors: []int{404, 410},
			Examples: map[string]string{"reason": `{"reason":"it writes nonsense"}`},
			Access:   httpapi.ForControl, Needs: httpapi.MayOperate,
			Summary: "Cordon a worker",
			Description: "The worker stays ONLINE, continues with what it holds and does not end when it is idle; its claims wait and " +
				"get nothing, and selection skips it. Tasks that were placed on it and wait are placed again. Heartbeats, drains and " +
				"resumes do not change the cordon, and a registration that replaces the worker inherits it. Cordoning a cordoned " +
				"worker changes nothing.",
		},
		{
			Method: "POST", Pattern: "/v1/workers/{workerId}/uncordon", Op: "uncordonWorker", Handle: h.uncordon,
			Tag: "workers", Body: v1.ReasonRequest{}, OptionalBody: true, Answers: map[int]any{200: v1.Worker{}}, Errors: []int{404, 410},
			Access: httpapi.ForControl, Needs: httpapi.MayOperate,
			Summary:     "Undo a cordon",
			Description: "Waiting claims of the worker can get tasks at once.",
		},
		{
			Method: "POST", Pattern: "/v1/workers:cordon", Op: "cordonWorkers", Handle: h.cordonMany,
			Tag: "workers", Body: v1.ActOnWorkersRequest{}, Answers: map[int]any{200: v1.ActOnWorkersResponse{}}, Errors: []int{404},
			Examples: map[string]string{"version": `{"selector":{"version":"1.2.3"},"reason":"bad build"}`},
			Access:   httpapi.ForControl, Needs: httpapi.MayOperate,
			Summary:     "Cordon all workers that match a selector",
			Description: "All conditions of the selector must match. If no worker matches, the answer is 404.",
		},
		{
			Method: "POST", Pattern: "/v1/workers:uncordon", Op: "uncordonWorkers", Handle: h.uncordonMany,
			Tag: "workers", Body: v1.ActOnWorkersRequest{}, Answers: map[int]any{200: v1.ActOnWorkersResponse{}}, Errors: []int{404},
			Examples: map[string]string{"version": `{"selector":{"version":"1.2.3"}}`},
			Access:   httpapi.ForControl, Needs: httpapi.MayOperate,
			Summary:     "Undo the cordons of all workers that match a selector",
			Description: "All conditions of the selector must match. If no worker matches, the answer is 404.",
		},
		{
			Method: "POST", Pattern: "/v1/workers:resume", Op: "resumeWorkers", Handle: h.resumeMany,
			Tag: "workers", Body: v1.ActOnWorkersRequest{}, Answers: map[int]any{200: v1.ActOnWorkersResponse{}}, Errors: []int{404},
			Examples: map[string]string{"queue": `{"selector":{"queue":"default"},"dryRun":true}`},
			Access:   httpapi.ForControl, Needs: httpapi.MayOperate,
			Summary: "Undo the drains and holds of all workers that match a selector",
			Description: "All conditions of the selector must match. If no worker matches, the answer is 404. A drained machine stays " +
				"drained. Workers that are held offline match too, and may register again.",
		},
		{
			Method: "POST", Pattern: "/v1/workers:offline", Op: "offlineWorkers", Handle: h.offlineMany,
			Tag: "workers", Body: v1.OfflineWorkersRequest{}, Answers: map[int]any{200: v1.ActOnWorkersResponse{}},
			Examples: map[string]string{"silent": `{"silentForMs":300000,"reason":"their hosts are gone"}`},
			Access:   httpapi.ForControl, Needs: httpapi.MayOperate,
			Summary: "Take offline all workers that match a selector or have been silent",
			Description: "The workers are OFFLINE at once and held there, and the tasks that they hold are lost, as if the workers had " +
				"died. If a repeated call finds no worker left to take offline, the answer is 200.",
		},
		{
			Method: "POST", Pattern: "/v1/workers:drain", Op: "drainWorkers", Handle: h.drainMany,
			Tag: "workers", Body: v1.DrainWorkersRequest{}, Answers: map[int]any{200: v1.DrainWorkersResponse{}}, Errors: []int{404},
			Examples: map[string]string{"version": `{"selector":{"version":"1.2.3"},"dryRun":true}`},
			Access:   httpapi.ForControl, Needs: httpapi.MayOperate,
			Summary:     "Drain all workers that match a selector",
			Description: "All conditions of the selector must match. If no worker matches, the answer is 404.",
		},
		{
			Method: "POST", Pattern: "/v1/workers:select", Op: "selectWorker", Handle: h.selectOne,
			Tag: "workers", Body: v1.SelectWorkerRequest{}, OptionalBody: true, Answers: map[int]any{200: v1.SelectWorkerResponse{}},
			Errors: []int{409}, Examples: map[string]string{"python": `{"queue":"default","runtime":"python","strategy":"leastLoaded"}`},
			AnswerExamples: map[int]map[string]string{409: {"stale": `{"error":"no_fresh_workers",` +
				`"message":"No workers with fresh heartbeats available","considered":3,` +
				`"rejected":{"runtime":1,"type":0,"labels":0,"status":0,"stale":2,"full":0}}`}},
			Access: httpapi.ForControl, Needs: httpapi.MayRead,
			Summary: "Choose a worker",
			Description: "The workers of the queue are filtered by runtime, type, labels, status, cordon, freshness and capacity, in " +
				"this order; rejected counts each worker at the first filter that it fails. A worker that is OFFLINE because it was " +
				"silent counts as stale, whether or not a sweep has found it. The choice reserves nothing: to reserve, use placement " +
				"when you create the task.",
		},
		{
			Method: "GET", Pattern: "/v1/workers/{workerId}", Op: "getWorker", Handle: h.get,
			Tag: "workers", Answers: map[int]any{200: v1.Worker{}}, Errors: []int{404},
			Access: httpapi.ForControl, Needs: httpapi.MayRead,
			Summary: "Read a worker",
		},
		{
			Method: "GET", Pattern: "/v1/workers", Op: "listWorkers", Handle: h.list,
			Query: []httpapi.Param{httpapi.ParamQueue, status, httpapi.ParamType, runtime, httpapi.ParamMachineID, name, version, httpapi.ParamLabel,
				httpapi.ParamLiveness, schedulable, flapping, sortBy, httpapi.ParamOrder, httpapi.ParamPageSize, httpapi.ParamPageToken},
			Tag: "workers", Answers: map[int]any{200: v1.WorkerList{}},
			Access: httpapi.ForControl, Needs: httpapi.MayRead,
			Summary: "List workers",
			Description: "Workers are in the order of registration, or of their last heartbeats. totalCount is the total of all pages, " +
				"with any filter.",
		},
		{
			Method: "GET", Pattern: "/v1/machines", Op: "listMachines", Handle: h.listMachines,
			Query: []httpapi.Param{httpapi.ParamStatus, httpapi.ParamOrder, httpapi.ParamPageSize, httpapi.ParamPageToken},
			Tag:   "workers", Answers: map[int]any{200: v1.MachineList{}},
			Access: httpapi.ForControl, Needs: httpapi.MayRead,
			Summary:     "List machines",
			Description: "Machines are in the order of their ids.",
		},
		{
			Method: "GET", Pattern: "/v1/machines/{machineId}", Op: "getMachine", Handle: h.getMachine,
			Tag: "workers", Answers: map[int]any{200: v1.Machine{}}, Errors: []int{404},
			Access: httpapi.ForControl, Needs: httpapi.MayRead,
			Summary: "Read a machine",
		},
		{
			Method: "POST", Pattern: "/v1/machines/{machineId}/drain", Op: "drainMachine", Handle: h.drainMachine,
			Tag: "workers", Body: v1.DrainRequest{}, OptionalBody: true, Answers: map[int]any{200: v1.DrainWorkersResponse{}},
			Errors: []int{404}, Examples: map[string]string{"maintenance": `{"reason":"new kernel","deadlineMs":600000}`},
			Access: httpapi.ForControl, Needs: httpapi.MayOperate,
			Summary: "Drain a machine",
			Description: "Each of its workers drains as with its own call. Until the machine is resumed, a worker that registers on it " +
				"is DRAINING from the start: its heartbeats get shouldDrain, its claims are rejected with 409, and it stays so even if " +
				"it is idle. A repeated call may set another deadline and reason.",
		},
		{
			Method: "POST", Pattern: "/v1/machines/{machineId}/offline", Op: "offlineMachine", Handle: h.offlineMachine,
			Tag: "workers", Body: v1.ReasonRequest{}, OptionalBody: true, Answers: map[int]any{200: v1.ActOnWorkersResponse{}},
			Errors: []int{404},
			Access: httpapi.ForControl, Needs: httpapi.MayOperate,
			Summary: "Take a machine offline until it is resumed",
			Description: "Its workers are OFFLINE at once with FORCED_OFFLINE, and the tasks that they hold are lost and retried. Until " +
				"the machine is resumed, registrations on it are rejected with 409 worker_held_offline. The hold ends 30 days after " +
				"the last record of a worker on the machine was deleted.",
		},
		{
			Method: "POST", Pattern: "/v1/machines/{machineId}/resume", Op: "resumeMachine", Handle: h.resumeMachine,
			Tag: "workers", Body: v1.ReasonRequest{}, OptionalBody: true, Answers: map[int]any{200: v1.ResumeMachineResponse{}},
			Errors: []int{404},
			Access: httpapi.ForControl, Needs: httpapi.MayOperate,
			Summary: "Undo a machine's drain and hold",
			Description: "Workers may register on a machine that was held offline; workers that were taken offline individually stay " +
				"held. Workers that drain with the machine, or that registered on it meanwhile, are ONLINE again; workers that were " +
				"drained individually continue to drain. A machine that is not drained does not change.",
		},
	}
}

// The parameters of these routes.
var (
	status = httpapi.Param{
		Name: "status", Schema: httpapi.Of("string").With("pattern", "^(ONLINE|DRAINING|OFFLINE)(,(ONLINE|DRAINING|OFFLINE))*$"),
		Description: "Only workers of this status, or of one of several with commas between them: ONLINE, DRAINING, OFFLINE.",
	}
	runtime     = httpapi.Param{Name: "runtime", Schema: httpapi.IDSchema, Description: "Only workers that have this runtime."}
	name        = httpapi.Param{Name: "name", Schema: httpapi.Of("string"), Description: "Only workers of this name."}
	version     = httpapi.Param{Name: "version", Schema: httpapi.Of("string"), Description: "Only workers of this version."}
	schedulable = httpapi.Param{
		Name: "schedulable", Schema: httpapi.Of("boolean"), Description: "Only workers that would, or would not, be selected now.",
	}
	flapping = httpapi.Param{
		Name: "flapping", Schema: httpapi.Of("boolean"),
		Description: "Only workers that flap, or do not: those that, under their name on their machine and queue, went stale 3 times or " +
			"more within 24 h.",
	}
	sortBy = httpapi.Param{
		Name: "sort", Schema: httpapi.OneOf("lastHeartbeatAt", "staleCount24h", "uptimePct24h", "lastHeartbeat"),
		Description: "Order by this field instead of the id; lastHeartbeat is another name of lastHeartbeatAt. A worker whose value " +
			"changes between two pages may be on both, or on neither.",
	}
)
