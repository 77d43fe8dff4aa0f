package client

import (
	"context"
	"encoding/json"
	"net/http"

	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

// The calls that take or return something else than their operation in api/openapi.json. The others are in calls.go.

// GetTask returns a task. To wait for its end use Result or WaitTasks.
func (c *Client) GetTask(ctx context.Context, taskID string) (*v1.Task, error) {
	return get[v1.Task](ctx, c, "/v1/tasks/"+seg(taskID), nil)
}

// WorkerHeartbeatOnce is WorkerHeartbeat without retries, and with an encoded v1.WorkerHeartbeatRequest: for programs that schedule
// heartbeats themselves, as package worker does.
func (c *Client) WorkerHeartbeatOnce(ctx context.Context, workerID, token string, body []byte) (*v1.WorkerHeartbeatResponse, error) {
	k := &call{method: http.MethodPost, path: "/v1/workers/" + seg(workerID) + "/heartbeat", body: body, token: token, tries: 1,
		open: token == ""}
	return invoke[v1.WorkerHeartbeatResponse](ctx, c, k)
}

// ListQueues returns all queues; order is asc (also where it is empty) or desc.
func (c *Client) ListQueues(ctx context.Context, order string) (*v1.QueueList, error) {
	return get[v1.QueueList](ctx, c, "/v1/queues", values(struct {
		Order string `url:"order"`
	}{order}))
}

// NextFires returns the next fires of a schedule; count 0: the server's default.
func (c *Client) NextFires(ctx context.Context, scheduleID string, count int) (*v1.NextFires, error) {
	return get[v1.NextFires](ctx, c, "/v1/schedules/"+seg(scheduleID)+"/next", values(struct {
		Count int `url:"count"`
	}{count}))
}

// OpenAPI returns the server's OpenAPI document.
func (c *Client) OpenAPI(ctx context.Context) (json.RawMessage, error) {
	raw, err := invoke[json.RawMessage](ctx, c, &call{method: http.MethodGet, path: "/openapi.json", open: true})
	if err != nil {
		return nil, err
	}
	return *raw, nil
}
