// Package frontend is the common part of the HTTP baselines: they have the same two calls, tokens, checks and script. A baseline only
// chooses how it verifies a token and how it sends its script call to Redis; so a difference in cost is due to those.
//
// Lubdub does more for a beat (it checks for a pending cancel, keeps shard time and renews tokens). Without this the baselines have an
// advantage.
package frontend

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/valyala/fasthttp"
)

//go:embed beat.lua
var beatSource string

//go:embed start.lua
var startSource string

var beatScript, startScript = redis.NewScript(beatSource), redis.NewScript(startSource)

// request is the body of both calls.
type request struct {
	Attempt     int       `json:"attempt"`
	WorkerID    string    `json:"workerId"`
	HeartbeatAt time.Time `json:"heartbeatAt"`
	ProgressPct *float64  `json:"progressPct"`
	Message     *string   `json:"message"`
}

// answer contains the bytes of Lubdub's answer.
type answer struct {
	Acknowledged    bool   `json:"acknowledged"`
	ShouldCancel    bool   `json:"shouldCancel"`
	ServerTime      string `json:"serverTime"`
	NextHeartbeatMs int64  `json:"nextHeartbeatMs"`
}

type refusal struct {
	Error   string `json:"error"`
	Message string `json:"message"`
}

// Handler answers POST /v1/tasks/{id}/started and …/heartbeat. A 200 means: applied in Redis.
func Handler(verify Verify, store redis.Scripter) fasthttp.RequestHandler {
	ids := newRequestIDs()
	return func(ctx *fasthttp.RequestCtx) {
		ctx.Response.Header.Set("X-Request-Id", ids.next())
		status, body := handle(ctx, verify, store)
		text, err := json.Marshal(body)
		if err != nil {
			status, text = fasthttp.StatusInternalServerError, []byte(`{"error":"internal"}`)
		}
		ctx.SetStatusCode(status)
		ctx.SetContentType("application/json")
		ctx.SetBody(text)
	}
}

var prefix, bearer = []byte("/v1/tasks/"), []byte("Bearer ")

func handle(ctx *fasthttp.RequestCtx, verify Verify, store redis.Scripter) (status int, body any) {
	path, ours := bytes.CutPrefix(ctx.Path(), prefix)
	id, action, two := bytes.Cut(path, []byte("/"))
	if !ours || !two || !ctx.IsPost() {
		return refuse(fasthttp.StatusNotFound, "not_found", "Call POST /v1/tasks/{taskId}/started or …/heartbeat")
	}
	script := beatScript
	switch string(action) {
	case "heartbeat":
	case "started":
		script = startScript
	default:
		return refuse(fasthttp.StatusNotFound, "not_found", "Call POST /v1/tasks/{taskId}/started or …/heartbeat")
	}

	token, ok := bytes.CutPrefix(ctx.Request.Header.Peek(fasthttp.HeaderAuthorization), bearer)
	if !ok {
		return refuse(fasthttp.StatusUnauthorized, "unauthorized", "Send the task's token as a bearer token")
	}
	c, err := verify(token)
	if err != nil {
		return refuse(fasthttp.StatusUnauthorized, "unauthorized", "Send a token that holds")
	}
	if c.Task != string(id) {
		return refuse(fasthttp.StatusForbidden, "forbidden", "The token is for another task")
	}
	var req request
	if err := json.Unmarshal(ctx.Request.Body(), &req); err != nil {
		return refuse(fasthttp.StatusBadRequest, "invalid_json", "The body is not a beat: "+err.Error())
	}
	if req.ProgressPct != nil && (*req.ProgressPct < 0 || *req.ProgressPct > 100) {
		return refuse(fasthttp.StatusBadRequest, "invalid_request", "progressPct is not a number from 0 to 100")
	}
	if req.Attempt != c.Attempt {
		return refuse(fasthttp.StatusForbidden, "forbidden", "The token is for another attempt")
	}

	at, live, err := run(script, store, c, &req)
	switch {
	case err != nil:
		return refuse(fasthttp.StatusServiceUnavailable, "store_unavailable", "Redis did not answer; try again")
	case !live:
		return refuse(fasthttp.StatusConflict, "attempt_mismatch", "This attempt does not run; stop")
	}
	return fasthttp.StatusOK, answer{
		Acknowledged: true, NextHeartbeatMs: c.NextMs,
		ServerTime: time.UnixMilli(at).UTC().Format("2006-01-02T15:04:05.000Z"),
	}
}

func refuse(status int, code, message string) (int, any) { return status, refusal{code, message} }

// run calls a script by its hash. Members and reports are as long as Lubdub's.
func run(script *redis.Script, store redis.Scripter, c *Claims, req *request) (at int64, live bool, err error) {
	member := c.Tenant + "/" + c.Workspace + "/" + c.Task + "#" + strconv.Itoa(c.Attempt) + "." + c.Fence
	keys := []string{"baseline:beats:" + strconv.FormatInt(c.TimeoutMs, 10), "baseline:progress"}
	reply, err := script.Run(context.Background(), store, keys, member, req.report()).Int64Slice()
	if err == nil && len(reply) != 2 {
		err = fmt.Errorf("the script answered %d values instead of 2", len(reply))
	}
	if err != nil {
		return 0, false, err
	}
	return reply[0], reply[1] == 1, nil
}

// report is the stored part of a beat: time, worker, progress and message; empty if the beat has none.
func (r *request) report() string {
	var at, pct, message string
	if !r.HeartbeatAt.IsZero() {
		at = strconv.FormatInt(r.HeartbeatAt.UnixMilli(), 10)
	}
	if r.ProgressPct != nil {
		pct = strconv.FormatFloat(*r.ProgressPct, 'f', -1, 64)
	}
	if r.Message != nil {
		message = strconv.Quote(*r.Message)
	}
	if at == "" && pct == "" && message == "" && r.WorkerID == "" {
		return ""
	}
	return at + "\t" + r.WorkerID + "\t" + pct + "\t" + message
}
