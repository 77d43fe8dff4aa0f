package workers

import (
	"github.com/lubdub-io/lubdub/api/httpapi"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

// Routes returns the routes of the package.
func (h *Handlers) Routes() []*httpapi.Route {
	return []*httpapi.Route{
		{
			Method: "POST", Pattern: "/v1/workers", Op: "registerWorker", Handle: h.register,
			Tag: "workers", Body: v1.RegisterWorkerRequest{}, Answers: map[int]any{201: v1.RegisterWorkerResponse{}}, Errors: []int{409},
			Examples: map[string]string{"mailer": `{"queue":"default","types":["send_email"],"name":"mailer-1","hostname":"host-7",` +
				`"pid":4711,"version":"1.2.3","maxConcurrent":10,"labels":{"region":"us-east-1"},` +
				`"registrationId":"01HGW5N7XHJM4GX29KZRXQP6N9"}`},
			Headers: []httpapi.Param{httpapi.IdempotencyKey("Makes a repeat safe for 24 hours, or for as long as OFFLINE workers are kept " +
				"where that is shorter: the same request again gets the first answer and supersedes nobody, another one 409. Draw a new " +
				"one for each registration.")},
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
			Tag: "workers", Body: v1.WorkerHeartbeatRequest{}, OptionalBody: true,
			Answers: map[int]any{200: v1.WorkerHeartbeatResponse{}}, Errors: []int{404, 410},
			Examples: map[string]string{"beat": `{"activeCount":2,"seq":17,"completedDelta":5,"failedDelta":1}`},
			Access:   httpapi.ForWorker, Beats: httpapi.KindWorker,
			Summary: "The worker is alive",
			Description: "And with it every task that it has claimed and that has no timeout of its own. On 410 stop everything; " +
				"the reason says whether to register again. In the last third of its token's life it gets a fresh one.",
		},
		{
			Method: "POST", Pattern: "/v1/workers/{workerId}/deregister", Op: "deregisterWorker", Handle: h.deregister,
			Tag: "workers", Body: v1.DeregisterRequest{}, OptionalBody: true, Answers: map[int]any{200: v1.Worker{}},
			Errors: []int{404, 410},
			Access: httpapi.ForWorker, Needs: httpapi.MayOperate,
			Summary: "The worker goes",
			Description: "At once, and what it holds goes back to its queues without counting as lost; or, with drain, when it has " +
				"finished what it holds.",
		},
		{
			Method: "POST", Pattern: "/v1/workers/{workerId}/drain", Op: "drainWorker", Handle: h.drain,
			Tag: "workers", Body: v1.DrainRequest{}, OptionalBody: true, Answers: map[int]any{200: v1.Worker{}}, Errors: []int{404, 410},
			Examples: map[string]string{"deploy": `{"reason":"deploy","deadlineMs":300000}`},
			Access:   httpapi.ForWorker, Needs: httpapi.MayOperate,
			Summary: "Let a worker finish and go",
			Description: "It claims nothing more, finishes what it holds, and is OFFLINE when it has and knows that it drains; or " +
				"at the deadline, when what it still holds goes back to its queues.",
		},
		{
			Method: "POST", Pattern: "/v1/workers/{workerId}/resume", Op: "resumeWorker", Handle: h.resume,
			Tag: "workers", Body: v1.ReasonRequest{}, OptionalBody: true, Answers: map[int]any{200: v1.Worker{}}, Errors: []int{404, 410},
			Access: httpapi.ForControl, Needs: httpapi.MayOperate,
			Summary: "Take a drain or a hold back",
			Description: "A worker that drains is ONLINE again. One that is held offline stays OFFLINE, and its identity may be " +
				"registered again.",
		},
		{
			Method: "POST", Pattern: "/v1/workers/{workerId}/offline", Op: "offlineWorker", Handle: h.offline,
			Tag: "workers", Body: v1.ReasonRequest{}, OptionalBody: true, Answers: map[int]any{200: v1.Worker{}}, Errors: []int{404},
			Examples: map[string]string{"reason": `{"reason":"its host is gone"}`},
			Access:   httpapi.ForControl, Needs: httpapi.MayOperate,
			Summary: "Take a worker offline and hold it so",
			Description: "It is OFFLINE at once and what it holds is lost, as if it had died; its beats and claims are 410 " +
				"worker_offline with the reason FORCED_OFFLINE. Its identity (queue, machine and name; without a name queue, " +
				"machine, hostname and pid) is refused registration until the worker is resumed, for 30 days at most. A worker " +
				"that is OFFLINE already is held, too, unless another has taken its place.",
		},
		{
			Method: "POST", Pattern: "/v1/workers/{workerId}/cordon", Op: "cordonWorker", Handle: h.cordon,
			Tag: "workers", Body: v1.ReasonRequest{}, OptionalBody: true, Answers: map[int]any{200: v1.Worker{}}, Errors: []int{404, 410},
			Examples: map[string]string{"reason": `{"reason":"it writes nonsense"}`},
			Access:   httpapi.ForControl, Needs: httpapi.MayOperate,
			Summary: "Let a worker take nothing new",
			Description: "It stays ONLINE, goes on with what it holds and does not end when it is idle; its claims wait and get " +
				"nothing, and selection passes over it. What was placed on it and waits is placed anew. Beats, drains and resumes " +
				"leave the cordon as it is, and whoever registers in the worker's place inherits it. Again it changes nothing.",
		},
		{
			Method: "POST", Pattern: "/v1/workers/{workerId}/uncordon", Op: "uncordonWorker", Handle: h.uncordon,
			Tag: "workers", Body: v1.ReasonRequest{}, OptionalBody: true, Answers: map[int]any{200: v1.Worker{}}, Errors: []int{404, 410},
			Access: httpapi.ForControl, Needs: httpapi.MayOperate,
			Summary:     "Take a cordon back",
			Description: "Its claims that wait go on at once.",
		},
		{
			Method: "POST", Pattern: "/v1/workers:cordon", Op: "cordonWorkers", Handle: h.cordonMany,
			Tag: "workers", Body: v1.ActOnWorkersRequest{}, Answers: map[int]any{200: v1.ActOnWorkersResponse{}}, Errors: []int{404},
			Examples: map[string]string{"version": `{"selector":{"version":"1.2.3"},"reason":"bad build"}`},
			Access:   httpapi.ForControl, Needs: httpapi.MayOperate,
			Summary:     "Cordon all workers that a selector names",
			Description: "All that the selector says must match. One that matches nothing is told so with 404.",
		},
		{
			Method: "POST", Pattern: "/v1/workers:uncordon", Op: "uncordonWorkers", Handle: h.uncordonMany,
			Tag: "workers", Body: v1.ActOnWorkersRequest{}, Answers: map[int]any{200: v1.ActOnWorkersResponse{}}, Errors: []int{404},
			Examples: map[string]string{"version": `{"selector":{"version":"1.2.3"}}`},
			Access:   httpapi.ForControl, Needs: httpapi.MayOperate,
			Summary:     "Take the cordons of all workers back that a selector names",
			Description: "All that the selector says must match. One that matches nothing is told so with 404.",
		},
		{
			Method: "POST", Pattern: "/v1/workers:resume", Op: "resumeWorkers", Handle: h.resumeMany,
			Tag: "workers", Body: v1.ActOnWorkersRequest{}, Answers: map[int]any{200: v1.ActOnWorkersResponse{}}, Errors: []int{404},
			Examples: map[string]string{"queue": `{"selector":{"queue":"default"},"dryRun":true}`},
			Access:   httpapi.ForControl, Needs: httpapi.MayOperate,
			Summary: "Take the drains of all workers back that a selector names",
			Description: "All that the selector says must match. One that matches nothing is told so with 404. A drained machine " +
				"stays drained. Workers that are held offline match, too, and may register again.",
		},
		{
			Method: "POST", Pattern: "/v1/workers:offline", Op: "offlineWorkers", Handle: h.offlineMany,
			Tag: "workers", Body: v1.OfflineWorkersRequest{}, Answers: map[int]any{200: v1.ActOnWorkersResponse{}},
			Examples: map[string]string{"silent": `{"silentForMs":300000,"reason":"their hosts are gone"}`},
			Access:   httpapi.ForControl, Needs: httpapi.MayOperate,
			Summary: "Give up all workers that a selector names, or that have been silent",
			Description: "They are OFFLINE at once and held so, and what they hold is lost, as if they had died. The same call " +
				"again may find that nobody is left to give up, and says so with 200.",
		},
		{
			Method: "POST", Pattern: "/v1/workers:drain", Op: "drainWorkers", Handle: h.drainMany,
			Tag: "workers", Body: v1.DrainWorkersRequest{}, Answers: map[int]any{200: v1.DrainWorkersResponse{}}, Errors: []int{404},
			Examples: map[string]string{"version": `{"selector":{"version":"1.2.3"},"dryRun":true}`},
			Access:   httpapi.ForControl, Needs: httpapi.MayOperate,
			Summary:     "Drain all workers that a selector names",
			Description: "All that the selector says must match. One that matches nothing is told so with 404.",
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
			Description: "Workers of the queue are asked for runtime, type, labels, status, cordon, freshness and capacity, in " +
				"this order; rejected counts them at the first that they fail. A worker that went OFFLINE by its silence counts as " +
				"stale, whether or not a sweep has come by. Choosing reserves nothing: use placement at creation for that.",
		},
		{
			Method: "GET", Pattern: "/v1/workers/{workerId}", Op: "getWorker", Handle: h.get,
			Tag: "workers", Answers: map[int]any{200: v1.Worker{}}, Errors: []int{404},
			Access: httpapi.ForControl, Needs: httpapi.MayRead,
			Summary: "One worker",
		},
		{
			Method: "GET", Pattern: "/v1/workers", Op: "listWorkers", Handle: h.list,
			Query: []httpapi.Param{httpapi.ParamQueue, status, httpapi.ParamType, runtime, httpapi.ParamMachineID, name, version, httpapi.ParamLabel,
				httpapi.ParamLiveness, schedulable, flapping, sortBy, httpapi.ParamOrder, httpapi.ParamPageSize, httpapi.ParamPageToken},
			Tag: "workers", Answers: map[int]any{200: v1.WorkerList{}},
			Access: httpapi.ForControl, Needs: httpapi.MayRead,
			Summary:     "List workers",
			Description: "In the order of registration, or of last heartbeats. totalCount is that of all pages, whatever the filter.",
		},
		{
			Method: "GET", Pattern: "/v1/machines", Op: "listMachines", Handle: h.listMachines,
			Query: []httpapi.Param{httpapi.ParamStatus, httpapi.ParamOrder, httpapi.ParamPageSize, httpapi.ParamPageToken},
			Tag:   "workers", Answers: map[int]any{200: v1.MachineList{}},
			Access: httpapi.ForControl, Needs: httpapi.MayRead,
			Summary:     "List machines",
			Description: "In the order of their ids.",
		},
		{
			Method: "GET", Pattern: "/v1/machines/{machineId}", Op: "getMachine", Handle: h.getMachine,
			Tag: "workers", Answers: map[int]any{200: v1.Machine{}}, Errors: []int{404},
			Access: httpapi.ForControl, Needs: httpapi.MayRead,
			Summary: "One machine",
		},
		{
			Method: "POST", Pattern: "/v1/machines/{machineId}/drain", Op: "drainMachine", Handle: h.drainMachine,
			Tag: "workers", Body: v1.DrainRequest{}, OptionalBody: true, Answers: map[int]any{200: v1.DrainWorkersResponse{}},
			Errors: []int{404}, Examples: map[string]string{"maintenance": `{"reason":"new kernel","deadlineMs":600000}`},
			Access: httpapi.ForControl, Needs: httpapi.MayOperate,
			Summary: "Drain a machine",
			Description: "Its workers drain as by calls of their own. Until the machine is resumed a worker that registers on it " +
				"is DRAINING from the start: its beats are told shouldDrain, its claims are refused with 409, and it stays so " +
				"however idle it is. Again it may set another deadline and reason.",
		},
		{
			Method: "POST", Pattern: "/v1/machines/{machineId}/offline", Op: "offlineMachine", Handle: h.offlineMachine,
			Tag: "workers", Body: v1.ReasonRequest{}, OptionalBody: true, Answers: map[int]any{200: v1.ActOnWorkersResponse{}},
			Errors: []int{404},
			Access: httpapi.ForControl, Needs: httpapi.MayOperate,
			Summary: "Take a machine offline and hold it so",
			Description: "Its workers are OFFLINE at once with FORCED_OFFLINE, and what they hold is lost and tried again. Until " +
				"the machine is resumed every registration on it is refused with 409 worker_held_offline. The hold ends 30 days " +
				"after the machine's last worker was forgotten.",
		},
		{
			Method: "POST", Pattern: "/v1/machines/{machineId}/resume", Op: "resumeMachine", Handle: h.resumeMachine,
			Tag: "workers", Body: v1.ReasonRequest{}, OptionalBody: true, Answers: map[int]any{200: v1.ResumeMachineResponse{}},
			Errors: []int{404},
			Access: httpapi.ForControl, Needs: httpapi.MayOperate,
			Summary: "Take a machine's drain and hold back",
			Description: "Workers may register on a machine that was taken offline; those that were taken offline individually " +
				"stay held. Workers that drain with it, or that registered on it meanwhile, are ONLINE again; those whose drain " +
				"was asked for by itself go on draining. A machine that is not drained is left as it is.",
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
