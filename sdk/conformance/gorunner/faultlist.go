package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
)

func parse(text []byte) map[string]any {
	var v map[string]any
	if json.Unmarshal(text, &v) != nil || v == nil {
		v = map[string]any{}
	}
	return v
}

func write(v map[string]any) []byte {
	text, _ := json.Marshal(v) // it was JSON
	return text
}

func (a *reply) response(req *http.Request) *http.Response {
	text := write(a.out)
	header := a.header.Clone()
	header.Del("Content-Length")
	return &http.Response{
		Status: http.StatusText(a.status), StatusCode: a.status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: header,
		Body: io.NopCloser(bytes.NewReader(text)), ContentLength: int64(len(text)), Request: req,
	}
}

// forged is an answer that no server gave.
func forged(out map[string]any) *reply {
	return &reply{http.StatusOK, http.Header{"Content-Type": {"application/json"}}, out}
}

// list is a list of objects in an object.
func list(in map[string]any, name string) (all []map[string]any) {
	items, _ := in[name].([]any)
	for _, item := range items {
		if object, ok := item.(map[string]any); ok {
			all = append(all, object)
		}
	}
	return all
}

// without does not make a call, and takes it for made.
func without(kind string) fault {
	return func(c *call) (*reply, error) {
		if c.kind == kind {
			return forged(map[string]any{"acknowledged": true, "finalState": "SUCCEEDED"}), nil
		}
		return c.send()
	}
}

// rewrites has another value in a field each time.
func rewrites(kind, field string) fault {
	return func(c *call) (*reply, error) {
		if c.kind == kind {
			c.mu.Lock()
			c.number++
			c.in[field] = fmt.Sprintf("other-%d", c.number)
			c.mu.Unlock()
		}
		return c.send()
	}
}

func keepsInterval(c *call) (*reply, error) {
	a, err := c.send()
	if err != nil {
		return a, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if interval, ok := a.out["heartbeatIntervalMs"].(float64); ok {
		if c.interval == 0 {
			c.interval = interval
		}
		a.out["heartbeatIntervalMs"] = c.interval
	}
	for _, item := range append(list(a.out, "results"), a.out) {
		if _, ok := item["nextHeartbeatMs"]; ok {
			item["nextHeartbeatMs"] = 60000
		}
	}
	return a, err
}

func dropsProgress(c *call) (*reply, error) {
	for _, item := range append(append(list(c.in, "heartbeats"), list(c.in, "tasks")...), c.in) {
		delete(item, "progressPct")
		delete(item, "message")
	}
	a, err := c.send()
	if err == nil {
		for _, item := range list(a.out, "tasks") {
			delete(item, "lastProgress")
		}
	}
	return a, err
}

func dropsCheckpoints(c *call) (*reply, error) {
	for _, item := range append(append(list(c.in, "heartbeats"), list(c.in, "tasks")...), c.in) {
		delete(item, "details")
	}
	a, err := c.send()
	if err == nil {
		for _, item := range list(a.out, "tasks") {
			delete(item, "lastProgress")
		}
	}
	return a, err
}

func beatAfterCompletion(c *call) (*reply, error) {
	a, err := c.send()
	if c.kind == "completed" {
		late := c.req.Clone(c.req.Context())
		late.URL.Path = strings.TrimSuffix(late.URL.Path, "completed") + "heartbeat"
		_, _ = c.exchange(late, write(map[string]any{"attempt": c.in["attempt"]}))
	}
	return a, err
}

func countsTwice(c *call) (*reply, error) {
	if _, ok := c.in["seq"]; ok {
		c.mu.Lock()
		c.number++
		c.in["seq"] = c.number
		c.mu.Unlock()
	}
	return c.send()
}

func givesUp(c *call) (*reply, error) {
	a, err := c.send()
	if err != nil && c.kind == "completed" {
		return &reply{http.StatusBadRequest, http.Header{}, map[string]any{"error": "invalid_request", "message": errFault.Error()}}, nil
	}
	return a, err
}

func noRetryAfter(c *call) (*reply, error) {
	a, err := c.send()
	if err == nil {
		a.header.Del("Retry-After")
	}
	return a, err
}

// takesForExpired takes a status for the end of all attempts.
func takesForExpired(status int) fault {
	return func(c *call) (*reply, error) {
		a, err := c.send()
		if err != nil || !c.beats() {
			return a, err
		}
		for _, item := range list(a.out, "results") {
			if item["status"] == float64(status) {
				item["status"], item["error"] = http.StatusGone, "task_expired"
			}
		}
		if a.status != status {
			return a, nil
		}
		expired := map[string]any{"error": "task_expired", "message": errFault.Error(), "status": http.StatusGone}
		var results []any
		for _, item := range list(c.in, "heartbeats") {
			result := map[string]any{"taskId": item["taskId"]}
			for k, v := range expired {
				result[k] = v
			}
			results = append(results, result)
		}
		if results != nil {
			return forged(map[string]any{"results": results, "serverTime": "2026-01-01T00:00:00.000Z"}), nil
		}
		return &reply{http.StatusGone, http.Header{}, expired}, nil
	}
}

// first is the first token of its kind: those of the harness end in a number.
func (f *faults) first(token string) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	kind := token[:max(0, strings.LastIndexByte(token, '-'))]
	if f.tokens[kind] == "" {
		f.tokens[kind] = token
	}
	return f.tokens[kind]
}

func staleToken(c *call) (*reply, error) {
	if token, ok := strings.CutPrefix(c.req.Header.Get("Authorization"), "Bearer "); ok {
		c.req.Header.Set("Authorization", "Bearer "+c.first(token))
	}
	for _, item := range list(c.in, "heartbeats") {
		if token, ok := item["taskToken"].(string); ok {
			item["taskToken"] = c.first(token)
		}
	}
	return c.send()
}

func deaf(c *call) (*reply, error) {
	a, err := c.send()
	if err != nil {
		return a, err
	}
	if a.status == http.StatusConflict || a.status == http.StatusGone {
		a = forged(map[string]any{"acknowledged": true, "nextHeartbeatMs": 100, "finalState": "SUCCEEDED"})
	}
	if _, ok := a.out["lostTasks"]; ok {
		a.out["lostTasks"], a.out["cancelTasks"] = []any{}, []any{}
	}
	for _, item := range append(list(a.out, "results"), a.out) {
		if _, ok := item["status"].(float64); ok {
			item["status"] = http.StatusOK
			delete(item, "error")
		}
		delete(item, "shouldCancel")
		delete(item, "willRetry")
	}
	return a, err
}

func keepsClaiming(c *call) (*reply, error) {
	a, err := c.send()
	if err == nil && c.kind == "claim" && a.status == http.StatusConflict {
		return forged(map[string]any{"tasks": []any{}}), nil
	}
	return a, err
}

func greedy(c *call) (*reply, error) {
	if most, ok := c.in["max"].(float64); ok && c.kind == "claim" {
		c.in["max"] = most + 1
	}
	return c.send()
}

func neverComesBack(c *call) (*reply, error) {
	a, err := c.send()
	if err == nil && (a.out["error"] == "worker_not_found" || a.out["error"] == "worker_offline") {
		a.status, a.out["error"] = http.StatusServiceUnavailable, "store_unavailable"
	}
	return a, err
}

func noBeatsWhileStopping(c *call) (*reply, error) {
	c.mu.Lock()
	c.stopping = c.stopping || c.kind == "drain"
	stopping := c.stopping
	c.mu.Unlock()
	if stopping && c.beats() {
		return nil, errFault
	}
	return c.send()
}

func noBeatsWhileSpinning(c *call) (*reply, error) {
	c.mu.Lock()
	busy := c.busy
	c.mu.Unlock()
	if busy && c.beats() {
		return nil, errFault
	}
	return c.send()
}

func oneCategory(c *call) (*reply, error) {
	if e, ok := c.in["error"].(map[string]any); ok {
		e["category"] = "CANCELLED"
		delete(e, "retryable")
	}
	return c.send()
}

func noDelay(c *call) (*reply, error) {
	if _, ok := c.in["delayMs"]; ok {
		c.in["delayMs"] = 0
	}
	return c.send()
}

func oneByOne(c *call) (*reply, error) {
	items, of := "heartbeats", "results"
	if c.kind == "exchange" {
		items, of = "completed", "completed"
	}
	var all *reply
	var results []any
	for _, item := range list(c.in, items) {
		c.in[items] = []any{item}
		a, err := c.send()
		if err != nil || a.status != http.StatusOK {
			return a, err
		}
		got, _ := a.out[of].([]any)
		all, results = a, append(results, got...)
	}
	if all == nil {
		return c.send()
	}
	all.out[of] = results
	return all, nil
}

// alwaysLists has an inventory in each beat of a worker, what it does not name left out.
func alwaysLists(c *call) (*reply, error) {
	if _, ok := c.in["tasks"]; !ok && c.kind == "heartbeat" && strings.Contains(c.req.URL.Path, "/workers/") {
		c.in["tasks"] = []any{}
	}
	return c.send()
}

// noReason does not see why a worker is offline.
func noReason(c *call) (*reply, error) {
	a, err := c.send()
	if err == nil && a.status == http.StatusGone {
		delete(a.out, "reason")
	}
	return a, err
}

// neverRefused takes the refusal of a registration for an outage.
func neverRefused(c *call) (*reply, error) {
	a, err := c.send()
	if err == nil && c.kind == "workers" && a.status == http.StatusConflict {
		a.status, a.out["error"] = http.StatusServiceUnavailable, "store_unavailable"
	}
	return a, err
}

func forgetsDrained(c *call) (*reply, error) {
	a, err := c.send()
	if err == nil && c.kind == "workers" {
		delete(a.out, "shouldDrain")
	}
	return a, err
}

// failsTheRest completes what the worker holds when it deregisters, instead of giving it back.
func failsTheRest(c *call) (*reply, error) {
	c.mu.Lock()
	if _, lists := c.in["tasks"]; lists && c.kind == "heartbeat" {
		c.listed = list(c.in, "tasks")
	}
	listed := c.listed
	c.mu.Unlock()
	for _, item := range listed {
		if c.kind != "deregister" {
			break
		}
		failed := c.req.Clone(c.req.Context())
		failed.URL.Path = fmt.Sprintf("/v1/tasks/%v/completed", item["taskId"])
		_, _ = c.exchange(failed, write(map[string]any{
			"attempt": item["attempt"], "outcome": "FAILED", "error": map[string]any{"category": "INFRASTRUCTURE", "message": "worker stopped"},
		}))
	}
	return c.send()
}

// typesOnly claims the types of the handlers, and no tasks without a type.
func typesOnly(c *call) (*reply, error) {
	if c.kind == "claim" {
		c.in["types"] = []any{"job"}
	}
	return c.send()
}

// allTypes claims tasks without a type although there is no default handler.
func allTypes(c *call) (*reply, error) {
	if c.kind == "claim" {
		delete(c.in, "types")
	}
	return c.send()
}

// noItemRetry takes each refusal of a creation or a completion among many for final.
func noItemRetry(c *call) (*reply, error) {
	a, err := c.send()
	if err == nil && (c.kind == "tasks:batch" || c.kind == "exchange") {
		for _, item := range append(list(a.out, "results"), list(a.out, "completed")...) {
			if item["status"] == float64(http.StatusServiceUnavailable) {
				item["status"], item["error"] = http.StatusBadRequest, "invalid_request"
			}
		}
	}
	return a, err
}

func oneName(c *call) (*reply, error) {
	if c.kind == "workers" {
		c.in["name"] = "conformance"
	}
	return c.send()
}

// listsLate lists what was claimed only once it has started, and starts nothing while a handler keeps a core busy.
func listsLate(c *call) (*reply, error) {
	parts := strings.Split(c.req.URL.Path, "/")
	id := parts[len(parts)-2]
	c.mu.Lock()
	if c.kind == "started" {
		for c.busy {
			c.idle.Wait()
		}
		c.started[id] = true
	}
	var rest []any
	for _, item := range list(c.in, "tasks") {
		if started, _ := item["taskId"].(string); c.started[started] {
			rest = append(rest, item)
		}
	}
	if _, lists := c.in["tasks"]; lists && c.kind == "heartbeat" {
		c.in["tasks"] = append([]any{}, rest...)
	}
	c.mu.Unlock()
	return c.send()
}

// noisy logs each request that is not answered.
func noisy(c *call) (*reply, error) {
	a, err := c.send()
	if err != nil {
		slog.Warn("No answer from Lubdub", "error", err)
	}
	return a, err
}

// startsAgain reports the start of each claimed task.
func startsAgain(c *call) (*reply, error) {
	a, err := c.send()
	if err == nil && c.kind == "claim" {
		for _, task := range list(a.out, "tasks") {
			task["state"] = "DISPATCHED"
		}
	}
	return a, err
}
