package api

import (
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

// workerWords are the descriptions of workers and machines.
var workerWords = map[string]words{
	opRegister: {
		tag: "workers", request: v1.RegisterWorkerRequest{}, requestExamples: []example{{"mailer",
			`{"queue":"default","types":["send_email"],"name":"mailer-1","hostname":"host-7","pid":4711,"version":"1.2.3","maxConcurrent":10,` +
				`"labels":{"region":"us-east-1"},"registrationId":"01HGW5N7XHJM4GX29KZRXQP6N9"}`}},
		answers: map[int]any{201: v1.RegisterWorkerResponse{}}, errors: []int{409},
	},
	opWorkerHeartbeat: {
		tag: "workers", request: v1.WorkerHeartbeatRequest{}, optionalBody: true, requestExamples: []example{{"beat",
			`{"activeCount":2,"seq":17,"completedDelta":5,"failedDelta":1}`}},
		answers: map[int]any{200: v1.WorkerHeartbeatResponse{}}, errors: []int{404, 410},
	},
	opDeregister: {
		tag: "workers", request: v1.DeregisterRequest{}, optionalBody: true,
		answers: map[int]any{200: v1.Worker{}}, errors: []int{404, 410},
	},
	opDrainWorker: {
		tag: "workers", request: v1.DrainRequest{}, optionalBody: true,
		requestExamples: []example{{"deploy", `{"reason":"deploy","deadlineMs":300000}`}},
		answers:         map[int]any{200: v1.Worker{}}, errors: []int{404, 410},
	},
	opResumeWorker: {tag: "workers", request: v1.ReasonRequest{}, optionalBody: true,
		answers: map[int]any{200: v1.Worker{}}, errors: []int{404, 410}},
	opOfflineWorker: {
		tag: "workers", request: v1.ReasonRequest{}, optionalBody: true,
		requestExamples: []example{{"reason", `{"reason":"its host is gone"}`}},
		answers:         map[int]any{200: v1.Worker{}}, errors: []int{404},
	},
	opCordonWorker: {
		tag: "workers", request: v1.ReasonRequest{}, optionalBody: true,
		requestExamples: []example{{"reason", `{"reason":"it writes nonsense"}`}},
		answers:         map[int]any{200: v1.Worker{}}, errors: []int{404, 410},
	},
	opUncordonWorker: {
		tag: "workers", request: v1.ReasonRequest{}, optionalBody: true, answers: map[int]any{200: v1.Worker{}}, errors: []int{404, 410},
	},
	opCordonWorkers: {
		tag: "workers", request: v1.ActOnWorkersRequest{},
		requestExamples: []example{{"version", `{"selector":{"version":"1.2.3"},"reason":"bad build"}`}},
		answers:         map[int]any{200: v1.ActOnWorkersResponse{}}, errors: []int{404},
	},
	opUncordonWorkers: {
		tag: "workers", request: v1.ActOnWorkersRequest{}, requestExamples: []example{{"version", `{"selector":{"version":"1.2.3"}}`}},
		answers: map[int]any{200: v1.ActOnWorkersResponse{}}, errors: []int{404},
	},
	opResumeWorkers: {
		tag: "workers", request: v1.ActOnWorkersRequest{},
		requestExamples: []example{{"queue", `{"selector":{"queue":"default"},"dryRun":true}`}},
		answers:         map[int]any{200: v1.ActOnWorkersResponse{}}, errors: []int{404},
	},
	opOfflineWorkers: {
		tag: "workers", request: v1.OfflineWorkersRequest{},
		requestExamples: []example{{"silent", `{"silentForMs":300000,"reason":"their hosts are gone"}`}},
		answers:         map[int]any{200: v1.ActOnWorkersResponse{}},
	},
	opDrainWorkers: {
		tag: "workers", request: v1.DrainWorkersRequest{},
		requestExamples: []example{{"version", `{"selector":{"version":"1.2.3"},"dryRun":true}`}},
		answers:         map[int]any{200: v1.DrainWorkersResponse{}}, errors: []int{404},
	},
	opGetWorker: {tag: "workers", answers: map[int]any{200: v1.Worker{}}, errors: []int{404}},
	opListWorkers: {
		tag: "workers", answers: map[int]any{200: v1.WorkerList{}},
	},
	opSelectWorker: {
		tag: "workers", request: v1.SelectWorkerRequest{}, optionalBody: true, requestExamples: []example{{"python",
			`{"queue":"default","runtime":"python","strategy":"leastLoaded"}`}},
		answers: map[int]any{200: v1.SelectWorkerResponse{}}, errors: []int{409},
		answerExamples: map[int][]example{409: {{"stale",
			`{"error":"no_fresh_workers","message":"No workers with fresh heartbeats ` +
				`available","considered":3,"rejected":{"runtime":1,"type":0,"labels":0,"status":0,"stale":2,"full":0}}`}}},
	},
	opGetMachine:   {tag: "workers", answers: map[int]any{200: v1.Machine{}}, errors: []int{404}},
	opListMachines: {tag: "workers", answers: map[int]any{200: v1.MachineList{}}},
	opDrainMachine: {
		tag: "workers", request: v1.DrainRequest{}, optionalBody: true, requestExamples: []example{{"maintenance",
			`{"reason":"new kernel","deadlineMs":600000}`}},
		answers: map[int]any{200: v1.DrainWorkersResponse{}}, errors: []int{404},
	},
	opOfflineMachine: {
		tag: "workers", request: v1.ReasonRequest{}, optionalBody: true,
		answers: map[int]any{200: v1.ActOnWorkersResponse{}}, errors: []int{404},
	},
	opResumeMachine: {
		tag: "workers", request: v1.ReasonRequest{}, optionalBody: true,
		answers: map[int]any{200: v1.ResumeMachineResponse{}}, errors: []int{404},
	},
}
