package tasks

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/valyala/fasthttp"

	"github.com/lubdub-io/lubdub/api/httpapi"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/tasks"
)

// createBatch answers POST /v1/tasks:batch. An error in one item is that item's answer.
func (h *Handlers) createBatch(req *httpapi.Request) (int, any, error) {
	var body struct {
		Tasks []json.RawMessage `json:"tasks"`
	}
	if err := req.Strict(&body); err != nil {
		return 0, nil, err
	}
	if n := len(body.Tasks); n < 1 || n > httpapi.MaxBatch {
		return 0, nil, httpapi.InvalidField("tasks", fmt.Sprintf("tasks has %d entries; send 1 to %d", n, httpapi.MaxBatch))
	}

	results := make([]json.RawMessage, len(body.Tasks))
	news := make([]model.NewTask, 0, len(body.Tasks))
	places := make([]int, 0, len(body.Tasks)) // indexes of the new tasks in results
	trace := traceHeader(req)
	for i, raw := range body.Tasks {
		n, err := itemTask(req, raw)
		if err != nil {
			results[i] = itemRefusal(req, err)
			continue
		}
		n.Trace = cmp.Or(n.Trace, trace)
		news = append(news, n)
		places = append(places, i)
	}
	if len(news) > 0 {
		for i, made := range h.tasks.CreateBatch(req.Context(), news) {
			results[places[i]] = h.itemCreated(req, made)
		}
	}
	return fasthttp.StatusOK, v1.CreateTasksResponse{Results: results}, nil
}

func itemTask(req *httpapi.Request, raw json.RawMessage) (model.NewTask, error) {
	var item v1.CreateTasksItem
	if len(raw) == 0 || raw[0] != '{' {
		return model.NewTask{}, errItemNotObject
	}
	if err := httpapi.DecodeObject("", raw, &item, false); err != nil {
		return model.NewTask{}, err
	}
	if item.IdempotencyKey != "" {
		if err := httpapi.CheckIdempotencyKey("idempotencyKey", item.IdempotencyKey); err != nil {
			return model.NewTask{}, err
		}
	}
	return newTask(req, &item.CreateTaskRequest, item.IdempotencyKey, "idempotencyKey")
}

var errItemNotObject = httpapi.NewRefusal(fasthttp.StatusBadRequest, v1.CodeInvalidRequest,
	"The entry is not an object; send the body of POST /v1/tasks")

func (h *Handlers) itemCreated(req *httpapi.Request, made tasks.CreateResult) json.RawMessage {
	if made.Err != nil {
		return itemRefusal(req, req.SelectionRefusal(made.Err))
	}
	body, err := h.answer(made.Created)
	if err != nil {
		return itemRefusal(req, err)
	}
	return withStatus(fasthttp.StatusCreated, body)
}

func itemRefusal(req *httpapi.Request, err error) json.RawMessage {
	return httpapi.AppendItemRefusal([]byte(`{"status":`), req.Refusal(err))
}

// withStatus returns an answer's body with its status as first field.
func withStatus(status int, body any) json.RawMessage {
	b, err := httpapi.Marshal(body)
	if err != nil {
		panic(err) // cannot fail: the types are ours
	}
	out := make([]byte, 0, len(b)+16)
	out = append(out, `{"status":`...)
	out = strconv.AppendInt(out, int64(status), 10)
	out = append(out, ',')
	return append(out, b[1:]...)
}
