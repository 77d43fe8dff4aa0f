package exchange

import (
	"github.com/lubdub-io/lubdub/api/httpapi"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

// Routes returns the routes of the package.
func (h *Handlers) Routes() []*httpapi.Route {
	return []*httpapi.Route{{
		Method: "POST", Pattern: "/v1/workers/{workerId}/exchange", Op: "exchange", Handle: h.exchange,
		Tag: "workers", Body: v1.ExchangeRequest{}, Answers: map[int]any{200: v1.ExchangeResponse{}}, Errors: []int{404, 410},
		Examples: map[string]string{
			"results": `{"completed":[{"taskId":"task_1","attempt":1,"outcome":"SUCCEEDED","output":{"n":1}},` +
				`{"taskId":"task_2","attempt":3,"outcome":"FAILED","error":{"category":"USER_CODE","message":"no such file"}}]}`,
			"all": `{"seq":17,"activeCount":2,"progress":[{"taskId":"task_3","attempt":1,"progressPct":40}],` +
				`"completed":[{"taskId":"task_1","attempt":1,"outcome":"SUCCEEDED"}],"claim":{"max":2,"waitMs":5000,"claimId":"c-17"}}`,
		},
		Access: httpapi.ForWorker, Waits: true,
		Summary: "Send a worker's heartbeat, results and claim in one request",
		Description: "One request for what a worker has: with seq its heartbeat, with progress and inventory; completed, results of attempts " +
			"that were dispatched to it; and a claim of its queue. They are processed in this order. If the heartbeat is refused, " +
			"nothing else happens. Each completion has the result that its own request would have. A claim that is refused is " +
			"answered with claimError. With a claim that waits, the results of the completions wait too. It does not wait longer " +
			"than until the next heartbeat is due, and not at all if the heartbeat's answer has a drain, cancelTasks or lostTasks, " +
			"or the body has more than 16 KiB. The same seq, completions and claimId get the same results and tasks again. A " +
			"registration is answered with the capability exchange where the server has this. A body may have up to 4 MiB.",
	}}
}
