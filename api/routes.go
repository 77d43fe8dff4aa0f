package api

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/valyala/fasthttp"

	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

// Body limits, in bytes.
const (
	limitCallback = 256 << 10
	limitBatch    = 4 << 20
	limitOther    = 1 << 20
	limitHeaders  = 8 << 10
)

// access says which token opens a route.
type access uint8

const (
	forAll     access = iota // no token
	forTask                  // the task token of that very task
	forItems                 // each item of the body brings its own
	forControl               // a control token; route.needs says which role
	forWorker                // the token of that very worker or, where route.needs is set, such a control token
)

// Names of the operations, as the OpenAPI document and the log have them.
const (
	opStarted     = "started"
	opHeartbeat   = "heartbeat"
	opCompleted   = "completed"
	opHeartbeats  = "heartbeats"
	opCreate      = "createTask"
	opCreateBatch = "createTasks"
	opList        = "listTasks"
	opGet         = "getTask"
	opCancel      = "cancelTask"
	opNextAttempt = "nextAttempt"
	opCancelTasks = "cancelTasks"
	opRetryTasks  = "retryTasks"
	opGetRun      = "getRun"
	opCancelRun   = "cancelRun"

	opRegister        = "registerWorker"
	opWorkerHeartbeat = "workerHeartbeat"
	opDeregister      = "deregisterWorker"
	opDrainWorker     = "drainWorker"
	opResumeWorker    = "resumeWorker"
	opOfflineWorker   = "offlineWorker"
	opCordonWorker    = "cordonWorker"
	opUncordonWorker  = "uncordonWorker"
	opDrainWorkers    = "drainWorkers"
	opCordonWorkers   = "cordonWorkers"
	opUncordonWorkers = "uncordonWorkers"
	opResumeWorkers   = "resumeWorkers"
	opOfflineWorkers  = "offlineWorkers"
	opGetWorker       = "getWorker"
	opListWorkers     = "listWorkers"
	opSelectWorker    = "selectWorker"
	opGetMachine      = "getMachine"
	opListMachines    = "listMachines"
	opDrainMachine    = "drainMachine"
	opOfflineMachine  = "offlineMachine"
	opResumeMachine   = "resumeMachine"
	opSweep           = "sweep"
	opRelease         = "releaseBrake"
	opRevoke          = "revokeTokens"
	opCreateToken     = "createToken"

	opCreateWebhook  = "createWebhook"
	opListWebhooks   = "listWebhooks"
	opGetWebhook     = "getWebhook"
	opUpdateWebhook  = "updateWebhook"
	opDeleteWebhook  = "deleteWebhook"
	opRotateSecret   = "rotateSecret"
	opTestWebhook    = "testWebhook"
	opListDeliveries = "listDeliveries"
	opRedeliver      = "redeliver"

	opStats    = "getStats"
	opVerdicts = "countVerdicts"
	opSystem   = "getSystem"
	opScopes   = "listScopes"

	opClaim       = "claimTasks"
	opListQueues  = "listQueues"
	opGetQueue    = "getQueue"
	opPauseQueue  = "pauseQueue"
	opResumeQueue = "resumeQueue"

	opCreateSchedule   = "createSchedule"
	opListSchedules    = "listSchedules"
	opGetSchedule      = "getSchedule"
	opPutSchedule      = "replaceSchedule"
	opPatchSchedule    = "changeSchedule"
	opDeleteSchedule   = "deleteSchedule"
	opPauseSchedule    = "pauseSchedule"
	opResumeSchedule   = "resumeSchedule"
	opNextFires        = "nextFires"
	opFireSchedule     = "fireSchedule"
	opBackfillSchedule = "backfillSchedule"

	opEvents = "listEvents"
)

// route is one operation. The table of them is also what the OpenAPI document is held against.
type route struct {
	method  string
	pattern string // a segment {…} takes an id
	op      string
	access  access
	needs   permissions // one of these bits; with forControl
	query   []string    // parameters that it takes besides the scope's
	handle  func(*request) (status int, body any, err error)

	index    int // in routes
	segments []string
}

var routes = []*route{
	{method: "POST", pattern: "/v1/tasks/{taskId}/started", op: opStarted, access: forTask, handle: (*request).started},
	{method: "POST", pattern: "/v1/tasks/{taskId}/heartbeat", op: opHeartbeat, access: forItems, handle: (*request).heartbeat},
	{method: "POST", pattern: "/v1/tasks/{taskId}/completed", op: opCompleted, access: forTask, handle: (*request).completed},
	{method: "POST", pattern: "/v1/heartbeats", op: opHeartbeats, access: forItems, handle: (*request).heartbeats},

	{method: "POST", pattern: "/v1/tasks", op: opCreate, access: forControl, needs: mayCreate, handle: (*request).createTask},
	{method: "POST", pattern: "/v1/tasks:batch", op: opCreateBatch, access: forControl, needs: mayCreate, handle: (*request).createTasks},
	{
		method: "GET", pattern: "/v1/tasks", op: opList, access: forControl, needs: mayReadTasks, handle: (*request).listTasks,
		query: []string{"state", "runId", "workerId", "machineId", "scheduleId", "queue", "type", "label", "liveness", "claimable", "reason",
			"finishedAfter", "finishedBefore", "order", "pageSize", "pageToken"},
	},
	{method: "GET", pattern: "/v1/tasks/{taskId}", op: opGet, access: forControl, needs: mayReadTasks, handle: (*request).getTask},
	{
		method: "POST", pattern: "/v1/tasks/{taskId}/cancel", op: opCancel,
		access: forControl, needs: mayCancel, handle: (*request).cancelTask,
	},
	{
		method: "POST", pattern: "/v1/tasks/{taskId}/attempts", op: opNextAttempt,
		access: forControl, needs: mayOperate, handle: (*request).nextAttempt,
	},
	{
		method: "POST", pattern: "/v1/tasks:cancel", op: opCancelTasks,
		access: forControl, needs: mayCancel, handle: (*request).cancelTasks,
	},
	{
		method: "POST", pattern: "/v1/tasks:retry", op: opRetryTasks,
		access: forControl, needs: mayOperate, handle: (*request).retryTasks,
	},
	{method: "GET", pattern: "/v1/runs/{runId}", op: opGetRun, access: forControl, needs: mayReadTasks, handle: (*request).getRun},
	{
		method: "POST", pattern: "/v1/runs/{runId}/cancel", op: opCancelRun,
		access: forControl, needs: mayCancel, handle: (*request).cancelRun,
	},

	{method: "POST", pattern: "/v1/workers", op: opRegister, access: forControl, needs: mayEnroll, handle: (*request).registerWorker},
	{
		method: "POST", pattern: "/v1/workers/{workerId}/heartbeat", op: opWorkerHeartbeat,
		access: forWorker, handle: (*request).workerHeartbeat,
	},
	{
		method: "POST", pattern: "/v1/workers/{workerId}/deregister", op: opDeregister,
		access: forWorker, needs: mayOperate, handle: (*request).deregisterWorker,
	},
	{
		method: "POST", pattern: "/v1/workers/{workerId}/drain", op: opDrainWorker,
		access: forWorker, needs: mayOperate, handle: (*request).drainWorker,
	},
	{
		method: "POST", pattern: "/v1/workers/{workerId}/resume", op: opResumeWorker,
		access: forControl, needs: mayOperate, handle: (*request).resumeWorker,
	},
	{
		method: "POST", pattern: "/v1/workers/{workerId}/offline", op: opOfflineWorker,
		access: forControl, needs: mayOperate, handle: (*request).offlineWorker,
	},
	{
		method: "POST", pattern: "/v1/workers/{workerId}/cordon", op: opCordonWorker,
		access: forControl, needs: mayOperate, handle: (*request).cordonWorker,
	},
	{
		method: "POST", pattern: "/v1/workers/{workerId}/uncordon", op: opUncordonWorker,
		access: forControl, needs: mayOperate, handle: (*request).uncordonWorker,
	},
	{
		method: "POST", pattern: "/v1/workers:cordon", op: opCordonWorkers,
		access: forControl, needs: mayOperate, handle: (*request).cordonWorkers,
	},
	{
		method: "POST", pattern: "/v1/workers:uncordon", op: opUncordonWorkers,
		access: forControl, needs: mayOperate, handle: (*request).uncordonWorkers,
	},
	{
		method: "POST", pattern: "/v1/workers:resume", op: opResumeWorkers,
		access: forControl, needs: mayOperate, handle: (*request).resumeWorkers,
	},
	{
		method: "POST", pattern: "/v1/workers:offline", op: opOfflineWorkers,
		access: forControl, needs: mayOperate, handle: (*request).offlineWorkers,
	},
	{
		method: "POST", pattern: "/v1/workers:drain", op: opDrainWorkers,
		access: forControl, needs: mayOperate, handle: (*request).drainWorkers,
	},
	{method: "POST", pattern: "/v1/workers:select", op: opSelectWorker, access: forControl, needs: mayRead, handle: (*request).selectWorker},
	{method: "GET", pattern: "/v1/workers/{workerId}", op: opGetWorker, access: forControl, needs: mayRead, handle: (*request).getWorker},
	{
		method: "GET", pattern: "/v1/workers", op: opListWorkers, access: forControl, needs: mayRead, handle: (*request).listWorkers,
		query: []string{"queue", "status", "type", "runtime", "machineId", "name", "version", "label", "liveness", "schedulable", "flapping",
			"sort", "order", "pageSize", "pageToken"},
	},
	{
		method: "GET", pattern: "/v1/machines", op: opListMachines,
		access: forControl, needs: mayRead, handle: (*request).listMachines, query: []string{"status", "order", "pageSize", "pageToken"},
	},
	{
		method: "GET", pattern: "/v1/machines/{machineId}", op: opGetMachine,
		access: forControl, needs: mayRead, handle: (*request).getMachine,
	},
	{
		method: "POST", pattern: "/v1/machines/{machineId}/drain", op: opDrainMachine,
		access: forControl, needs: mayOperate, handle: (*request).drainMachine,
	},
	{
		method: "POST", pattern: "/v1/machines/{machineId}/offline", op: opOfflineMachine,
		access: forControl, needs: mayOperate, handle: (*request).offlineMachine,
	},
	{
		method: "POST", pattern: "/v1/machines/{machineId}/resume", op: opResumeMachine,
		access: forControl, needs: mayOperate, handle: (*request).resumeMachine,
	},
	{method: "POST", pattern: "/v1/system:sweep", op: opSweep, access: forControl, needs: mayAdmin, handle: (*request).sweep},
	{method: "POST", pattern: "/v1/system:release", op: opRelease, access: forControl, needs: mayOperate, handle: (*request).release},
	{method: "POST", pattern: "/v1/tokens", op: opCreateToken, access: forControl, needs: anything, handle: (*request).createToken},
	{method: "POST", pattern: "/v1/tokens:revoke", op: opRevoke, access: forControl, needs: mayAdmin, handle: (*request).revokeTokens},

	{method: "GET", pattern: "/v1/system", op: opSystem, access: forControl, needs: mayRead, handle: (*request).system},
	{method: "GET", pattern: "/v1/stats", op: opStats, access: forControl, needs: mayRead, handle: (*request).stats, query: []string{"steps"}},
	{
		method: "GET", pattern: "/v1/stats/verdicts", op: opVerdicts, access: forControl, needs: mayRead, handle: (*request).verdicts,
		query: []string{"by", "sinceMs", "reason", "queue", "type"},
	},
	{
		method: "GET", pattern: "/v1/scopes", op: opScopes, access: forControl, needs: mayRead, handle: (*request).scopes,
		query: []string{"order", "pageSize", "pageToken"},
	},

	{method: "POST", pattern: "/v1/queues/{queue}/claim", op: opClaim, access: forWorker, handle: (*request).claimTasks},
	{
		method: "GET", pattern: "/v1/queues", op: opListQueues, access: forControl, needs: mayRead, handle: (*request).listQueues,
		query: []string{"order"},
	},
	{method: "GET", pattern: "/v1/queues/{queue}", op: opGetQueue, access: forControl, needs: mayRead, handle: (*request).getQueue},
	{
		method: "POST", pattern: "/v1/queues/{queue}/pause", op: opPauseQueue,
		access: forControl, needs: mayOperate, handle: (*request).pauseQueue,
	},
	{
		method: "POST", pattern: "/v1/queues/{queue}/resume", op: opResumeQueue,
		access: forControl, needs: mayOperate, handle: (*request).resumeQueue,
	},

	{
		method: "GET", pattern: "/v1/events", op: opEvents, access: forControl, needs: mayRead, handle: (*request).events,
		query: []string{
			"type", "subject", "runId", "queue", "taskType", "workerId", "machineId", "after", "order", "pageSize",
		},
	},

	{
		method: "POST", pattern: "/v1/schedules", op: opCreateSchedule,
		access: forControl, needs: mayOperate, handle: (*request).createSchedule,
	},
	{
		method: "GET", pattern: "/v1/schedules", op: opListSchedules, access: forControl, needs: mayRead, handle: (*request).listSchedules,
		query: []string{"order", "pageSize", "pageToken"},
	},
	{
		method: "GET", pattern: "/v1/schedules/{scheduleId}", op: opGetSchedule,
		access: forControl, needs: mayRead, handle: (*request).getSchedule,
	},
	{
		method: "PUT", pattern: "/v1/schedules/{scheduleId}", op: opPutSchedule,
		access: forControl, needs: mayOperate, handle: (*request).putSchedule,
	},
	{
		method: "PATCH", pattern: "/v1/schedules/{scheduleId}", op: opPatchSchedule,
		access: forControl, needs: mayOperate, handle: (*request).patchSchedule,
	},
	{
		method: "DELETE", pattern: "/v1/schedules/{scheduleId}", op: opDeleteSchedule,
		access: forControl, needs: mayOperate, handle: (*request).deleteSchedule,
	},
	{
		method: "POST", pattern: "/v1/schedules/{scheduleId}/pause", op: opPauseSchedule,
		access: forControl, needs: mayOperate, handle: (*request).pauseSchedule,
	},
	{
		method: "POST", pattern: "/v1/schedules/{scheduleId}/resume", op: opResumeSchedule,
		access: forControl, needs: mayOperate, handle: (*request).resumeSchedule,
	},
	{
		method: "GET", pattern: "/v1/schedules/{scheduleId}/next", op: opNextFires,
		access: forControl, needs: mayRead, handle: (*request).nextFires, query: []string{"count"},
	},
	{
		method: "POST", pattern: "/v1/schedules/{scheduleId}/fire", op: opFireSchedule,
		access: forControl, needs: mayOperate, handle: (*request).fireSchedule,
	},
	{
		method: "POST", pattern: "/v1/schedules/{scheduleId}/backfill", op: opBackfillSchedule,
		access: forControl, needs: mayOperate, handle: (*request).backfillSchedule,
	},

	{method: "POST", pattern: "/v1/webhooks", op: opCreateWebhook, access: forControl, needs: mayOperate, handle: (*request).createWebhook},
	{
		method: "GET", pattern: "/v1/webhooks", op: opListWebhooks, access: forControl, needs: mayRead, handle: (*request).listWebhooks,
		query: []string{"order", "pageSize", "pageToken"},
	},
	{method: "GET", pattern: "/v1/webhooks/{webhookId}", op: opGetWebhook, access: forControl, needs: mayRead, handle: (*request).getWebhook},
	{
		method: "PUT", pattern: "/v1/webhooks/{webhookId}", op: opUpdateWebhook,
		access: forControl, needs: mayOperate, handle: (*request).updateWebhook,
	},
	{
		method: "DELETE", pattern: "/v1/webhooks/{webhookId}", op: opDeleteWebhook,
		access: forControl, needs: mayOperate, handle: (*request).deleteWebhook,
	},
	{
		method: "POST", pattern: "/v1/webhooks/{webhookId}/rotate-secret", op: opRotateSecret,
		access: forControl, needs: mayOperate, handle: (*request).rotateSecret,
	},
	{
		method: "POST", pattern: "/v1/webhooks/{webhookId}/test", op: opTestWebhook,
		access: forControl, needs: mayOperate, handle: (*request).testWebhook,
	},
	{
		method: "GET", pattern: "/v1/webhooks/{webhookId}/deliveries", op: opListDeliveries, access: forControl, needs: mayRead,
		handle: (*request).listDeliveries, query: []string{"status", "order", "pageSize", "pageToken"},
	},
	{
		method: "POST", pattern: "/v1/webhooks/{webhookId}/redeliver", op: opRedeliver,
		access: forControl, needs: mayOperate, handle: (*request).redeliver,
	},

	{method: "GET", pattern: "/", op: "index", handle: (*request).index},
	{method: "GET", pattern: "/livez", op: "livez", handle: (*request).livez},
	{method: "GET", pattern: "/readyz", op: "readyz", handle: (*request).readyz},
	{method: "GET", pattern: "/healthz", op: "healthz", handle: (*request).readyz},
	{method: "GET", pattern: "/version", op: "version", handle: (*request).version},
	{method: "GET", pattern: "/openapi.json", op: "openapi", handle: (*request).openapi},
}

func init() {
	for i, r := range routes {
		r.index = i
		r.segments = strings.Split(r.pattern[1:], "/")
	}
}

// findRoute returns the route of a path and the id in it. HEAD is taken where GET is.
func findRoute(method, path string) (*route, string, error) {
	if method == fasthttp.MethodHead {
		method = fasthttp.MethodGet
	}
	segments := strings.Split(path[1:], "/")
	var allow []string
	for _, r := range routes {
		id, ok := r.match(segments)
		if !ok {
			continue
		}
		if r.method == method {
			return r, id, nil
		}
		allow = append(allow, r.method)
		if r.method == fasthttp.MethodGet {
			allow = append(allow, fasthttp.MethodHead)
		}
	}
	if allow != nil {
		return nil, "", methodNotAllowed(strings.Join(allow, ", "))
	}
	return nil, "", refuse(fasthttp.StatusNotFound, v1.CodeNotFound, "There is nothing at this path; /openapi.json lists what there is")
}

func (r *route) match(segments []string) (id string, ok bool) {
	if len(segments) != len(r.segments) {
		return "", false
	}
	for i, seg := range r.segments {
		if strings.HasPrefix(seg, "{") {
			if segments[i] == "" {
				return "", false
			}
			id = segments[i]
		} else if seg != segments[i] {
			return "", false
		}
	}
	return id, true
}

// idField is the name of the path's id.
func (r *route) idField() string {
	for _, seg := range r.segments {
		if strings.HasPrefix(seg, "{") {
			return seg[1 : len(seg)-1]
		}
	}
	return ""
}

// bodyLimit returns how large a body may be before the request is routed: it is asked before the body is read.
func bodyLimit(method, target []byte) int {
	path, _, _ := bytes.Cut(target, []byte("?"))
	if bytes.IndexByte(path, '%') >= 0 { // judged as it will be routed
		plain, _, err := splitTarget(target)
		if err != nil {
			return limitCallback // it is refused whatever comes
		}
		path = []byte(plain)
	}
	switch {
	case string(method) != fasthttp.MethodPost:
		return limitOther
	case string(path) == "/v1/heartbeats" || string(path) == "/v1/tasks:batch":
		return limitBatch
	case bytes.HasPrefix(path, prefixWorkers) && bytes.HasSuffix(path, suffixHeartbeat): // with its inventory a batch
		return limitBatch
	case bytes.HasSuffix(path, suffixHeartbeat) || bytes.HasSuffix(path, []byte("/started")) || bytes.HasSuffix(path, []byte("/completed")):
		return limitCallback
	}
	return limitOther
}

func (r *route) String() string { return fmt.Sprintf("%s %s", r.method, r.pattern) }
