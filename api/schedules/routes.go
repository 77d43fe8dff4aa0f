package schedules

import (
	"github.com/lubdub-io/lubdub/api/httpapi"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

// Routes returns the routes of the package.
func (h *Handlers) Routes() []*httpapi.Route {
	return []*httpapi.Route{
		{
			Method: "POST", Pattern: "/v1/schedules", Op: "createSchedule", Handle: h.create, NotIdempotent: true,
			Tag: "schedules", Body: v1.CreateScheduleRequest{}, Answers: map[int]any{201: v1.Schedule{}}, Errors: []int{409},
			Examples: map[string]string{
				"weekdays":      `{"scheduleId":"report","cron":"0 30 9 * * MON-FRI","task":{"queue":"reports","type":"daily"}}`,
				"one at a time": `{"cron":"0 */5 * * * *","overlap":"skip","maxCatchup":0,"task":{"queue":"sync","payload":{"full":false}}}`,
			},
			Access: httpapi.ForControl, Needs: httpapi.MayOperate,
			Summary: "Create a schedule",
			Description: "Each fire creates its task once, no matter how many servers run and when they die: its idempotency key is " +
				"schedule:<id>:<time>, its taskId begins with fire_, and both are reserved. A tenant may have 10,000 schedules; one " +
				"more gets 429.",
		},
		{
			Method: "GET", Pattern: "/v1/schedules", Op: "listSchedules", Handle: h.list,
			Query: []httpapi.Param{httpapi.ParamOrder, httpapi.ParamPageSize, httpapi.ParamPageToken},
			Tag:   "schedules", Answers: map[int]any{200: v1.ScheduleList{}},
			Access: httpapi.ForControl, Needs: httpapi.MayRead,
			Summary: "List schedules",
		},
		{
			Method: "GET", Pattern: "/v1/schedules/{scheduleId}", Op: "getSchedule", Handle: h.get,
			Tag: "schedules", Answers: map[int]any{200: v1.Schedule{}}, Errors: []int{404},
			Access: httpapi.ForControl, Needs: httpapi.MayRead,
			Summary: "Read a schedule",
		},
		{
			Method: "PUT", Pattern: "/v1/schedules/{scheduleId}", Op: "replaceSchedule", Handle: h.put,
			Tag: "schedules", Body: v1.ChangeScheduleRequest{}, Answers: map[int]any{200: v1.Schedule{}}, Errors: []int{404},
			Examples: map[string]string{"hourly": `{"cron":"0 0 * * * *","task":{"queue":"reports","type":"hourly"}}`},
			Access:   httpapi.ForControl, Needs: httpapi.MayOperate,
			Summary: "Replace a schedule's definition",
			Description: "cron and task are required, and absent fields get their defaults. The schedule continues from its last fire: " +
				"missed times since then are caught up, up to maxCatchup of them.",
		},
		{
			Method: "PATCH", Pattern: "/v1/schedules/{scheduleId}", Op: "changeSchedule", Handle: h.patch,
			Tag: "schedules", Body: v1.ChangeScheduleRequest{}, Answers: map[int]any{200: v1.Schedule{}}, Errors: []int{404},
			Examples: map[string]string{"catch up less": `{"maxCatchup":10}`},
			Access:   httpapi.ForControl, Needs: httpapi.MayOperate,
			Summary:     "Change a schedule's definition",
			Description: "Absent fields do not change. The schedule continues as when its definition is replaced.",
		},
		{
			Method: "DELETE", Pattern: "/v1/schedules/{scheduleId}", Op: "deleteSchedule", Handle: h.remove,
			Tag: "schedules", Answers: map[int]any{200: v1.DeletedSchedule{}}, Errors: []int{404},
			Access: httpapi.ForControl, Needs: httpapi.MayOperate,
			Summary:     "Delete a schedule",
			Description: "Its tasks stay.",
		},
		{
			Method: "POST", Pattern: "/v1/schedules/{scheduleId}/pause", Op: "pauseSchedule", Handle: h.pause,
			Tag: "schedules", Body: struct{}{}, OptionalBody: true, Answers: map[int]any{200: v1.Schedule{}}, Errors: []int{404},
			Access: httpapi.ForControl, Needs: httpapi.MayOperate,
			Summary:     "Pause a schedule",
			Description: "Fires that are pending still create their tasks.",
		},
		{
			Method: "POST", Pattern: "/v1/schedules/{scheduleId}/resume", Op: "resumeSchedule", Handle: h.resume,
			Tag: "schedules", Body: struct{}{}, OptionalBody: true, Answers: map[int]any{200: v1.Schedule{}}, Errors: []int{404},
			Access: httpapi.ForControl, Needs: httpapi.MayOperate,
			Summary:     "Resume a schedule",
			Description: "Missed fires are caught up, up to maxCatchup of them.",
		},
		{
			Method: "GET", Pattern: "/v1/schedules/{scheduleId}/next", Op: "nextFires", Handle: h.nextFires,
			Query: []httpapi.Param{count, expression},
			Tag:   "schedules", Answers: map[int]any{200: v1.NextFires{}}, Errors: []int{404},
			Access: httpapi.ForControl, Needs: httpapi.MayRead,
			Summary:     "List a schedule's next fires",
			Description: "With cron, those that a schedule with this id would have from now on. It need not exist, and does not change.",
		},
		{
			Method: "POST", Pattern: "/v1/schedules/{scheduleId}/fire", Op: "fireSchedule", Handle: h.fire, NotIdempotent: true,
			Tag: "schedules", Body: struct{}{}, OptionalBody: true, Answers: map[int]any{202: v1.FiredResponse{}},
			Errors: []int{404, 409},
			Access: httpapi.ForControl, Needs: httpapi.MayOperate,
			Summary: "Fire a schedule once, now",
			Description: "It fires even if it is paused or its earlier tasks still run. The fire has the time of the current second: " +
				"two calls within one second fire once.",
		},
		{
			Method: "POST", Pattern: "/v1/schedules/{scheduleId}/backfill", Op: "backfillSchedule", Handle: h.backfill,
			Tag: "schedules", Body: v1.BackfillRequest{}, Answers: map[int]any{202: v1.AskedFires{}}, Errors: []int{404},
			Examples: map[string]string{"a day": `{"from":"2025-01-14T00:00:00Z","to":"2025-01-15T00:00:00Z"}`},
			Access:   httpapi.ForControl, Needs: httpapi.MayOperate,
			Summary: "Fire a schedule for a time in the past",
			Description: "It fires for each scheduled time after from, up to and including to: the newest maxCatchup of them. Times " +
				"that have already fired keep their task.",
		},
	}
}

var (
	count      = httpapi.Param{Name: "count", Schema: httpapi.Between(1, 100).With("default", 10), Description: "How many fires."}
	expression = httpapi.Param{
		Name: "cron", Schema: httpapi.Of("string"), Description: "A cron expression instead of the schedule's, as in its creation.",
	}
)
