// Package requests contains the benchmark's sources of requests about tasks, workers and queues. They are composed from bytes, so that a
// request allocates nothing. The package knows the wire format, but neither servers nor measurements.
package requests

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"

	"github.com/lubdub-io/lubdub/bench/load"
)

// Sources creates the source of connection i of n.
type Sources = func(i, n int) load.Source

const host = " HTTP/1.1\r\nHost: bench\r\n" // required, but ignored by the server

// post appends a POST request; its path is a collection, an id in it and a call. A nil token is omitted.
func post(dst []byte, collection string, id []byte, call string, token, body []byte) []byte {
	dst = append(append(append(append(dst, "POST "...), collection...), id...), call...)
	dst = authorize(append(dst, host+"Content-Type: application/json\r\n"...), token)
	dst = strconv.AppendInt(append(dst, "Content-Length: "...), int64(len(body)), 10)
	return append(append(dst, "\r\n\r\n"...), body...)
}

// get appends a GET request for a path in two parts.
func get(dst []byte, path string, rest, token []byte) []byte {
	dst = append(append(append(append(dst, "GET "...), path...), rest...), host...)
	return append(authorize(dst, token), "\r\n"...)
}

func authorize(dst, token []byte) []byte {
	if token == nil {
		return dst
	}
	return append(append(append(dst, "Authorization: Bearer "...), token...), "\r\n"...)
}

// expect counts an answer with the wanted status as 1. Any other counts as refused, by its status and error code.
func expect(want, status int, body []byte, t *load.Tally) int {
	if status == want {
		return 1
	}
	t.Refused(refusal(status, body), 1)
	return 0
}

func refusal(status int, body []byte) string {
	return strings.TrimSpace(strconv.Itoa(status) + " " + string(after(body, errorField, '"')))
}

var (
	errorField  = []byte(`"error":"`)
	taskIDField = []byte(`"taskId":"`)
	tokenField  = []byte(`"taskToken":"`)
)

// after returns the text between a field's name and an end; nil if the field is missing.
func after(body, field []byte, end byte) []byte {
	_, rest, ok := bytes.Cut(body, field)
	i := bytes.IndexByte(rest, end)
	if !ok || i < 0 {
		return nil
	}
	return rest[:i]
}

// result is one item of a batch's answer.
type result struct {
	Status           int
	TaskToken, Error string
}

// results decodes a batch's answer item by item, which is slow: only answers with refusals need it.
func results(body []byte) []result {
	var answer struct{ Results []result }
	_ = json.Unmarshal(body, &answer) // on an error there are none, which the caller counts
	return answer.Results
}

// Repeat sends one request repeatedly.
type Repeat struct{ request []byte }

// CreateOne repeatedly creates a task that never starts.
func CreateOne(control string) *Repeat {
	return &Repeat{post(nil, "/v1/tasks", nil, "", []byte(control), []byte(`{}`))}
}

// ListFirst repeatedly lists the first ten tasks.
func ListFirst(control string) *Repeat {
	return &Repeat{get(nil, "/v1/tasks?pageSize=10", nil, []byte(control))}
}

func (r *Repeat) Next(dst []byte) []byte { return append(dst, r.request...) }

func (r *Repeat) Answered(status int, body []byte, t *load.Tally) int {
	if status == 201 {
		return 1
	}
	return expect(200, status, body, t)
}
