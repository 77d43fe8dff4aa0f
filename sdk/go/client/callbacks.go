package client

import (
	"context"
	"net/http"

	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

// The calls of workers, one by one. Track and package worker make them by themselves, at the right moments; these are for
// whoever wants to do so themselves. A token is the attempt's or the worker's.

// Started says that an attempt runs.
func (c *Client) Started(ctx context.Context, taskID, token string, r v1.StartedRequest) (*v1.StartedResponse, error) {
	return ask[v1.StartedResponse](ctx, c, callback(taskID, "started", token, r))
}

// Heartbeat says that an attempt lives.
func (c *Client) Heartbeat(ctx context.Context, taskID, token string, r v1.HeartbeatRequest) (*v1.HeartbeatResponse, error) {
	return ask[v1.HeartbeatResponse](ctx, c, callback(taskID, "heartbeat", token, r))
}

// Completed says how an attempt has ended.
func (c *Client) Completed(ctx context.Context, taskID, token string, r v1.CompletedRequest) (*v1.CompletedResponse, error) {
	return ask[v1.CompletedResponse](ctx, c, callback(taskID, "completed", token, r))
}

// Heartbeats says that up to 1,000 attempts live. Each beat brings its token, or token is a worker's that holds them all.
func (c *Client) Heartbeats(ctx context.Context, token string, r v1.HeartbeatsRequest) (*v1.HeartbeatsResponse, error) {
	return ask[v1.HeartbeatsResponse](ctx, c, &call{method: http.MethodPost, path: "/v1/heartbeats", in: r, token: token, open: token == ""})
}

func callback(taskID, what, token string, in any) *call {
	return &call{method: http.MethodPost, path: "/v1/tasks/" + seg(taskID) + "/" + what, in: in, token: token, open: token == ""}
}
