package api

import (
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

// standingWords are what callers are told of schedules and webhooks, which stand until somebody deletes them.
var standingWords = map[string]words{
	opCreateSchedule: {
		tag: "schedules", summary: "Create tasks by the clock",
		description: "Each fire creates its task once, however many servers there are and whenever they die: its idempotency key is " +
			"schedule:<id>:<time>, its taskId begins with fire_, and both are reserved. A tenant may have 10,000 schedules; " +
			"one beyond is answered 429.",
		request: v1.CreateScheduleRequest{}, requestExamples: []example{
			{"weekdays", `{"scheduleId":"report","cron":"0 30 9 * * MON-FRI","task":{"queue":"reports","type":"daily"}}`},
			{"one at a time", `{"cron":"0 */5 * * * *","overlap":"skip","maxCatchup":0,"task":{"queue":"sync","payload":{"full":false}}}`},
		},
		answers: map[int]any{201: v1.Schedule{}}, errors: []int{409},
	},
	opListSchedules: {tag: "schedules", summary: "List schedules", answers: map[int]any{200: v1.ScheduleList{}}},
	opGetSchedule:   {tag: "schedules", summary: "Read a schedule", answers: map[int]any{200: v1.Schedule{}}, errors: []int{404}},
	opPutSchedule: {
		tag: "schedules", summary: "Replace what a schedule says",
		description: "It goes on from the last fire: times since then at which it would have fired are caught up, maxCatchup of them.",
		request:     v1.ChangeScheduleRequest{},
		requestExamples: []example{
			{"hourly", `{"cron":"0 0 * * * *","task":{"queue":"reports","type":"hourly"}}`},
		},
		answers: map[int]any{200: v1.Schedule{}}, errors: []int{404},
	},
	opPatchSchedule: {
		tag: "schedules", summary: "Change a part of what a schedule says", description: "As PUT, and what is absent stays as it is.",
		request: v1.ChangeScheduleRequest{}, requestExamples: []example{{"catch up less", `{"maxCatchup":10}`}},
		answers: map[int]any{200: v1.Schedule{}}, errors: []int{404},
	},
	opDeleteSchedule: {tag: "schedules", summary: "Delete a schedule", description: "Its tasks stay.",
		answers: map[int]any{200: v1.DeletedSchedule{}}, errors: []int{404}},
	opPauseSchedule: {tag: "schedules", summary: "Stop new fires", description: "Fires that are pending still create their tasks.",
		request: noFields{}, optionalBody: true, answers: map[int]any{200: v1.Schedule{}}, errors: []int{404}},
	opResumeSchedule: {tag: "schedules", summary: "Let a schedule go on", description: "What it has missed is caught up, maxCatchup fires.",
		request: noFields{}, optionalBody: true, answers: map[int]any{200: v1.Schedule{}}, errors: []int{404}},
	opNextFires: {tag: "schedules", summary: "When a schedule fires next", answers: map[int]any{200: v1.NextFires{}}, errors: []int{404}},
	opFireSchedule: {
		tag: "schedules", summary: "Fire now, once",
		description: "Also when it is paused, and whatever still runs. The fire has the time of the present second: twice within one is once.",
		request:     noFields{}, optionalBody: true, answers: map[int]any{202: v1.FiredResponse{}}, errors: []int{404, 409},
	},
	opBackfillSchedule: {
		tag: "schedules", summary: "Make up for a time that is over",
		description: "Fires for each time after from, up to and with to: the newest maxCatchup of them. Those that have fired " +
			"keep their one task.",
		request: v1.BackfillRequest{}, requestExamples: []example{{"a day", `{"from":"2025-01-14T00:00:00Z","to":"2025-01-15T00:00:00Z"}`}},
		answers: map[int]any{202: v1.AskedFires{}}, errors: []int{404},
	},
	opCreateWebhook: {
		tag: "webhooks", summary: "Tell a URL what happens",
		description: "Messages are posted as Standard Webhooks 1.0 has it, at least once each, those about one subject in order while it " +
			"keeps up. The answer has the secret, which is never shown again. An address that is not public is refused, unless " +
			"the deployment opens its range with webhook-allow-cidrs; that of a name is judged whenever it is called, and is not looked up " +
			"before. It is told of its workspace; what belongs to none, such as system.outage_credited, GET /v1/events tells tokens of " +
			"tenant *. At most 100 a workspace and 250 a tenant, and no more of a tenant than are left for all others of 1,000.",
		request: v1.CreateWebhookRequest{}, requestExamples: []example{{"failures",
			`{"webhookId":"alerts","url":"https://example.com/hook","events":["task.failed","worker.offline"],"queue":"default"}`}},
		answers: map[int]any{201: v1.Webhook{}}, errors: []int{409},
	},
	opListWebhooks: {tag: "webhooks", summary: "List webhooks", description: "In the order of their ids.",
		answers: map[int]any{200: v1.WebhookList{}}},
	opGetWebhook: {tag: "webhooks", summary: "One webhook", answers: map[int]any{200: v1.Webhook{}}, errors: []int{404}},
	opUpdateWebhook: {
		tag: "webhooks", summary: "Change a webhook",
		description: "The body is all that it says from now on; its secret stays. One that was switched off is switched on, unless enabled is " +
			"false.",
		request: v1.UpdateWebhookRequest{}, answers: map[int]any{200: v1.Webhook{}}, errors: []int{404, 409},
	},
	opDeleteWebhook: {
		tag: "webhooks", summary: "Forget a webhook", description: "With all that it was still to be sent. Requests to it that are " +
			"under way end.",
		answers: map[int]any{200: v1.DeleteWebhookResponse{}}, errors: []int{404, 409},
	},
	opRotateSecret: {
		tag: "webhooks", summary: "Give a webhook another secret",
		description: "The answer has it, and never again. For 24 hours messages are signed with the one before, too.",
		request:     v1.RotateSecretRequest{}, optionalBody: true, answers: map[int]any{200: v1.Webhook{}}, errors: []int{404, 409},
	},
	opTestWebhook: {
		tag: "webhooks", summary: "Send a webhook a test", description: "A message of type webhook.test. Its delivery shows the " +
			"result.",
		request: noFields{}, optionalBody: true, answers: map[int]any{202: v1.WebhookDelivery{}}, errors: []int{404, 409},
	},
	opListDeliveries: {
		tag: "webhooks", summary: "List what a webhook is sent",
		description: "Newest first, or oldest with order=asc: all that waits, and of what is over the newest 500 delivered and as many " +
			"dead. Pages may be short: go on while there is a nextPageToken.",
		answers: map[int]any{200: v1.WebhookDeliveryList{}}, errors: []int{404},
	},
	opRedeliver: {
		tag: "webhooks", summary: "Send a webhook something again",
		description: "One delivery, or all events since a time that are still kept; these keep their webhook-id. A call by since may " +
			"end early: go on with its nextPageToken.",
		request: v1.RedeliverRequest{},
		requestExamples: []example{{"one", `{"deliveryId":"dlv_0000000000042"}`},
			{"since", `{"since":"2025-01-15T10:00:00Z"}`}},
		answers: map[int]any{202: v1.RedeliverResponse{}}, errors: []int{404, 409},
	},
}
