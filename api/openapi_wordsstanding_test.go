package api

import (
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

// standingWords are the descriptions of schedules and webhooks, which exist until they are deleted.
var standingWords = map[string]words{
	opCreateSchedule: {
		tag: "schedules", request: v1.CreateScheduleRequest{}, requestExamples: []example{
			{"weekdays", `{"scheduleId":"report","cron":"0 30 9 * * MON-FRI","task":{"queue":"reports","type":"daily"}}`},
			{"one at a time", `{"cron":"0 */5 * * * *","overlap":"skip","maxCatchup":0,"task":{"queue":"sync","payload":{"full":false}}}`},
		},
		answers: map[int]any{201: v1.Schedule{}}, errors: []int{409},
	},
	opListSchedules: {tag: "schedules", answers: map[int]any{200: v1.ScheduleList{}}},
	opGetSchedule:   {tag: "schedules", answers: map[int]any{200: v1.Schedule{}}, errors: []int{404}},
	opPutSchedule: {
		tag: "schedules", request: v1.ChangeScheduleRequest{},
		requestExamples: []example{
			{"hourly", `{"cron":"0 0 * * * *","task":{"queue":"reports","type":"hourly"}}`},
		},
		answers: map[int]any{200: v1.Schedule{}}, errors: []int{404},
	},
	opPatchSchedule: {
		tag: "schedules", request: v1.ChangeScheduleRequest{}, requestExamples: []example{{"catch up less", `{"maxCatchup":10}`}},
		answers: map[int]any{200: v1.Schedule{}}, errors: []int{404},
	},
	opDeleteSchedule: {tag: "schedules", answers: map[int]any{200: v1.DeletedSchedule{}}, errors: []int{404}},
	opPauseSchedule: {
		tag: "schedules", request: noFields{}, optionalBody: true,
		answers: map[int]any{200: v1.Schedule{}}, errors: []int{404},
	},
	opResumeSchedule: {
		tag: "schedules", request: noFields{}, optionalBody: true,
		answers: map[int]any{200: v1.Schedule{}}, errors: []int{404},
	},
	opNextFires: {tag: "schedules", answers: map[int]any{200: v1.NextFires{}}, errors: []int{404}},
	opFireSchedule: {
		tag: "schedules", request: noFields{}, optionalBody: true,
		answers: map[int]any{202: v1.FiredResponse{}}, errors: []int{404, 409},
	},
	opBackfillSchedule: {
		tag: "schedules", request: v1.BackfillRequest{},
		requestExamples: []example{{"a day", `{"from":"2025-01-14T00:00:00Z","to":"2025-01-15T00:00:00Z"}`}},
		answers:         map[int]any{202: v1.AskedFires{}}, errors: []int{404},
	},
	opCreateWebhook: {
		tag: "webhooks", request: v1.CreateWebhookRequest{}, requestExamples: []example{{"failures",
			`{"webhookId":"alerts","url":"https://example.com/hook","events":["task.failed","worker.offline"],"queue":"default"}`}},
		answers: map[int]any{201: v1.Webhook{}}, errors: []int{409},
	},
	opListWebhooks: {tag: "webhooks", answers: map[int]any{200: v1.WebhookList{}}},
	opGetWebhook:   {tag: "webhooks", answers: map[int]any{200: v1.Webhook{}}, errors: []int{404}},
	opUpdateWebhook: {
		tag: "webhooks", request: v1.UpdateWebhookRequest{}, answers: map[int]any{200: v1.Webhook{}}, errors: []int{404, 409},
	},
	opDeleteWebhook: {
		tag: "webhooks", answers: map[int]any{200: v1.DeleteWebhookResponse{}}, errors: []int{404, 409},
	},
	opRotateSecret: {
		tag: "webhooks", request: v1.RotateSecretRequest{}, optionalBody: true,
		answers: map[int]any{200: v1.Webhook{}}, errors: []int{404, 409},
	},
	opTestWebhook: {
		tag: "webhooks", request: noFields{}, optionalBody: true,
		answers: map[int]any{202: v1.WebhookDelivery{}}, errors: []int{404, 409},
	},
	opListDeliveries: {
		tag: "webhooks", answers: map[int]any{200: v1.WebhookDeliveryList{}}, errors: []int{404},
	},
	opRedeliver: {
		tag: "webhooks", request: v1.RedeliverRequest{},
		requestExamples: []example{{"one", `{"deliveryId":"dlv_0000000000042"}`},
			{"since", `{"since":"2025-01-15T10:00:00Z"}`}},
		answers: map[int]any{202: v1.RedeliverResponse{}}, errors: []int{404, 409},
	},
}
