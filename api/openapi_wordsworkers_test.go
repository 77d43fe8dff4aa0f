package api

import (
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

// workerWords are what callers are told of workers and machines.
var workerWords = map[string]words{
	opRegister: {
		tag: "workers", summary: "Register a worker",
		description: "Counts as its first beat. The same queue, machine, name, hostname and pid again take the place of the registration " +
			"before, which is OFFLINE then, SUPERSEDED, and is named by superseded; processes that keep doing that to each other are told as " +
			"worker.identity_conflict. With a registrationId or an Idempotency-Key a repeat gets the first answer and supersedes nobody. A token " +
			"that is tied to a queue registers for that one only. While an operator holds the worker's identity (queue, machine and name; " +
			"without a name queue, machine, hostname and pid) or its machine offline it is refused with 409 worker_held_offline, with the " +
			"workerId or machineId that is held and the remedy. On a drained machine the answer has " +
			"shouldDrain. All that a registration says may take 8 KiB.",
		request: v1.RegisterWorkerRequest{}, requestExamples: []example{{"mailer",
			`{"queue":"default","types":["send_email"],"name":"mailer-1","hostname":"host-7","pid":4711,"version":"1.2.3","maxConcurrent":10,` +
				`"labels":{"region":"us-east-1"},"registrationId":"01HGW5N7XHJM4GX29KZRXQP6N9"}`}},
		answers: map[int]any{201: v1.RegisterWorkerResponse{}}, errors: []int{409},
	},
	opWorkerHeartbeat: {
		tag: "workers", summary: "The worker is alive",
		description: "And with it every task that it has claimed and that has no timeout of its own. On 410 stop everything; the reason says " +
			"whether to register again. In the last third of its token's life it gets a fresh one.",
		request: v1.WorkerHeartbeatRequest{}, optionalBody: true, requestExamples: []example{{"beat",
			`{"activeCount":2,"seq":17,"completedDelta":5,"failedDelta":1}`}},
		answers: map[int]any{200: v1.WorkerHeartbeatResponse{}}, errors: []int{404, 410},
	},
	opDeregister: {
		tag: "workers", summary: "The worker goes",
		description: "At once, and what it holds goes back to its queues without counting as lost; or, with drain, when it has finished what " +
			"it holds.",
		request: v1.DeregisterRequest{}, optionalBody: true, answers: map[int]any{200: v1.Worker{}}, errors: []int{404, 410},
	},
	opDrainWorker: {
		tag: "workers", summary: "Let a worker finish and go",
		description: "It claims nothing more, finishes what it holds, and is OFFLINE when it has and knows that it drains; or at the deadline, " +
			"when what it still holds goes back to its queues.",
		request: v1.DrainRequest{}, optionalBody: true, requestExamples: []example{{"deploy", `{"reason":"deploy","deadlineMs":300000}`}},
		answers: map[int]any{200: v1.Worker{}}, errors: []int{404, 410},
	},
	opResumeWorker: {tag: "workers", summary: "Take a drain or a hold back",
		description: "A worker that drains is ONLINE again. One that is held offline stays OFFLINE, and its identity may be registered again.",
		request:     v1.ReasonRequest{}, optionalBody: true,
		answers: map[int]any{200: v1.Worker{}}, errors: []int{404, 410}},
	opOfflineWorker: {
		tag: "workers", summary: "Take a worker offline and hold it so",
		description: "It is OFFLINE at once and what it holds is lost, as if it had died; its beats and claims are 410 worker_offline with the " +
			"reason FORCED_OFFLINE. Its identity (queue, machine and name; without a name queue, machine, hostname and pid) is " +
			"refused registration until the worker is resumed, for 30 days at most. A worker that is OFFLINE already is held, too, unless " +
			"another has taken its place.",
		request: v1.ReasonRequest{}, optionalBody: true, requestExamples: []example{{"reason", `{"reason":"its host is gone"}`}},
		answers: map[int]any{200: v1.Worker{}}, errors: []int{404},
	},
	opCordonWorker: {
		tag: "workers", summary: "Let a worker take nothing new",
		description: "It stays ONLINE, goes on with what it holds and does not end when it is idle; its claims wait and get nothing, and " +
			"selection passes over it. What was placed on it and waits is placed anew. Beats, drains and resumes leave the cordon as it is, and " +
			"whoever registers in the worker's place inherits it. Again it changes nothing.",
		request: v1.ReasonRequest{}, optionalBody: true, requestExamples: []example{{"reason", `{"reason":"it writes nonsense"}`}},
		answers: map[int]any{200: v1.Worker{}}, errors: []int{404, 410},
	},
	opUncordonWorker: {
		tag: "workers", summary: "Take a cordon back", description: "Its claims that wait go on at once.",
		request: v1.ReasonRequest{}, optionalBody: true, answers: map[int]any{200: v1.Worker{}}, errors: []int{404, 410},
	},
	opCordonWorkers: {
		tag: "workers", summary: "Cordon all workers that a selector names",
		description: "All that the selector says must match. One that matches nothing is told so with 404.",
		request:     v1.ActOnWorkersRequest{}, requestExamples: []example{{"version", `{"selector":{"version":"1.2.3"},"reason":"bad build"}`}},
		answers: map[int]any{200: v1.ActOnWorkersResponse{}}, errors: []int{404},
	},
	opUncordonWorkers: {
		tag: "workers", summary: "Take the cordons of all workers back that a selector names",
		description: "All that the selector says must match. One that matches nothing is told so with 404.",
		request:     v1.ActOnWorkersRequest{}, requestExamples: []example{{"version", `{"selector":{"version":"1.2.3"}}`}},
		answers: map[int]any{200: v1.ActOnWorkersResponse{}}, errors: []int{404},
	},
	opResumeWorkers: {
		tag: "workers", summary: "Take the drains of all workers back that a selector names",
		description: "All that the selector says must match. One that matches nothing is told so with 404. A drained machine stays drained. " +
			"Workers that are held offline match, too, and may register again.",
		request: v1.ActOnWorkersRequest{}, requestExamples: []example{{"queue", `{"selector":{"queue":"default"},"dryRun":true}`}},
		answers: map[int]any{200: v1.ActOnWorkersResponse{}}, errors: []int{404},
	},
	opOfflineWorkers: {
		tag: "workers", summary: "Give up all workers that a selector names, or that have been silent",
		description: "They are OFFLINE at once and held so, and what they hold is lost, as if they had died. The same call again may find that " +
			"nobody is left to give up, and says so with 200.",
		request: v1.OfflineWorkersRequest{}, requestExamples: []example{{"silent", `{"silentForMs":300000,"reason":"their hosts are gone"}`}},
		answers: map[int]any{200: v1.ActOnWorkersResponse{}},
	},
	opDrainWorkers: {
		tag: "workers", summary: "Drain all workers that a selector names",
		description: "All that the selector says must match. One that matches nothing is told so with 404.",
		request:     v1.DrainWorkersRequest{}, requestExamples: []example{{"version", `{"selector":{"version":"1.2.3"},"dryRun":true}`}},
		answers: map[int]any{200: v1.DrainWorkersResponse{}}, errors: []int{404},
	},
	opGetWorker: {tag: "workers", summary: "One worker", answers: map[int]any{200: v1.Worker{}}, errors: []int{404}},
	opListWorkers: {
		tag: "workers", summary: "List workers",
		description: "In the order of registration, or of last heartbeats. totalCount is that of all pages, whatever the filter.",
		answers:     map[int]any{200: v1.WorkerList{}},
	},
	opSelectWorker: {
		tag: "workers", summary: "Choose a worker",
		description: "Workers of the queue are asked for runtime, type, labels, status, cordon, freshness and capacity, in this order; " +
			"rejected counts them at the first that they fail. A worker that went OFFLINE by its silence counts as stale, whether or not a " +
			"sweep has come by. Choosing reserves nothing: use placement at creation for that.",
		request: v1.SelectWorkerRequest{}, optionalBody: true, requestExamples: []example{{"python",
			`{"queue":"default","runtime":"python","strategy":"leastLoaded"}`}},
		answers: map[int]any{200: v1.SelectWorkerResponse{}}, errors: []int{409},
		answerExamples: map[int][]example{409: {{"stale",
			`{"error":"no_fresh_workers","message":"No workers with fresh heartbeats ` +
				`available","considered":3,"rejected":{"runtime":1,"type":0,"labels":0,"status":0,"stale":2,"full":0}}`}}},
	},
	opGetMachine: {tag: "workers", summary: "One machine", answers: map[int]any{200: v1.Machine{}}, errors: []int{404}},
	opListMachines: {tag: "workers", summary: "List machines", description: "In the order of their ids.",
		answers: map[int]any{200: v1.MachineList{}}},
	opDrainMachine: {
		tag: "workers", summary: "Drain a machine",
		description: "Its workers drain as by calls of their own. Until the machine is resumed a worker that registers on it is DRAINING from " +
			"the start: its beats are told shouldDrain, its claims are refused with 409, and it stays so however idle it is. Again it may set " +
			"another deadline and reason.",
		request: v1.DrainRequest{}, optionalBody: true, requestExamples: []example{{"maintenance",
			`{"reason":"new kernel","deadlineMs":600000}`}},
		answers: map[int]any{200: v1.DrainWorkersResponse{}}, errors: []int{404},
	},
	opOfflineMachine: {
		tag: "workers", summary: "Take a machine offline and hold it so",
		description: "Its workers are OFFLINE at once with FORCED_OFFLINE, and what they hold is lost and tried again. Until the machine is " +
			"resumed every registration on it is refused with 409 worker_held_offline. The hold ends 30 days after the machine's last worker was " +
			"forgotten.",
		request: v1.ReasonRequest{}, optionalBody: true, answers: map[int]any{200: v1.ActOnWorkersResponse{}}, errors: []int{404},
	},
	opResumeMachine: {
		tag: "workers", summary: "Take a machine's drain and hold back",
		description: "Workers may register on a machine that was taken offline; those that were taken offline individually stay held. " +
			"Workers that drain with it, or that registered on it meanwhile, are ONLINE again; those whose drain was asked for by " +
			"itself go on draining. A machine that is not drained is left as it is.",
		request: v1.ReasonRequest{}, optionalBody: true, answers: map[int]any{200: v1.ResumeMachineResponse{}}, errors: []int{404},
	},
}
