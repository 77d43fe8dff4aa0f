package client

import (
	"context"
	"net/http"

	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

// The single calls of workers. Track and package worker make them automatically; these are for programs that manage attempts themselves. A
// token is the attempt's or the worker's.

// Started reports that an attempt runs.
func (c *Client) Started(ctx context.Context, taskID, token string, r v1.StartedRequest) (*v1.StartedResponse, error) {
	return invoke[v1.StartedResponse](ctx, c, callback(taskID, "started", token, r))
}

// Heartbeat sends a heartbeat of an attempt.
func (c *Client) Heartbeat(ctx context.Context, taskID, token string, r v1.HeartbeatRequest) (*v1.HeartbeatResponse, error) {
	return invoke[v1.HeartbeatResponse](ctx, c, callback(taskID, "heartbeat", token, r))
}

// Completed completes an attempt.
func (c *Client) Completed(ctx context.Context, taskID, token string, r v1.CompletedRequest) (*v1.CompletedResponse, error) {
	return invoke[v1.CompletedResponse](ctx, c, callback(taskID, "completed", token, r))
}

// Heartbeats sends heartbeats of up to 1,000 attempts. Each includes its token, or token is that of the worker that holds them all.
func (c *Client) Heartbeats(ctx context.Context, token string, r v1.HeartbeatsRequest) (*v1.HeartbeatsResponse, error) {
	return invoke[v1.HeartbeatsResponse](ctx, c,
		&call{method: http.MethodPost, path: "/v1/heartbeats", in: r, token: token, open: token == ""})
}

func callback(taskID, what, token string, in any) *call {
	return &call{method: http.MethodPost, path: "/v1/tasks/" + seg(taskID) + "/" + what, in: in, token: token, open: token == ""}
}
